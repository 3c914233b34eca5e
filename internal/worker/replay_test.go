package worker_test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

// RO10: an idle worker goes on with a replay: to the outside marked as one and in order, inside the database once.
func TestRouteReplayByTheWorker(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	exec(t, db, `create table got (n text); create function public.take(e jsonb) returns void language sql
		as 'insert into got values (e -> ''payload'' ->> ''n'')'`)
	exec(t, db, `select tidemark.route_set('inside', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')`)
	run(t, db, ts)
	emit(t, db, "a1", "b1", "a2")
	eventually(t, db, settled, "true")

	exec(t, db, `select tidemark.route_replay(r, 'a drill', from_seq => 1) from unnest(array['app', 'inside']) r`)
	eventually(t, db, `select concat_ws(' ', route_code, state, staged, sent, failed) from tidemark.replay_summary order by id`,
		"app finished 3 3 0", "inside finished 3 3 0")
	of := map[string]string{}
	for _, d := range ts["app"].wait(t, 6)[3:] {
		of[d.Event.Key] += arrivedAs([]sink.Delivery{d})
		if !d.Replay || d.Attempt != 3 {
			t.Errorf("replayed as %+v", d)
		}
	}
	if of["a"] != "a1a2" || of["b"] != "b1" {
		t.Errorf("replayed %v", of)
	}
	eventually(t, db, `select n || ' ' || count(*) from got group by n order by n`, "a1 2", "a2 2", "b1 2")
	eventually(t, db, `select concat_ws(' ', attempt_no, outcome, reason, count(*)) from tidemark.route_attempt group by attempt_no, outcome, reason order by 1`,
		"1 sent 6", "2 pending replay 6", "3 sent 6")
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}
