package test

// A pass of a worker of tables: its record, its lease, its gates, and the way back.

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CU1: what a run says, the cursor keeps, and the heartbeat beats.
func TestSourceRunIsRecorded(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", `{"filter": "name <> 'b1'"}`)
	s.exec(insertBirths)
	got := s.once()
	if got.Status != "ran" || got.Rows != 5 || got.Taken != 4 || got.Step != "forward" || got.Phase != "reconciling" || string(got.Result) != `{"taken": 4}` || !got.More {
		t.Errorf("%+v", got)
	}
	s.want(`select last_run_summary ->> 'rows', last_run_summary -> 'result' ->> 'taken', last_run_at > now() - interval '1 minute', events_seen, attempts_written, watermark_id
		from tidemark.worker_cursor where worker = 'w'`, "5 4 true 4 4 5")
	s.want(`select last_status, ticks_total > 0, last_beat_at > now() - interval '1 minute', lease_owner from tidemark.heartbeat where executor_id = 'w/births/0'`, "ok true true -")
	s.drain()
	before := s.lines(`select ticks_total from tidemark.heartbeat where executor_id = 'w/births/0'`)
	s.once()
	if after := s.lines(`select ticks_total from tidemark.heartbeat where executor_id = 'w/births/0'`); after[0] == before[0] {
		t.Errorf("no beat without work")
	}
	s.want(`select phase, status from tidemark.worker_cursor c join tidemark.worker_health h using (worker, source, shard) where c.worker = 'w'`, "incremental idle")
}

// CU7: two instances, one owner. Who was replaced writes nothing.
func TestSourceLease(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := tail(t, db, "clock", ""), tailing{open(t, db, "other")}
	s.exec(insertBirths)
	s.begin()
	s.once()
	if got := other.once(); got.Status != "busy" {
		t.Errorf("%+v, want busy", got)
	}
	s.rollback()
	s.want(`select count(*) from taken`, "0")

	s.want(`select status, epoch > 0 from tidemark.claim('w', 'one', '1 hour', 'births', 0)`, "claimed true")
	if got := other.once(); got.Status != "busy" || !strings.Contains(got.Detail, "one") {
		t.Errorf("%+v, want busy", got)
	}
	epoch := s.lines(`select lease_epoch from tidemark.heartbeat where executor_id = 'w/births/0'`)[0]
	s.exec(`update tidemark.heartbeat set lease_until = now() - interval '1 s'`)
	if got := other.drain(); got.Taken != 5 {
		t.Errorf("%+v, want the rows", got)
	}
	if _, err := s.conn.Exec(t.Context(), `select tidemark.source_pass('w', 'births', 0, $1::bigint)`, epoch); code(err) != "TM011" {
		t.Errorf("%v, want TM011", err)
	}
	s.wantWell()
}

// CU8: pause, and gates, also one that is closed in the middle of a page: what the page did is taken back.
func TestSourceGates(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, op := tail(t, db, "clock", ""), open(t, db, "operator")
	s.exec(insertBirths)
	for _, c := range []struct{ shut, open, detail string }{
		{`select tidemark.worker_pause('w', true, 'x')`, `select tidemark.worker_pause('w', false, 'x')`, "paused"},
		{`select tidemark.gate_set('worker.w.enabled', false)`, `select tidemark.gate_set('worker.w.enabled', true)`, "worker.w.enabled"},
		{`select tidemark.gate_set('routes.enabled', false)`, `select tidemark.gate_set('routes.enabled', true)`, "routes.enabled"},
	} {
		op.exec(c.shut)
		if got := s.once(); got.Status != "closed" || got.Detail != c.detail {
			t.Errorf("%+v, want closed by %s", got, c.detail)
		}
		op.exec(c.open)

		s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$
			begin insert into taken (id) select id from unnest(rows); perform pg_advisory_xact_lock(7); return '{}'; end $$`)
		op.exec(`select pg_advisory_lock(7)`)
		done := make(chan run)
		go func() { done <- s.once() }()
		op.waitsFor(s.session)
		op.exec(c.shut)
		op.exec(`select pg_advisory_unlock(7)`)
		if got := <-done; got.Status != "closed" || got.Detail != c.detail {
			t.Errorf("%+v, want closed by %s", got, c.detail)
		}
		s.want(`select count(*) from taken`, "0")
		op.exec(c.open)
	}
	s.wantWell()
}

// A rewind hands over again what it says, and nothing else.
func TestSourceRewind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safety, changes, to string }{
		{"sequence", "", `to_id => '2'`},
		{"clock", "", `to_ts => '2026-01-01 00:00:03+00'`},
		{"declared", `{"sweep_window": "1 hour", "bucket": "1 second"}`, `to_ts => '2026-01-01 00:00:03.5+00'`},
	} {
		t.Run(c.safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, c.changes)
			s.exec(`insert into births (born_at) select timestamptz '2026-01-01 00:00:00+00' + n * interval '1 s' from generate_series(1, 5) n`)
			s.drain()
			s.exec(`select tidemark.source_rewind('w', 'births', 'again', ` + c.to + `)`)
			s.drain()
			s.sweep()
			s.want(`select string_agg(id, ' ' order by at) from taken`, "1 2 3 4 5 3 4 5")
			s.want(findings)
			for _, bad := range []string{`'', to_id => '1'`, `'x', to_id => '99'`, `'x', to_ts => '2030-01-01'`, `null`} {
				if _, err := s.conn.Exec(t.Context(), `select tidemark.source_rewind('w', 'births', `+bad+`)`); code(err) != "TM005" {
					t.Errorf("%s: %v, want TM005", bad, err)
				}
			}
		})
	}
}
