package worker_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/sink"
)

// lostReads is a pool that loses the first statements that read a page: before they reach the server, or the answer. It counts
// the statements that settle.
type lostReads struct {
	*pgxpool.Pool
	lose    atomic.Int64
	arrives bool // at the server
	settles atomic.Int64

	mu   sync.Mutex
	late func(context.Context) error // a lost statement that arrives now
}

func (l *lostReads) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "pass_read(") && l.lose.Add(-1) >= 0 {
		return nil, l.lost(ctx, sql, args)
	}
	return l.Pool.Query(ctx, sql, args...)
}

func (l *lostReads) lost(ctx context.Context, sql string, args []any) error {
	send := func(ctx context.Context) error {
		rows, err := l.Pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		rows.Close()
		return rows.Err()
	}
	if l.arrives {
		if err := send(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = send
	return io.ErrUnexpectedEOF
}

func (l *lostReads) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.Contains(sql, "settle(") {
		l.settles.Add(1)
	}
	return l.Pool.QueryRow(ctx, sql, args...)
}

// A page that leaves nothing to deliver is settled by the statement that reads it.
func TestDryPagesAreSettledAsTheyAreRead(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, `select tidemark.route_set('app', '{"dry_run": true}')`)
	exec(t, db, `select tidemark.emit('test', 'tick', '{}') from generate_series(1, 3000)`)
	pool := &lostReads{Pool: db.Pool}
	runOn(t, db, pool, ts)
	const decided = `select concat_ws(' ', outcome, sum(events)) from tidemark.decision group by outcome order by outcome`
	eventually(t, db, decided, "dry_run 3000")
	exec(t, db, `select tidemark.emit('test', 'tick', '{}')`)
	eventually(t, db, decided, "dry_run 3001")
	eventually(t, db, settled, "true")
	if n := pool.settles.Load(); n > 1 { // an empty page, the first
		t.Errorf("%d statements that settle", n)
	}
	// A pass reads the routes before the events: one that is under way decides by the route as it was. So wait for the next.
	exec(t, db, `select tidemark.route_set('app', '{"dry_run": false}')`)
	exec(t, db, `select tidemark.emit('test', 'tick', '{}', key => 'between')`)
	eventually(t, db, `select (sum(events) = 3002)::text from tidemark.decision`, "true")
	eventually(t, db, settled, "true")
	before := ts["app"].count()
	emit(t, db, "a1")
	ts["app"].wait(t, before+1)
	eventually(t, db, decided, fmt.Sprintf("dry_run %d", 3002-before), fmt.Sprintf("sent %d", before+1))
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

// The answer of a statement that reads and settles is lost. It may have been recorded, or not: each event is decided once.
func TestAnswerOfSettledReadLost(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ts := setup(t, "")
			exec(t, db, `select tidemark.route_set('app', '{"dry_run": true}')`)
			emit(t, db, "a1", "a2")
			pool := &lostReads{Pool: db.Pool, arrives: arrives}
			pool.lose.Store(2)
			runOn(t, db, pool, ts)
			eventually(t, db, evidence, "app 1 1 dry_run", "app 2 1 dry_run")
			eventually(t, db, settled, "true")
			emit(t, db, "a3")
			eventually(t, db, evidence, "app 1 1 dry_run", "app 2 1 dry_run", "app 3 1 dry_run")
			eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
		})
	}
}

// A statement that reads and settles is lost, and arrives while the same events are being delivered. By then the route is in
// dry run. It changes nothing: the events are recorded as sent.
func TestLateSettledRead(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	pool := &lostReads{Pool: db.Pool}
	pool.lose.Store(1)
	var once sync.Once
	ts["app"].answers(func(ctx context.Context, _ sink.Delivery) sink.Result {
		once.Do(func() {
			if _, err := db.Pool.Exec(ctx, `select tidemark.route_set('app', '{"dry_run": true}')`); err != nil {
				t.Error(err)
			}
			pool.mu.Lock()
			defer pool.mu.Unlock()
			if err := pool.late(ctx); err != nil {
				t.Error(err)
			}
		})
		return sink.Result{Status: sink.Delivered}
	})
	emit(t, db, "a1")
	runOn(t, db, pool, ts)
	eventually(t, db, evidence, "app 1 1 sent")
	eventually(t, db, settled, "true")
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}
