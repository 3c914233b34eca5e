package test

import (
	"context"
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
