package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// births is an application with a table, and a function that takes its rows and sleeps over some.
const births = `
create table births (id bigint generated always as identity primary key, born_at timestamptz not null default clock_timestamp(), slow boolean not null default false);
create index on births (born_at, id);
create table taken (id text);
create table mood (awake boolean not null); insert into mood values (false);
create function take(rows births[]) returns void language plpgsql as $$
begin
    insert into taken select id from unnest(rows);
    if exists (select from unnest(rows) where slow) and not (select awake from mood) then
        perform pg_sleep(60);
    end if;
end $$;
select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "safety": "sequence"}');
select tidemark.worker_set('w', '{"source": "table", "handler": "sql", "handler_ref": "public.take", "retry_policy": {"base_seconds": 0.3, "max_attempts": 3}}');
select tidemark.worker_source_add('w', 'births');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.w.enabled', true);`

func runTable(t *testing.T, db *tidemarktest.DB) (stop func()) {
	t.Helper()
	_, stop = runTableOn(t, db, db.Pool, 5*time.Second)
	return stop
}

func runTableOn(t *testing.T, db *tidemarktest.DB, pool store.Pool, timeout time.Duration) (cancel, stop func()) {
	t.Helper()
	owner := fmt.Sprintf("test/%d", time.Now().UnixNano())
	w := worker.New(pool, worker.Options{
		Worker: "w", Owner: owner, Lease: 5 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond, StopTime: 5 * time.Second,
		Poll: poller(t, db, owner, 5*time.Second, 20*time.Millisecond), Log: testLog(t),
	}, worker.Table{Source: "births", Paging: worker.NewPaging(store.Paging{PageSize: 5000, PageTimeout: timeout.Seconds()})})
	return running(t, w)
}

// running runs a worker until stop, or the end of the test; cancel does not wait for its end.
func running(t *testing.T, w *worker.Worker) (cancel context.CancelFunc, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return cancel, stop
}

const exact = `select concat_ws(' ', (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)), count(*) - count(distinct id)) from taken`

// CU9, CU11: a page that takes too long is tried with fewer rows, down to the one that is at fault, which waits and
// is then a dead letter. The others are taken.
func TestTablePageTimeout(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	exec(t, db, `insert into births (slow) select n = 37 from generate_series(1, 60) n`)
	runTable(t, db)
	eventually(t, db, `select concat_ws(' ', item_id, error_count, split_part(last_error, ': canceling', 1)) from tidemark.pending_row`, "37 1 57014: it took longer than 00:00:05")
	eventually(t, db, `select concat_ws(' ', count(*), count(distinct id)) from taken`, "59 59")
	exec(t, db, `insert into births default values`)
	eventually(t, db, `select concat_ws(' ', count(*), count(distinct id)) from taken`, "60 60")
	eventually(t, db, `select concat_ws(' ', item_id, attempts, error_code) from tidemark.dead_letter`, "37 3 57014")
	exec(t, db, `update mood set awake = true`)
	exec(t, db, `select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	eventually(t, db, `select coalesce(resolution, '') from tidemark.dead_letter`, "sent")
	eventually(t, db, exact, "0 0")
}

// CU8: stopped, started, cut off by the server, and two at a time: nothing is lost or taken twice.
func TestTableIsInterrupted(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	one, other := runTable(t, db), runTable(t, db)
	conn := db.Connect(t) // not of the pool, which the workers have
	do := func(sql string) {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		do(`insert into births select from generate_series(1, 50)`)
		do(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ~ 'source_pass|claim'`)
		one()
		one = other
		other = runTable(t, db)
	}
	db.Pool.Reset() // sessions that were cut while idle
	eventually(t, db, `select concat_ws(' ', count(*), count(distinct id)) from taken`, "400 400")
	eventually(t, db, exact, "0 0")
	one()
	other()
	eventually(t, db, `select concat_ws(' ', lease_owner, last_status) from tidemark.heartbeat where executor_id = 'w/births/0'`, "released")
}

// If the poll of the process fails, or is refused, each worker polls for itself.
func TestTablePollsForItself(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	runTable(t, db)
	for n, change := range []string{
		`alter function tidemark.poll rename to poll_away`,
		`alter function tidemark.poll_away rename to poll; create or replace function tidemark.poll_beat(owner text, lease interval, workers text[],
			sources text[], shards integer[], epochs bigint[], rests integer[], peeked boolean[], sweeps xid8[], horizons timestamptz[])
		 returns setof integer language plpgsql as $$ begin raise 'out of order'; end $$`,
	} {
		exec(t, db, change)
		exec(t, db, `insert into births default values`)
		eventually(t, db, `select count(*)::text from taken`, fmt.Sprint(n+1))
	}
}

