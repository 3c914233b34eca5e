package test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What closes while the end of a pass waits is closed for this pass too: what its handler has done is taken back, in the
// transaction of a Go program as well.
func TestSourceClosedAtTheEndOfAPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ closes, gate, reopens string }{
		"a gate, while rows are counted": {
			`select tidemark.gate_set('worker.w.enabled', false)`, "worker.w.enabled", `select tidemark.gate_set('worker.w.enabled', true)`,
		},
		"a pause, which has the cursor": {`select tidemark.worker_pause('w', true, 'why')`, "paused", `select tidemark.worker_pause('w', false, 'why')`},
	} {
		for _, program := range []string{"SQL", "Go"} {
			t.Run(name+", "+program, func(t *testing.T) {
				t.Parallel()
				db := tidemarktest.NewDB(t)
				s, operator := tail(t, db, "declared", `{"sweep_window": "1 hour", "sweep_every": "1 hour"}`), open(t, db, "operator")
				s.rewrite("source_recount", "begin\n    if (plan.worker)", "begin perform pg_advisory_xact_lock_shared(1);\n    if (plan.worker)")
				s.exec(insertAt("now() - interval '10 minutes'"))
				s.drain()
				s.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at' where worker = 'w'`)
				const window = `select coalesce(last_run_summary ->> 'step' = 'forward' and sweep ->> 'segment' = 'window', false) from tidemark.worker_cursor where worker = 'w'`
				for passes := 0; !one[bool](s.session, window); passes++ {
					if s.once(); passes == 20 {
						t.Fatal(s.lines(`select * from tidemark.worker_cursor where worker = 'w'`))
					}
				}
				s.exec(insertAt("now() - interval '20 minutes'"))
				const state = `select sweep::text || events_seen || last_run_at from tidemark.worker_cursor where worker = 'w'`
				before := one[string](s.session, state)

				pass := `select tidemark.worker_run('w')::jsonb ->> 'detail'`
				var args []any
				if program == "Go" {
					s.begin()
					pass = `select tidemark.source_close($1, $2::text::tidemark.source_plan, $3::text::tidemark.source_page, '{}', 0, clock_timestamp())::text`
					epoch := one[int64](s.session, `select epoch from tidemark.claim('w', null, null, 'births', 0)`)
					var plan, read string
					if err := s.conn.QueryRow(context.Background(), `select plan, read from tidemark.source_open('w', 'births', 0, $1, null, null)`, epoch).Scan(&plan, &read); err != nil {
						t.Fatal(err)
					}
					s.exec(`insert into taken (id) select 'by a program'`)
					args = []any{epoch, plan, read}
				}
				paused := c.gate == "paused"
				if paused {
					operator.begin()
					operator.exec(c.closes)
				} else {
					operator.exec(`select pg_advisory_lock(1)`)
				}
				ended := later[string](s.session, pass, args...)
				operator.waitsFor(s.session)
				if paused {
					operator.commit()
				} else {
					operator.exec(c.closes)
					operator.exec(`select pg_advisory_unlock(1)`)
				}
				if got, err := ended(); program == "Go" {
					wantCode(t, err, "TM009")
					s.rollback()
				} else if err != nil || got != c.gate {
					t.Errorf("%s, %v, want it closed by %s", got, err, c.gate)
				}
				s.want(`select count(*) from taken`, "1")
				equal(t, "the cursor", one[string](s.session, state), before)

				operator.exec(c.reopens)
				s.drain()
				s.exact()
				s.want(findings)
			})
		}
	}
}

// A gate that closes while the page of a later cursor is handled is closed for what an earlier one has handed over in the same
// transaction.
func TestSourceClosedWhileAnotherIsHandled(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator := tail(t, db, "sequence", `{"filter": "name = 'first'"}`), open(t, db, "operator")
	s.source("later", `{"table": "public.births", "id_column": "id", "safety": "sequence", "filter": "name = 'second'"}`)
	s.exec(`select tidemark.worker_source_add('w', 'later')`)
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin
			insert into taken (id) select id from unnest(rows);
			if rows[1].name = 'second' then perform pg_advisory_xact_lock_shared(1); end if;
			return null; end $$;
		insert into births (name) values ('first'), ('second')`)
	operator.exec(`select pg_advisory_lock(1)`)
	ended := later[string](s.session, `select concat_ws(' ', r ->> 'status', r ->> 'gate', r ->> 'rows', r ->> 'more') from tidemark.worker_run('w') r`)
	operator.waitsFor(s.session)
	operator.exec(`select tidemark.gate_set('worker.w.enabled', false)`)
	operator.exec(`select pg_advisory_unlock(1)`)
	if got, err := ended(); err != nil || got != "closed worker.w.enabled 0 false" {
		t.Errorf("%s, %v, want it closed", got, err)
	}
	s.want(`select count(*) from taken`, "0")
	s.want(`select source, events_seen, last_run_at from tidemark.worker_cursor where worker = 'w' order by 1`, "births 0 -", "later 0 -")

	// Closed from the beginning, it beats for each.
	got := s.once()
	equal(t, "runs", len(got.Runs), 2)
	for _, r := range got.Runs {
		equal(t, r.Source, r.Status+" "+r.Detail, "closed worker.w.enabled")
	}
	s.want(`select executor_id, last_status from tidemark.heartbeat where executor_id like 'w/%' order by 1`, "w/births/0 closed", "w/later/0 closed")
	operator.exec(`select tidemark.gate_set('worker.w.enabled', true)`)
	s.drain()
	s.exact()
}
