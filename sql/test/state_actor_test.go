package test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// An actor is a session of the state machine. Its statements run beside the machine: one that waits for a lock is left
// waiting, and the machine goes on with the others.
type actor struct {
	m      *machine
	name   string
	number int // the key of the advisory lock at which it stops
	conn   *pgx.Conn
	ctx    context.Context //nolint:containedctx // of the statements that are started; done with the machine
	flying chan answer
	then   func(answer)
	order  int // of what is flying
}

type answer struct {
	row []any
	err error
}

func (a *actor) connect() {
	conn, err := pgx.Connect(context.Background(), a.m.db.URL)
	if err != nil {
		a.m.t.Fatalf("%s: %v", a.name, err)
	}
	a.conn = conn
	a.must(fmt.Sprintf("set application_name = '%s'", a.name))
	a.must(fmt.Sprintf("select set_config('machine.actor', '%d', false), set_config('machine.stop', '', false)", a.number))
}

// must is a statement that neither fails nor waits.
func (a *actor) must(sql string, args ...any) {
	if _, err := a.conn.Exec(context.Background(), sql, args...); err != nil {
		a.m.t.Fatalf("%s: %s: %v", a.name, sql, err)
	}
}

// start runs a statement of at most one row; then is called once it has ended. The caller awaits.
func (a *actor) start(then func(answer), sql string, args ...any) {
	flying := make(chan answer, 1)
	a.m.started++
	a.flying, a.then, a.order = flying, then, a.m.started
	conn, ctx := a.conn, a.ctx
	go func() {
		rows, err := conn.Query(ctx, sql, args...)
		var got answer
		if err == nil {
			if rows.Next() {
				got.row, err = rows.Values()
			}
			rows.Close()
			err = errors.Join(err, rows.Err())
		}
		got.err = err
		flying <- got
	}()
}

// end waits for what is under way, whose context is done, and closes the session.
func (a *actor) end() {
	if a.flying != nil {
		<-a.flying
	}
	_ = a.conn.Close(context.Background())
}

// die is the end of the session, in the middle of whatever it does.
func (a *actor) die() {
	pid := a.conn.PgConn().PID()
	a.m.must(`select pg_terminate_backend($1)`, pid)
	for gone := false; !gone; {
		if err := a.m.eye.QueryRow(context.Background(), `select not exists (select from pg_stat_activity where pid = $1)`, pid).Scan(&gone); err != nil {
			a.m.t.Fatal(err)
		}
	}
	if a.flying != nil {
		<-a.flying
		a.flying = nil
	}
	_ = a.conn.Close(context.Background())
	a.connect()
}

// await returns when every statement under way has ended or waits for a lock.
func (m *machine) await() {
	var done []*actor
	answers := map[*actor]answer{}
	for deadline := time.Now().Add(time.Minute); ; {
		var pids []int32
		for _, a := range m.actors() {
			if a.flying == nil {
				continue
			}
			select {
			case answers[a] = <-a.flying:
				a.flying = nil
				done = append(done, a)
				continue
			case <-time.After(2 * time.Millisecond):
			}
			pids = append(pids, int32(a.conn.PgConn().PID()))
		}
		if len(pids) == 0 {
			break
		}
		var waiting int
		if err := m.eye.QueryRow(context.Background(), `select count(*) from unnest($1::integer[]) pid where cardinality(pg_blocking_pids(pid)) > 0`, pids).Scan(&waiting); err != nil {
			m.t.Fatal(err)
		}
		// What was let go meanwhile has ended, or waits for something else.
		if waiting == len(pids) {
			break
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("statements of %d sessions neither end nor wait", len(pids)-waiting)
		}
	}
	for len(done) > 0 { // in the order in which they began
		first := 0
		for i, a := range done {
			if a.order < done[first].order {
				first = i
			}
		}
		a := done[first]
		done = append(done[:first], done[first+1:]...)
		a.then(answers[a])
	}
}
