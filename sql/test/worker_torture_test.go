package test

// Many writers, two instances of the worker, backends and servers killed: and a checker that knows nothing of
// Tidemark's tables. It compares what the application committed to its own journal, in the transactions that
// emitted, with what the application's own function received.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var seed = flag.Uint64("seed", 0, "seed of the torture tests; 0: a new one, which is printed")

// journal is the application's: a row per key, whose lock its writers hold when they emit, and a row per
// event emitted.
const journal = `
create table key_row (key text primary key, n int not null default 0);
insert into key_row select 'k' || i from generate_series(0, 39) i;
create table journal (event_id uuid primary key, key text not null, n int not null);
create function write_event(k text) returns void language sql as $$
    with next as (update key_row set n = n + 1 where key = k returning n)
    insert into journal
    select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n), key => k), k, n from next $$;`

// verdict is what the checker finds.
type verdict struct {
	committed, received, lost, doubled, unordered, invented int
}

func check(t *testing.T, conn *pgx.Conn) verdict {
	t.Helper()
	var v verdict
	err := conn.QueryRow(context.Background(), `
select (select count(*) from journal), (select count(*) from received),
       (select count(*) from journal j where not exists (select from received r where r.event_id = j.event_id)),
       (select count(*) - count(distinct event_id) from received),
       (select count(*) from (select n < lag(n) over (partition by key order by at) as back from received) r where back),
       (select count(*) from received r where not exists (select from journal j where j.event_id = r.event_id))`).
		Scan(&v.committed, &v.received, &v.lost, &v.doubled, &v.unordered, &v.invented)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d committed, %d received, %d lost, %d doubled, %d out of order, %d that were rolled back",
		v.committed, v.received, v.lost, v.doubled, v.unordered, v.invented)
}

func (v verdict) sound() bool { return v.lost+v.doubled+v.unordered+v.invented == 0 }

// A torture runs writers and workers against a database until enough is committed.
type torture struct {
	t       *testing.T
	url     string
	events  int64 // committed at least
	workers int

	committed atomic.Int64
	late      atomic.Int64
	done      chan struct{} // closed when the writers are through
	alive     sync.WaitGroup
}

// run returns when all is written and delivered, and what the checker then found.
func (x *torture) run(writers int, source *rand.Rand, disturb func(done <-chan struct{})) verdict {
	x.t.Helper()
	x.done = make(chan struct{})
	var writing sync.WaitGroup
	for i := range writers {
		random := rand.New(rand.NewPCG(source.Uint64(), 1))
		writing.Go(func() { x.write(i, random) })
	}
	for range x.workers {
		random := rand.New(rand.NewPCG(source.Uint64(), 2))
		x.alive.Go(func() { x.work(random) })
	}
	if disturb != nil {
		x.alive.Go(func() { disturb(x.done) })
	}
	writing.Wait()
	close(x.done)
	x.alive.Wait()

	conn := x.connect()
	defer conn.Close(context.Background())
	for { // what a prepared transaction of a dead writer still holds is rolled back, then drain
		x.rollBackPrepared(conn)
		var open bool
		var events int
		err := conn.QueryRow(context.Background(), `
with pass as materialized (select tidemark.route_worker_run('default', 5000) as s)
select (s ->> 'events')::int from pass`).Scan(&events)
		if err == nil {
			err = conn.QueryRow(context.Background(), `select not isempty(holes + fenced) from tidemark.worker_cursor where worker = 'default'`).Scan(&open)
		}
		if err != nil {
			x.t.Fatal(err)
		}
		if events == 0 && !open {
			return check(x.t, conn)
		}
	}
}

func (x *torture) rollBackPrepared(conn *pgx.Conn) {
	rows, _ := conn.Query(context.Background(), `select gid from pg_prepared_xacts where database = current_database()`)
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		x.t.Fatal(err)
	}
	for _, gid := range gids {
		if _, err := conn.Exec(context.Background(), "rollback prepared '"+gid+"'"); err != nil {
			x.t.Fatal(err)
		}
	}
}