// The other instance takes over when the lease is given back, when it ends without a word, and when the gate opens
// again; asleep, the owner keeps it.
func TestTableLeaseOfSleepers(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	const owner = `select coalesce(lease_owner, '-') from tidemark.heartbeat where executor_id = 'w/births/0'`
	one := runTable(t, db)
	exec(t, db, `insert into births default values`)
	eventually(t, db, `select count(*)::text from taken`, "1")
	first := texts(t, db, owner)
	runTable(t, db)
	// Longer than the lease.
	eventually(t, db, `select (lease_until > claimed + interval '6 seconds')::text from tidemark.heartbeat,
		(select min(taken_at) as claimed from (select born_at as taken_at from births) b) b where executor_id = 'w/births/0'`, "true")
	if got := texts(t, db, owner); got[0] != first[0] {
		t.Errorf("%s has it, and %s had it", got, first)
	}
	one()
	exec(t, db, `insert into births default values`)
	eventually(t, db, `select count(*)::text from taken`, "2")
	exec(t, db, `select tidemark.gate_set('worker.w.enabled', false)`)
	eventually(t, db, owner, "-")
	exec(t, db, `insert into births default values`)
	exec(t, db, `select tidemark.gate_set('worker.w.enabled', true)`)
	eventually(t, db, `select count(*)::text from taken`, "3")
	// An instance that dies releases nothing.
	exec(t, db, `update tidemark.heartbeat set lease_owner = 'dead', lease_epoch = lease_epoch + 1, lease_until = clock_timestamp() + interval '2 seconds' where executor_id = 'w/births/0'`)
	exec(t, db, `insert into births default values`)
	eventually(t, db, `select count(*)::text from taken`, "4")
	eventually(t, db, exact, "0 0")
}

// An error that the same pass would meet again costs the worker its lease, as it does a worker of the log: it claims anew, and
// another instance may. The finding says what it is, and it goes on when that is mended.
func TestTableReleasesOnAnError(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	exec(t, db, `alter table tidemark.worker_cursor add constraint broken check (worker <> 'w' or events_seen = 0) not valid`)
	exec(t, db, `insert into births (slow) values (false)`)
	runTable(t, db)
	const lease = ` from tidemark.heartbeat where executor_id = 'w/births/0'`
	eventually(t, db, `select (lease_epoch >= 3)::text`+lease, "true")
	eventually(t, db, `select coalesce(lease_owner, 'free')`+lease, "free")
	eventually(t, db, `select split_part(detail, ',', 1) || substring(detail from ': 23514') from tidemark.finding where kind = 'worker_failing' and closed_at is null`,
		"worker w: it cannot pass: 23514")
	exec(t, db, `alter table tidemark.worker_cursor drop constraint broken`)
	eventually(t, db, exact, "0 0")
	eventually(t, db, `select kind from tidemark.finding where kind = 'worker_failing' and closed_at is null`)
}

// A watchedPool calls before with the number of each transaction that is about to begin.
type watchedPool struct {
	store.Pool
	begun  int
	before func(n int)
}

func (p *watchedPool) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	p.begun++
	p.before(p.begun)
	return p.Pool.BeginTx(ctx, o)
}

