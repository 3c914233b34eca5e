package worker_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

func TestDelivers(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	i := run(t, db, ts)
	emit(t, db, "a1", "b1", "a2")
	got := ts["app"].wait(t, 3)
	if arrivedAs(got) != "a1 b1 a2" && arrivedAs(got) != "b1 a1 a2" && arrivedAs(got) != "a1 a2 b1" {
		t.Errorf("got %s", arrivedAs(got))
	}
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent", "app 3 1 sent")
	i.stop()
	eventually(t, db, `select concat_ws(' ', lease_owner, last_status) from tidemark.heartbeat`, "released")
	if d := got[0]; d.Epoch == 0 || d.Attempt != 1 || d.Route != "app" || d.Event.ID == "" || d.Event.CreatedAt.IsZero() || d.Replay {
		t.Errorf("got %+v", d)
	}
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

func TestRetries(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "retry_policy": {"base_seconds": 0.01, "max_attempts": 3}`)
	failing := map[string]int{"b1": 1, "c1": 9}
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		text := arrivedAs([]sink.Delivery{d})
		if d.Attempt <= failing[text] {
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
		}
		if text == "d1" {
			return sink.Result{Status: sink.Permanent, Code: "http_400", Detail: "never"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "a1", "b1", "c1", "d1")
	eventually(t, db, settled, "true")
	eventually(t, db, evidence, "app 1 1 sent",
		"app 2 1 pending http_503", "app 2 2 sent",
		"app 3 1 pending http_503", "app 3 2 pending http_503", "app 3 3 failed http_503",
		"app 4 1 failed http_400")
	eventually(t, db, `select concat_ws(' ', seq, error_code, error_detail, attempts) from tidemark.dead_letter order by seq`,
		"3 http_503 not now (given up after 3 attempts) 3", "4 http_400 never 1")
	eventually(t, db, `select kind || ' ' || subject from tidemark.finding where closed_at is null`, "cursor_dlq default")

	ts["app"].answers(nil)
	exec(t, db, `select tidemark.dead_letter_replay_many()`)
	eventually(t, db, `select concat_ws(' ', seq, resolution, attempts) from tidemark.dead_letter order by seq`, "3 sent 5", "4 sent 3")
	for _, d := range ts["app"].wait(t, 4)[2:] {
		if !d.Replay {
			t.Errorf("%s is not marked as a replay", arrivedAs([]sink.Delivery{d}))
		}
	}
	exec(t, db, `select tidemark.maintain()`)
	eventually(t, db, `select kind from tidemark.finding where closed_at is null`)
}

// A target that hangs fills its own pending; the others get theirs at once.
func TestDeadTargetHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "timeout": "300 ms"`)
	ts["other"] = newTarget()
	route(t, db, "other", "")
	ts["app"].answers(func(ctx context.Context, _ sink.Delivery) sink.Result {
		<-ctx.Done()
		return sink.Result{Status: sink.Retry, Code: "timeout", Detail: "nobody there, it says 4111-1111"}
	})
	run(t, db, ts)
	for range 50 {
		emit(t, db, "a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1")
	}
	ts["other"].wait(t, 400)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "400")
	eventually(t, db, `select kind || ' ' || subject from tidemark.finding where closed_at is null`, "target_down app")
	eventually(t, db, `select (count(*) < 20)::text from tidemark.attempt`, "true") // the breaker spares it the rest
	// What the target said may quote a payload: readers have the code.
	eventually(t, db, `select f.detail || '|' || m.message from tidemark.finding f join tidemark.finding_message m on m.finding = f.id`,
		"worker default: its target fails, and is left alone for a while: timeout (300ms)|nobody there, it says 4111-1111")
}

func TestMisconfiguredRoute(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	route(t, db, "typo", "")
	run(t, db, ts)
	emit(t, db, "a1", "a2")
	ts["app"].wait(t, 2)
	eventually(t, db, `select concat_ws(' ', kind, subject, detail) from tidemark.finding where closed_at is null`,
		`route_misconfigured typo worker default: there is no target "typo"`)
	eventually(t, db, `select route_code || ' ' || seq || ' ' || reason from tidemark.route_attempt where route_code = 'typo' and outcome = 'pending'`, "typo 1 misconfigured", "typo 2 misconfigured")
	// Repaired, its events go.
	exec(t, db, `update tidemark.outbound_route set target_ref = 'app' where route_code = 'typo'`)
	exec(t, db, `update tidemark.pending set next_attempt_at = now()`)
	emit(t, db, "a3")
	eventually(t, db, settled, "true")
	eventually(t, db, `select kind from tidemark.finding where closed_at is null`)
}

func TestTargetIsGone(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		return sink.Result{Status: sink.Permanent, Code: "http_410", Detail: "gone for good", Gone: true}
	})
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select enabled::text from tidemark.outbound_route`, "false")
	eventually(t, db, `select f.detail || '|' || m.message from tidemark.finding f join tidemark.finding_message m on m.finding = f.id where f.kind = 'route_gone'`,
		"the target answered that it is gone for good; the route was switched off|gone for good")
	eventually(t, db, `select reason from tidemark.audit where object = 'outbound_route app' order by id desc limit 1`, "the target is gone")
}

func TestStopEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 1`)
	began, next := make(chan struct{}, 9), make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		began <- struct{}{}
		<-next
		return sink.Result{Status: sink.Delivered}
	})
	emit(t, db, "a1", "a2")
	i := run(t, db, ts, func(o *worker.Options) { o.Lease = 30 * time.Second })
	<-began
	eventually(t, db, `select count(*)::text from tidemark.pending`, "2") // no page waits for ever
	stopped := make(chan struct{})
	go func() { i.stop(); close(stopped) }()
	for i.permit.Allows(1) {
		runtime.Gosched()
	}
	close(next)
	<-stopped
	eventually(t, db, evidence, "app 1 1 pending busy", "app 1 2 sent", "app 2 1 pending busy")
	if len(began) != 0 {
		t.Error("a delivery began after the stop")
	}
}

// What is cut off since it outlasts the time to stop is recorded, and so is what ended meanwhile: neither comes again as if nothing had been.
func TestStopRecordsWhatItCutsOff(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 2`)
	began, next := make(chan struct{}, 9), make(chan struct{})
	ts["app"].answers(func(ctx context.Context, d sink.Delivery) sink.Result {
		began <- struct{}{}
		if d.Event.Key == "a" {
			<-ctx.Done()
			return sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "cut off"}
		}
		<-next
		return sink.Result{Status: sink.Delivered}
	})
	emit(t, db, "a1", "b1")
	i := run(t, db, ts, func(o *worker.Options) { o.Lease, o.StopTime = 30*time.Second, 100*time.Millisecond })
	<-began
	<-began
	stopped := make(chan struct{})
	go func() { i.stop(); close(stopped) }()
	for i.permit.Allows(1) {
		runtime.Gosched()
	}
	close(next)
	<-stopped
	eventually(t, db, `select concat_ws(' ', item, error_count) from tidemark.waiting`, "1 1")
	eventually(t, db, `select seq || ' ' || outcome from tidemark.route_attempt where outcome = 'sent'`, "2 sent")
}