// connect tries until the server takes it: it may be on its way up again.
func (x *torture) connect() *pgx.Conn {
	for deadline := time.Now().Add(3 * time.Minute); ; {
		conn, err := pgx.Connect(context.Background(), x.url)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			x.t.Errorf("no connection for 3 minutes: %v", err)
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// write commits transactions of many shapes until enough is committed. A transaction that the server cut
// off is forgotten: whether it was committed is for the journal to say.
func (x *torture) write(id int, random *rand.Rand) {
	conn := x.connect()
	defer func() { _ = conn.Close(context.Background()) }()
	for turn := 0; x.committed.Load() < x.events; turn++ {
		gid := fmt.Sprintf("%s-w%d-%d", conn.Config().Database, id, turn) // names are the cluster's, and torture runs twice at a time
		n, err := x.transaction(conn, random, gid)
		switch {
		case err == nil:
			x.committed.Add(int64(n))
		case conn.IsClosed():
			// Prepared and then cut off, it would hold its keys' locks for ever.
			conn = x.connect()
			_, _ = conn.Exec(context.Background(), "rollback prepared '"+gid+"'")
		case !expected(err):
			x.t.Errorf("writer: %v", err)
			return
		}
	}
}

// expected: what a dying server says.
func expected(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code[:2] == "57"
}

func (x *torture) transaction(conn *pgx.Conn, random *rand.Rand, gid string) (n int, err error) {
	ctx := context.Background()
	exec := func(sql string) {
		if err == nil {
			_, err = conn.Exec(ctx, sql)
		}
	}
	key := random.IntN(40)
	emit := func() {
		exec(fmt.Sprintf("select write_event('k%d')", key))
		n++
		key = min(39, key+random.IntN(3)) // rising, so that no two writers wait for each other
	}
	exec("begin")
	emit()
	for range random.IntN(4) {
		switch random.IntN(6) {
		case 0:
			before := n
			exec("savepoint s")
			emit()
			exec("rollback to savepoint s")
			n = before
		case 1:
			exec("savepoint s")
			emit()
			exec("release savepoint s")
		case 2:
			if random.IntN(8) == 0 { // a slow one, past which the cursor must go
				exec(fmt.Sprintf("select pg_sleep(%f)", random.Float64()/4))
			}
		default:
			emit()
		}
	}
	switch random.IntN(12) {
	case 0, 1:
		exec("rollback")
		n = 0
	case 2:
		exec("prepare transaction '" + gid + "'")
		if random.IntN(4) == 0 {
			exec("rollback prepared '" + gid + "'")
			n = 0
		} else {
			exec("commit prepared '" + gid + "'")
		}
	default:
		exec("commit")
	}
	if err != nil && !conn.IsClosed() {
		_, _ = conn.Exec(ctx, "rollback") // an error here comes again with the next statement
	}
	return n, err
}

// work runs passes until the writers are through.
func (x *torture) work(random *rand.Rand) {
	conn := x.connect()
	defer func() { _ = conn.Close(context.Background()) }()
	for {
		select {
		case <-x.done:
			return
		default:
		}
		var status string
		var late int
		err := conn.QueryRow(context.Background(), `
with pass as materialized (select tidemark.route_worker_run('default', $1) as s)
select s ->> 'status', coalesce((s ->> 'late')::int, 0) from pass`, 1+random.IntN(700)).Scan(&status, &late)
		x.late.Add(int64(late))
		switch {
		case err == nil:
		case conn.IsClosed():
			conn = x.connect()
		case !expected(err):
			x.t.Errorf("worker: %v", err)
			return
		}
	}
}

func newTorture(t *testing.T, db *tidemarktest.DB, events int64) *torture {
	w := live(t, db)
	w.exec(journal)
	return &torture{t: t, url: db.URL, events: events, workers: 2}
}

func source(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// CU2, RW4: 60,000 events by 10 writers, with savepoints, rollbacks, slow transactions, two-phase commits,
// two instances of the worker, and backends of both terminated all the time.
func TestTorture(t *testing.T) {
	t.Parallel()
	random := source(t)
	db := tidemarktest.NewDB(t)
	x := newTorture(t, db, 60_000)
	kills := 0
	v := x.run(10, random, func(done <-chan struct{}) {
		killer := x.connect()
		defer killer.Close(context.Background())
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(20+random.IntN(80)) * time.Millisecond):
			}
			tag, err := killer.Exec(context.Background(), `
select pg_terminate_backend(pid) from (
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    order by random() limit 1) a`)
			if err != nil {
				t.Errorf("killer: %v", err)
				return
			}
			kills += int(tag.RowsAffected())
		}
	})
	t.Logf("%v; %d delivered late, %d backends terminated", v, x.late.Load(), kills)
	if !v.sound() || v.committed < 60_000 {
		t.Errorf("%v", v)
	}
	if x.late.Load() < 100 || kills < 20 {
		t.Errorf("%d late, %d kills: the test did not meet the hazard", x.late.Load(), kills)
	}
	w := open(t, db, "after")
	var problems string
	if err := w.conn.QueryRow(t.Context(), `select coalesce(string_agg("check" || ': ' || detail, '; '), '') from tidemark.verify() where status = 'fail'`).Scan(&problems); err != nil || problems != "" {
		t.Errorf("verify: %s %v", problems, err)
	}
}

// The same with the server killed, again and again, in the middle of everything.
func TestTortureServerKilled(t *testing.T) {
	t.Parallel()
	random := source(t)
	server := testserver.New(t, devpg.Options{Durable: true, Settings: map[string]string{"max_prepared_transactions": "50"}})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	x := newTorture(t, db, 6_000)
	kills := 0
	v := x.run(8, random, func(done <-chan struct{}) {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(300+random.IntN(700)) * time.Millisecond):
			}
			if err := server.Kill(); err != nil {
				t.Errorf("kill: %v", err)
				return
			}
			if err := server.Restart(context.Background()); err != nil {
				t.Errorf("restart: %v", err)
				return
			}
			kills++
		}
	})
	t.Logf("%v; server killed %d times, %d delivered late", v, kills, x.late.Load())
	if !v.sound() || v.committed < 6_000 || kills < 2 {
		t.Errorf("%v, server killed %d times", v, kills)
	}
}

// The checker notices what it is there for: the same load, with a part of the cursor's rule taken out.
func TestTortureCatches(t *testing.T) {
	t.Parallel()
	for name, weaken := range map[string]func(w session){
		"a plain watermark": func(w session) {
			w.rewrite("read_outbox", "b.holes := c.holes - b.seqs + missing;", "b.holes := '{}';")
		},
		"no fence": func(w session) {
			w.exec(`create or replace function tidemark.fence_closed(fence text[], relation regclass default null) returns boolean language sql as 'select true'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			x := newTorture(t, db, 4_000)
			weaken(open(t, db, "weaken"))
			v := x.run(10, source(t), nil)
			t.Log(v)
			if v.sound() {
				t.Errorf("the checker did not notice: %v", v)
			}
		})
	}
}
