package daemon_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The listening connection is terminated again and again while events come. The poll finds the events
// whose signals are lost.
func TestListenerIsCut(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	run(t, settings(db))
	const cut = `select count(*) from (select pg_terminate_backend(a.pid) from pg_stat_activity a where a.datname = current_database()
		and a.application_name = 'tidemark run' and (a.query like 'listen %' or a.query like '%notify.bridge_enabled%')) c`
	const n = 60
	cuts := 0
	for i := range n {
		execSQL(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $1::int))`, i)
		if i%20 == 10 {
			eventually(t, "the listener to be cut", func() bool {
				var killed int
				if err := db.Pool.QueryRow(context.Background(), cut).Scan(&killed); err != nil {
					t.Fatal(err)
				}
				cuts += killed
				return killed > 0
			})
		}
	}
	eventually(t, "all deliveries", func() bool { return r.count() >= n })
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := map[string]bool{}
	for _, h := range r.got {
		ids[h.Get("Webhook-Id")] = true
	}
	if len(ids) != n {
		t.Errorf("%d of %d events came, with %d cuts", len(ids), n, cuts)
	}
}

// A daemon registers itself, beats, and records its stop.
func TestDaemonBeats(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := run(t, settings(db))
	status := func() (s string) {
		_ = db.Pool.QueryRow(context.Background(), `select last_status || ' ' || (payload ->> 'version') from tidemark.heartbeat where executor_id = 'daemon/test'`).Scan(&s)
		return s
	}
	eventually(t, "a beat", func() bool { return status() == "running test" })
	p.stop()
	if got := status(); got != "stopped test" {
		t.Errorf("after its end it is %q", got)
	}
}

// The check for silent executors goes on while the supervisor cannot even list the workers.
func TestCheckGoesOn(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `select tidemark.heartbeat_register('x', cadence => '1 second')`)
	execSQL(t, db, `update tidemark.heartbeat set watched_since = watched_since - interval '1 hour' where executor_id = 'x'`)
	lock, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.Background()) }()
	run(t, settings(db))
	eventually(t, "the daemon to run", func() bool {
		var n int
		_ = db.Pool.QueryRow(context.Background(), `select count(*) from tidemark.heartbeat where executor_id = 'daemon/test'`).Scan(&n)
		return n == 1
	})
	if _, err := lock.Exec(t.Context(), `lock table tidemark.worker in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "the check", func() bool {
		var n int
		_ = db.Pool.QueryRow(context.Background(), `select count(*) from tidemark.finding where subject = 'x'`).Scan(&n)
		return n == 1
	})
	t.Log("told after", time.Since(began))
}

// A part of the poll that cannot work does not silence the others.
func TestPartsOfAPollFailAlone(t *testing.T) {
	t.Parallel()
	for _, broken := range []struct{ name, signature, returns string }{
		{"beat", "heartbeat_daemon(name text, status text default 'running', payload jsonb default '{}')", "timestamptz"},
		{"silence", "stale_check()", `table (executor_id text, state text, severity tidemark.severity, age_seconds bigint,
			expected_cadence_seconds integer, stale_threshold_seconds integer, last_status text, event_id uuid)`},
		{
			"sleepers", `poll(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[])`,
			"table (n integer, why text)",
		},
	} {
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			r := newReceiver(t)
			live(t, db, r.URL)
			execSQL(t, db, `select tidemark.heartbeat_register('x', cadence => '1 second')`)
			execSQL(t, db, `update tidemark.heartbeat set watched_since = watched_since - interval '1 hour' where executor_id = 'x'`)
			execSQL(t, db, `create or replace function tidemark.`+broken.signature+` returns `+broken.returns+`
				language plpgsql volatile as $$ begin raise 'broken for the test'; end $$`)
			run(t, settings(db))
			number := func(sql string) (n int64) {
				if err := db.Pool.QueryRow(context.Background(), sql).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			execSQL(t, db, `select tidemark.worker_set('late'), tidemark.gate_set('worker.late.enabled', true)`)
			eventually(t, "the worker that came later", func() bool {
				return number(`select count(*) from tidemark.heartbeat where executor_id = 'late/outbox/0' and ticks_total > 0`) == 1
			})
			execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{}')`)
			eventually(t, "the delivery", func() bool { return r.count() == 1 })
			if broken.name != "silence" {
				eventually(t, "the check for silence", func() bool {
					return number(`select count(*) from tidemark.finding where subject = 'x'`) == 1
				})
			}
			if broken.name != "beat" {
				eventually(t, "a second beat", func() bool {
					return number(`select coalesce(max(ticks_total), 0) from tidemark.heartbeat where executor_id = 'daemon/test'`) >= 2
				})
			}
		})
	}
}
