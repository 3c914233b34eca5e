package store_test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The mark stays while an idle installation beats and looks for work, and is another one after each change that people look at.
func TestMark(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	last := ""
	step := func(what string, changes bool, sql string) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		mark, err := store.New(db.Pool).Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if changes != (mark != last) {
			t.Errorf("%s: the mark was %s and is %s", what, last, mark)
		}
		last = mark
	}
	step("a mark", true, `select`)
	step("a type", true, `select tidemark.type_set('shop', 'order')`)
	step("a gate", true, `select tidemark.gate_set('routes.enabled', true, 'x'), tidemark.gate_set('worker.default.enabled', true, 'x'), tidemark.stage_set('live', 'x')`)
	step("a target", false, `create function public.fails(jsonb) returns void language plpgsql as $$ begin raise exception 'no'; end $$`)
	step("a route", true, `select tidemark.route_set('sql', '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.fails",
		"enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}')`)
	step("a daemon", true, `select tidemark.heartbeat_daemon('d', 'running', '{}')`)
	step("its beat", false, `select tidemark.heartbeat_daemon('d', 'running', '{}')`)
	step("a pass", true, `select tidemark.route_worker_run('default')`)
	step("a pass without events", false, `select tidemark.route_worker_run('default')`)
	step("an event", true, `select tidemark.emit('shop', 'order')`)
	step("a dead letter", true, `select tidemark.route_worker_run('default')`)
	step("it is tried again", true, `select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	step("a job", true, `insert into tidemark.letter_job (action, route_id, letters, due_at, requested_by, reason) select 'replay', id, 9, now() + interval '1 hour', 'x', 'x' from tidemark.outbound_route`)
	step("it goes on", true, `update tidemark.letter_job set done = 3`)
	step("it ends", true, `update tidemark.letter_job set finished_at = now()`)
	step("the letter is discarded", true, `select tidemark.dead_letter_discard(id, 'x') from tidemark.dead_letter`)
	step("a finding", true, `select tidemark.finding_open('disk', 'this', 'high', 'full')`)
	step("it is seen again", false, `select tidemark.finding_open('disk', 'this', 'high', 'full')`)
	step("it is over", true, `select tidemark.finding_close('disk', 'this')`)
	step("an emit that stores nothing", true, `select tidemark.emit('shop', 'unknown')`)
	step("a replay", true, `select tidemark.route_replay('sql', 'x', from_seq => 1, to_seq => 1)`)
	step("a pause", true, `select tidemark.worker_pause('default', true, 'x')`)
	step("nothing", false, `select`)
}
