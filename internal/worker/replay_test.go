package worker_test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/worker"
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
		if !d.Replay || d.Attempt != 3 || d.First != 3 {
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

// A target that is dead for replays alone is left alone: five are tried, the others wait without an attempt, and are not
// read again and again. A live event goes meanwhile.
func TestDeadTargetAndReplays(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "concurrency": 1, "retry_policy": {"base_seconds": 3600, "max_seconds": 3600}`)
	var r reads
	run(t, db, ts, func(o *worker.Options) { o.Observe = r.observer() })
	exec(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', 'a' || n), key => 'a') from generate_series(1, 40) n`)
	eventually(t, db, settled, "true")
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		if d.Replay {
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	before := r.n.Load()
	exec(t, db, `select tidemark.route_replay('app', 'a drill', from_seq => 1)`)
	const waits = `select concat_ws(' ', w.why, count(*)) from tidemark.pending p
		cross join lateral (select case when p.next_attempt_at < clock_timestamp() + interval '1 minute' then 'untried' else p.last_error end as why) w
		where p.next_attempt_at > clock_timestamp() group by w.why order by w.why`
	eventually(t, db, waits, "http_503: not now 5", "untried 35")
	emit(t, db, "a9")
	if got := ts["app"].wait(t, 41); got[40].Event.Seq != 41 || got[40].Replay {
		t.Errorf("got %+v", got[40])
	}
	if n := r.n.Load() - before; n > 2000 {
		t.Errorf("%d reads over replays that wait", n)
	}
	eventually(t, db, `select kind from tidemark.finding where closed_at is null and kind = 'target_down'`)
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}
