package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An executor gives the worker of a Go program a source, and no other worker one: not by the function under it either.
func TestExecutorsGiveOnlyGoWorkersTheirSources(t *testing.T) {
	t.Parallel()
	r := foreign(t)
	r.owner.exec(`create table e.t (id bigint generated always as identity primary key); grant select on e.t to public`)
	r.operator.exec(`select tidemark.domain_set('town'), tidemark.type_set('town', 'birth')`)
	r.operator.source("births", `{"table": "e.t", "id_column": "id", "safety": "sequence"}`)
	r.operator.worker("emits", `{"handler": "emit", "handler_ref": "town/birth"}`)
	r.operator.worker("program", `{"handler": "go"}`)
	for _, add := range []string{`select tidemark.worker_source_add('emits', 'births')`, `select tidemark.worker_cursors_make('emits', 'births', '0', 'why')`} {
		if err := r.worker.session.try(add); err == nil || err.Code != "42501" {
			t.Errorf("%s: %v, want 42501", add, err)
		}
	}
	r.worker.exec(`select tidemark.worker_source_add('program', 'births')`)
	r.super.want(`select worker from tidemark.worker_cursor where source = 'births'`, "program")
}

// An executor that leaves out the claim of a replay neither opens a letter that is resolved nor sends it again, nor past a gate.
func TestExecutorsSettleOnlyOpenLetters(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := poisoned(t, db)
	w.emitMany(3)
	w.poison("P0001", 1, 2, 3)
	w.pass()
	w.poison("P0001", 3)
	w.exec(`select tidemark.dead_letter_discard(l.id, 'why') from tidemark.dead_letter l where l.seq = 1`)
	w.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.seq = 2`)
	state := []string{"app 1 P0001 1 discarded", "app 2 P0001 2 sent", "app 3 P0001 1 open"}
	w.wantRows(letters, state...)
	executor := login(t, db, "executor", "tidemark_executor")
	settle := func(want, outcome string, seq int) {
		t.Helper()
		id := one[int64](w, fmt.Sprintf(`select id from tidemark.dead_letter where seq = %d`, seq))
		err := executor.session.try(`select tidemark.dead_letter_settle($1, $2, null, null, null)`, id, outcome)
		if err == nil || err.Code != want {
			t.Errorf("%s, letter of event %d: %v, want %s", outcome, seq, err, want)
		}
		w.wantRows(letters, state...)
		w.wantRows(`select 'pending ' || seq from tidemark.pending`)
	}
	for _, outcome := range one[[]string](w, `select enum_range(null::tidemark.outcome)::text[]`) {
		settle("TM013", outcome, 1)
		settle("TM013", outcome, 2)
	}
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	settle("TM009", "pending", 3)
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	executor.exec(`select tidemark.dead_letter_settle(l.id, 'pending', null, null, null) from tidemark.dead_letter l where l.seq = 3`)
	w.wantRows(`select 'pending ' || seq from tidemark.pending`, "pending 3")
	if err := executor.session.try(`select tidemark.dead_letter_settle(l.id, 'pending', null, null, null) from tidemark.dead_letter l where l.seq = 3`); err == nil || err.Code != "TM013" {
		t.Errorf("a second time: %v, want TM013", err)
	}
	executor.refused("42501", "", `select tidemark.dead_letter_record(1, 'pending', null, null, null)`)
}

// Under the lease of a worker of the log an executor switches off the routes of that worker, and nothing else of a route; the audit has it.
func TestExecutorsSwitchOffRoutesOfTheirLease(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	super := live(t, db)
	super.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true)`)
	executor := login(t, db, "executor", "tidemark_executor")
	gone := `select tidemark.route_gone($1, $2, (select id from tidemark.outbound_route where route_code = 'app'), 'http_410')`
	other := one[int64](executor.session, `select epoch from tidemark.claim('other', 'test', interval '1 minute')`)
	executor.exec(gone, "other", other)
	super.wantRows(`select enabled::text from tidemark.outbound_route`, "true")
	for _, change := range []string{`update tidemark.outbound_route set enabled = false`, `select tidemark.route_set('app', '{"enabled": false}')`, `select tidemark.gate_set('routes.enabled', false)`} {
		executor.refused("42501", "", change)
	}
	epoch := one[int64](executor.session, `select epoch from tidemark.claim('default', 'test', interval '1 minute')`)
	executor.refused("TM011", "", gone, "default", epoch-1)
	executor.exec(gone, "default", epoch)
	super.wantRows(`select enabled::text from tidemark.outbound_route`, "false")
	super.wantRows(`select actor || ': ' || reason from tidemark.audit order by id desc limit 1`, executor.name+": the target is gone")
}

// A row that is being replayed is neither replayed a second time nor discarded.
func TestDeadRowIsReplayedOnceAtATime(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`create function public.refuse(rows anyarray) returns void language plpgsql as $$ begin raise 'never'; end $$;
		insert into births select`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.refuse", "retry_policy": {"base_seconds": 3600, "max_attempts": 1}}`)
	s.once()
	s.want(`select count(*) from tidemark.dead_letter where resolved_at is null`, "1")
	s.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l`)
	s.want(`select count(*) from tidemark.pending_row where dead_letter_id is not null`, "1")
	for _, again := range []string{`select tidemark.dead_letter_replay(1)`, `select tidemark.dead_letter_discard(1, 'why')`} {
		_, err := s.conn.Exec(context.Background(), again)
		if code(err) != "TM013" {
			t.Errorf("%s: %v, want TM013", again, err)
		}
	}
}
