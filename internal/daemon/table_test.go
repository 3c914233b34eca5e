package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The daemon runs workers of tables with any kind of handler in the database. Each row is taken once, although the daemon is
// stopped and restarted, its sessions are terminated, and a second daemon runs.
func TestDaemonTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `
create table births (id bigint generated always as identity primary key, born_at timestamptz not null default clock_timestamp());
create table taken (id text);
create function take(rows births[]) returns void language sql as 'insert into taken select id from unnest(rows)';
select tidemark.type_set('town', 'birth');
select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "safety": "sequence"}');
select tidemark.worker_set('sql', '{"source": "table", "handler": "sql", "handler_ref": "public.take", "shards": 3, "page_size": 20}');
select tidemark.worker_set('emit', '{"source": "table", "handler": "emit", "handler_ref": "town/birth"}');
select tidemark.worker_source_add('sql', 'births'), tidemark.worker_source_add('emit', 'births');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.sql.enabled', true), tidemark.gate_set('worker.emit.enabled', true)`)
	c := settings(db)
	c.Poll.Max = 50 * time.Millisecond
	one, other := run(t, c), run(t, c)
	for range 6 {
		execSQL(t, db, `insert into births select from generate_series(1, 100)`)
		execSQL(t, db, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ~ 'source_pass' and query !~ 'terminate'`)
		one.stop()
		one, other = other, run(t, c)
	}
	text := func(sql string) (got string) {
		if err := db.Pool.QueryRow(context.Background(), sql).Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	eventually(t, "600 rows are taken", func() bool {
		return text(`select (select count(*) from taken) || ' ' || (select count(*) from tidemark.outbox)`) == "600 600"
	})
	one.stop()
	other.stop()
	for sql, want := range map[string]string{
		`select count(distinct id) || ' ' || count(*) from taken`:                                                                              "600 600",
		`select count(distinct subject_ref) || ' ' || count(*) from tidemark.outbox`:                                                           "600 600",
		`select count(*)::text from tidemark.heartbeat where lease_owner is not null`:                                                          "0",
		`select count(*)::text from tidemark.finding where closed_at is null and kind <> 'cursor_lease_conflict'`:                              "0",
		`select count(*)::text from tidemark.worker_cursor where source = 'births' and (last_run_summary ->> 'status') is distinct from 'ran'`: "0",
	} {
		if got := text(sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// waitingTable is an application's table of so many rows, with a worker whose handler waits for each page before it takes the rows.
func waitingTable(t *testing.T, db *tidemarktest.DB, wait string, rows int, settings string) {
	t.Helper()
	execSQL(t, db, fmt.Sprintf(`
create table births (id bigint generated always as identity primary key);
create table taken (id text);
create function take(rows births[]) returns void language plpgsql as $$
begin
	perform %s;
	insert into taken select id from unnest(rows);
end $$;
insert into births select from generate_series(1, %d);
select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "safety": "sequence"}');
select tidemark.worker_set('sql', '{"source": "table", "handler": "sql", "handler_ref": "public.take", %s}');
select tidemark.worker_source_add('sql', 'births');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.sql.enabled', true)`, wait, rows, settings))
}

// has asks whether the query's answer is true.
func has(db *tidemarktest.DB, sql string) func() bool {
	return func() (yes bool) {
		return db.Pool.QueryRow(context.Background(), sql).Scan(&yes) == nil && yes
	}
}

// A page_timeout that an operator changes counts for the worker that runs: a row that takes longer than the old one is taken.
func TestDaemonTablePageTimeout(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	waitingTable(t, db, "pg_sleep(0.5)", 1, `"page_timeout": "200 ms", "retry_policy": {"base_seconds": 0.1, "max_attempts": 100}`)
	c := settings(db)
	c.Poll.Max = 50 * time.Millisecond
	run(t, c)
	eventually(t, "the row has failed", has(db, `select exists (select from tidemark.pending_row where last_error like '57014%')`))
	execSQL(t, db, `select tidemark.worker_set('sql', '{"page_timeout": "5 s"}')`)
	eventually(t, "the row is taken", has(db, `select exists (select from taken)`))
}

// Handlers of tables that wait for a lock leave connections for the routes: their events arrive meanwhile.
func TestSlowHandlersLeaveConnections(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	waitingTable(t, db, "pg_advisory_xact_lock_shared(42)", 100, `"shards": 4, "page_timeout": "10 min"`)
	lock := db.Connect(t)
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(42)`); err != nil {
		t.Fatal(err)
	}
	c := settings(db)
	c.Database.MaxConnections = 3
	p := run(t, c)
	eventually(t, "a handler waits", has(db, `select exists (select from pg_locks where locktype = 'advisory' and not granted
		and database = (select oid from pg_database where datname = current_database()))`))
	for n := 1; n <= 3; n++ {
		execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
		eventually(t, "a delivery", func() bool { return r.count() == n })
	}
	eventually(t, "the metrics tell of it", func() bool {
		_, body := get(t, "http://"+p.Addr()+"/metrics")
		return strings.Contains(body, `tidemark_pool_slots{state="max"} 1`) && strings.Contains(body, `tidemark_pool_slots{state="taken"} 1`) &&
			strings.Contains(body, `tidemark_pool_slots{state="waiting"} 3`)
	})
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(42)`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all rows are taken", has(db, `select count(distinct id) = 100 and count(*) = 100 from taken`))
}
