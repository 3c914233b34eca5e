package api

import "testing"

// Letters that are chosen are tried in the order of their numbers, each once, however they are named.
func TestChosenLettersInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.stage_set('live', 'x'), tidemark.gate_set('routes.enabled', true, 'x'), tidemark.gate_set('worker.default.enabled', true, 'x');
		create function public.take(event jsonb) returns void language plpgsql as $f$ begin raise exception 'no'; end $f$;
		select tidemark.route_set('sql', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.take", "retry_policy": {"max_attempts": 1}, "enabled": true, "dry_run": false}', 'x');
		select tidemark.emit('shop', 'order') from generate_series(1, 2); select tidemark.route_worker_run('default')`)
	tried := gets[Replays](w, oscar, "POST", "/dead-letters/replay", `{"ids": [2, 1, 2], "reason": "it is mended"}`).Items
	if len(tried) != 2 || tried[0].ID != 1 || tried[1].ID != 2 || tried[1].AttemptNo != 2 {
		t.Errorf("%+v", tried)
	}
	if got := one[string](w, `select string_agg(concat_ws(' ', object, after ->> 'outcome', reason, person), ', ' order by id) from tidemark.audit where action = 'dead_letter_replay'`); got != "dead_letter 1 failed it is mended oscar, dead_letter 2 failed it is mended oscar" {
		t.Errorf("the audit has %s", got)
	}
	w.refuses(422, "TM005", oscar, "POST", "/dead-letters/replay", `{"ids": [1]}`)
	w.refuses(422, "TM005", oscar, "POST", "/dead-letters/replay", `{"ids": [1], "reason": " "}`)
	gets[Replays](w, oscar, "POST", "/dead-letters/replay", `{"ids": [1], "dry_run": true}`)
	gets[Replays](w, oscar, "POST", "/dead-letters/replay", `{"route": "sql", "reason": "once more"}`)
	if got := one[string](w, `select string_agg(object, ', ' order by id) from tidemark.audit where reason = 'once more'`); got != "dead_letter 1, dead_letter 2" {
		t.Errorf("the audit has %s", got)
	}
}