// That a row took too long is forgotten with the lease: another instance may have moved the cursor since, so that the next page
// begins with another row, which its handler gets.
func TestTableForgetsTheSlowRowWithTheLease(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	exec(t, db, `select tidemark.worker_set('w', '{"retry_policy": {"max_attempts": 1}}')`)
	exec(t, db, `insert into births default values`)
	pool := &watchedPool{Pool: db.Pool, before: func(n int) {
		if n == 3 { // Another instance takes the cursor, and dies, before the row is given up.
			exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_owner = 'other', lease_until = clock_timestamp()
				where executor_id = tidemark.executor_id('w', 'births', 0)`)
		}
	}}
	calls := 0
	w := worker.New(pool, worker.Options{
		Worker: "w", Owner: "test/slow", Lease: 5 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond,
		StopTime: 5 * time.Second, Log: testLog(t),
	}, worker.Table{
		Source: "births", Paging: worker.NewPaging(store.Paging{PageSize: 8, PageTimeout: 60}),
		Handle: func(ctx context.Context, tx pgx.Tx, rows []store.Row) ([]store.FailedRow, int, error) {
			if calls++; calls <= 2 { // as a page, and by itself: as if the page's time were over
				return nil, 0, context.DeadlineExceeded
			}
			_, err := tx.Exec(ctx, `insert into taken (id) values ($1)`, rows[0].ID)
			return nil, 0, err
		},
	})
	_, stop := running(t, w)
	eventually(t, db, `select concat_ws(' ', (select count(*) from taken), (select count(*) from tidemark.dead_letter))`, "1 0")
	stop()
}

// The row that is given up is the one that took too long, not the one that comes up by then.
func TestTableGivesUpTheSlowRow(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	exec(t, db, `select tidemark.worker_set('w', '{"retry_policy": {"max_attempts": 1}}')`)
	exec(t, db, `insert into births select from generate_series(1, 3)`)
	pool := &watchedPool{Pool: db.Pool, before: func(n int) {
		if n == 3 {
			exec(t, db, `delete from births where id = 1`)
		}
	}}
	w := worker.New(pool, worker.Options{
		Worker: "w", Owner: "test/slow", Lease: 5 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond,
		StopTime: 5 * time.Second, Log: testLog(t),
	}, worker.Table{
		Source: "births", Paging: worker.NewPaging(store.Paging{PageSize: 8, PageTimeout: 60}),
		Handle: func(ctx context.Context, tx pgx.Tx, rows []store.Row) ([]store.FailedRow, int, error) {
			for _, r := range rows {
				if r.ID == "1" || r.ID == "3" { // as if the page's time were over
					return nil, 0, context.DeadlineExceeded
				}
				if _, err := tx.Exec(ctx, `insert into taken (id) values ($1)`, r.ID); err != nil {
					return nil, 0, err
				}
			}
			return nil, 0, nil
		},
	})
	_, stop := running(t, w)
	eventually(t, db, `select concat_ws(' ', (select string_agg(id, ',') from taken), (select string_agg(item_id || ' ' || error_detail, ',') from tidemark.dead_letter))`,
		"2 3 it took longer than 1m0s")
	stop()
}

// Times are the same whatever the style and zone of the role: in one that writes the zone's name, CST is also that of Chicago.
func TestTableTimesOfAnyStyle(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	exec(t, db, `alter table births add doc json;
		select tidemark.source_set('late', '{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 hour"}');
		select tidemark.worker_set('g', '{"source": "table", "handler": "go"}');
		select tidemark.worker_source_add('g', 'late'), tidemark.gate_set('worker.g.enabled', true);
		insert into births (born_at, doc) values ('2026-03-04 05:06:07.89+00', '{}'), ('2026-03-05 05:06:07.89+00', '"\u0000"')`)
	config := db.Pool.Config()
	config.ConnConfig.RuntimeParams["datestyle"] = "SQL, DMY"
	config.ConnConfig.RuntimeParams["timezone"] = "Asia/Shanghai"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	table := store.NewTable(pool, "g", "late", 0, "test/style", time.Minute)
	if _, err := table.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []time.Time
	pass, err := table.Apply(t.Context(), time.Minute, 0, func(ctx context.Context, tx pgx.Tx, rows []store.Row) ([]store.FailedRow, int, error) {
		for _, r := range rows {
			got = append(got, r.Time.UTC())
		}
		var style string
		err := tx.QueryRow(ctx, `show datestyle`).Scan(&style)
		if style != "SQL, DMY" {
			t.Errorf("the handler has the style %s, and not its own", style)
		}
		return nil, 0, err
	})
	if want := time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC); err != nil || pass.Rows != 2 || pass.Failed != 1 || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v, %v", pass, got, err)
	}
	eventually(t, db, `select concat_ws(' ', watermark_ts at time zone 'UTC', horizon < now()) from tidemark.worker_cursor where worker = 'g'`, "2026-03-05 05:06:07.89 t")
	eventually(t, db, `select (item_ts at time zone 'UTC')::text from tidemark.pending_row`, "2026-03-05 05:06:07.89")
}

// A table that is quiet is read less often, and never not at all: also a row that the server does not count is taken.
func TestQuietTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, births)
	runTable(t, db)
	exec(t, db, `insert into births default values`)
	eventually(t, db, exact, "0 0")
	eventually(t, db, `select count(*) from taken`, "1")
	conn := db.Connect(t)
	for _, counts := range []string{"on", "off"} {
		// It is quiet after ten polls, each of which beats.
		exec(t, db, `create table beats as select ticks_total as at from tidemark.heartbeat where executor_id = 'w/births/0'`)
		eventually(t, db, `select (h.ticks_total > b.at + 30)::text from tidemark.heartbeat h, beats b where h.executor_id = 'w/births/0'`, "true")
		exec(t, db, `drop table beats`)
		if _, err := conn.Exec(t.Context(), `set track_counts = `+counts); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `insert into births default values`); err != nil {
			t.Fatal(err)
		}
		eventually(t, db, exact, "0 0")
	}
	eventually(t, db, `select concat_ws(' ', count(*), count(distinct id)) from taken`, "3 3")
}

// sweepsAlways makes a worker g of a Go program, whose source is always due for a sweep.
func sweepsAlways(t *testing.T, db *tidemarktest.DB) {
	t.Helper()
	exec(t, db, births)
	exec(t, db, `select tidemark.source_set('late', '{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "margin": "1 microsecond", "sweep_window": "1 hour", "sweep_every": "1 microsecond"}');
		select tidemark.worker_set('g', '{"source": "table", "handler": "go"}');
		select tidemark.worker_source_add('g', 'late'), tidemark.gate_set('worker.g.enabled', true)`)
}

// runSweeps runs the worker of sweepsAlways, whose pages may take a second.
func runSweeps(t *testing.T, db *tidemarktest.DB) (stop func()) {
	t.Helper()
	_, stop = running(t, worker.New(db.Pool, worker.Options{
		Worker: "g", Owner: "test/g", Lease: 20 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond,
		StopTime: 5 * time.Second, Log: testLog(t),
	}, worker.Table{
		Source: "late", Paging: worker.NewPaging(store.Paging{PageSize: 5000, PageTimeout: 1}), Handle: takes,
	}))
	return stop
}

// A sweep reads for longer than a page may, each time: a Go program takes new rows all the same, and what follows the page in its
// transaction has the session's own time.
func TestTableReadTakesTooLong(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	sweepsAlways(t, db)
	exec(t, db, `create sequence reads; create table ended (statement_timeout text);
		create function at_commit() returns trigger language plpgsql as $$ begin insert into ended values (current_setting('statement_timeout')); return null; end $$;
		create constraint trigger at_commit after insert on taken deferrable initially deferred for each row execute function at_commit();
		insert into births (born_at) values (now() - interval '2 seconds')`)
	exec(t, db, `do $$ begin execute replace(pg_get_functiondef('tidemark.source_read'::regproc), 'if plan.step = ''sweep'' then',
		'if plan.step = ''sweep'' then perform nextval(''public.reads''), pg_sleep(3600);'); end $$`)
	runSweeps(t, db)
	eventually(t, db, `select (last_value >= 2)::text from reads`, "true")
	exec(t, db, `insert into births (born_at) values (now() - interval '2 seconds')`)
	eventually(t, db, exact, "0 0")
	eventually(t, db, `select string_agg(distinct statement_timeout, ' ') from ended`, "0")
	eventually(t, db, `select ((metadata #>> '{suspects,sweep,rows}')::integer < 5000)::text from tidemark.worker_cursor where worker = 'g'`, "true")
}

// takes is a handler that inserts the rows.
func takes(ctx context.Context, tx pgx.Tx, rows []store.Row) ([]store.FailedRow, int, error) {
	for _, r := range rows {
		if _, err := tx.Exec(ctx, `insert into taken (id) values ($1)`, r.ID); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, nil
}

// The count at the end of a sweep takes longer than a page may: the pass is recorded without it, and rows go on to be taken.
func TestTableCountTakesTooLong(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	sweepsAlways(t, db)
	exec(t, db, `alter table births alter born_at drop not null; create sequence counts;
		insert into births (born_at) select now() - n * interval '3 hours' from generate_series(1, 10) n`)
	exec(t, db, `do $$ begin execute replace(pg_get_functiondef('tidemark.source_recount'::regproc), 'counts := got.counts;',
		'counts := got.counts; if buckets > 10 and nextval(''public.counts'') > 0 then perform pg_sleep(3600); end if;'); end $$`)
	stop := runSweeps(t, db)
	eventually(t, db, `select (last_value >= 2)::text from counts`, "true")
	exec(t, db, `insert into births (born_at) values (null), (now() - interval '2 seconds')`)
	eventually(t, db, exact, "0 0")
	eventually(t, db, `select coalesce(verified_through > now() - interval '4 hours', false)::text from tidemark.worker_cursor where worker = 'g'`, "true")
	eventually(t, db, `select kind from tidemark.finding where closed_at is null`)
	stop()
}
