package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/sink"
)

// A closed gate stops what has not begun, and cuts off what is under way.
func TestGateClosesInMidDelivery(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 1`)
	began := make(chan struct{}, 10)
	ts["app"].answers(func(ctx context.Context, _ sink.Delivery) sink.Result {
		began <- struct{}{}
		<-ctx.Done()
		return sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "cut off"}
	})
	emit(t, db, "a1", "a2", "a3")
	run(t, db, ts)
	for try := 1; ; try++ { // a busy machine makes any of them slow, and not all
		<-began
		closed := time.Now()
		exec(t, db, `select tidemark.gate_set('routes.enabled', false)`)
		eventually(t, db, `select last_status from tidemark.heartbeat`, "closed")
		eventually(t, db, `select count(*)::text from tidemark.pending`, "3")
		if took := time.Since(closed); took <= time.Second {
			break
		} else if try == 5 {
			t.Fatalf("none of %d took less than a second, the last one %s", try, took)
		}
		exec(t, db, `update tidemark.pending set next_attempt_at = clock_timestamp()`)
		exec(t, db, `select tidemark.gate_set('routes.enabled', true)`)
	}
	ts["app"].answers(nil)
	n := ts["app"].count()
	emit(t, db, "b1")
	eventually(t, db, `select status from tidemark.worker_health`, "closed")
	if got := ts["app"].count(); got != n || len(began) != 0 {
		t.Errorf("%d deliveries while the gate was closed", got-n+len(began))
	}
	exec(t, db, `select tidemark.gate_set('routes.enabled', true)`)
	eventually(t, db, settled, "true")
	if got := arrivedAs(ts["app"].wait(t, n+4)[n:]); !strings.Contains(got, "a1 a2 a3") || !strings.Contains(got, "b1") {
		t.Errorf("got %s", got)
	}
}

// A route that is switched off in mid-delivery is left alone at once; others go on.
func TestRouteSwitchedOff(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 1`)
	ts["other"] = newTarget()
	route(t, db, "other", "")
	next := make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		<-next
		return sink.Result{Status: sink.Delivered}
	})
	emit(t, db, "a1", "a2", "a3")
	run(t, db, ts)
	ts["other"].wait(t, 3)
	exec(t, db, `update tidemark.outbound_route set enabled = false where route_code = 'app'`)
	emit(t, db, "a4")
	ts["other"].wait(t, 4)
	eventually(t, db, `select outcome::text from tidemark.route_attempt where route_code = 'app' and seq = 4`, "disabled")
	// Two heartbeats have asked for the gates by then.
	eventually(t, db, fmt.Sprintf(`select (ticks_total > %s + 2)::text from tidemark.heartbeat`, texts(t, db, `select ticks_total::text from tidemark.heartbeat`)[0]), "true")
	close(next)
	eventually(t, db, `select string_agg(seq || ' ' || outcome || coalesce(' ' || reason, ''), ', ' order by seq, attempt_no) from tidemark.route_attempt where route_code = 'app' and attempt_no > 1 or route_code = 'app' and seq = 4`,
		"1 sent, 4 disabled")
	if got := ts["app"].count(); got != 1 {
		t.Errorf("%d deliveries, want the one under way", got)
	}
	exec(t, db, `update tidemark.outbound_route set enabled = true where route_code = 'app'`)
	eventually(t, db, settled, "true")
	if got := arrivedAs(ts["app"].wait(t, 3)); got != "a1 a2 a3" {
		t.Errorf("got %s", got)
	}
}
