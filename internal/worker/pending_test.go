package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

// A delivery that an operator gives up while it is under way is recorded in its dead letter, and the events of its key come after it, in
// their order, those that are emitted later too.
func TestGivenUpUnderWay(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	release := holding(ts["app"])
	run(t, db, ts)
	emit(t, db, "s1")
	eventually(t, db, `select seq::text from tidemark.pending`, "1")
	emit(t, db, "s2", "s3")
	eventually(t, db, `select concat_ws(' ', seq, next_attempt_at) from tidemark.pending where seq > 1 order by seq`, "2 infinity", "3 infinity")
	exec(t, db, `select tidemark.pending_discard('it hangs', 'app', 1)`)
	emit(t, db, "a4")
	eventually(t, db, `select outcome::text from tidemark.route_attempt where seq = 4`, "sent")
	eventually(t, db, `select concat_ws(' ', error_code, coalesce(resolution, 'open')) from tidemark.dead_letter`, "given_up open")
	release()
	eventually(t, db, `select concat_ws(' ', error_code, coalesce(resolution, 'open'), attempts) from tidemark.dead_letter`, "given_up sent 3")
	eventually(t, db, settled, "true")
	emit(t, db, "s5", "s6")
	var s []string
	for _, e := range strings.Fields(arrivedAs(ts["app"].wait(t, 6))) {
		if strings.HasPrefix(e, "s") {
			s = append(s, e)
		}
	}
	if got := strings.Join(s, " "); got != "s1 s2 s3 s5 s6" {
		t.Errorf("arrived: %s", got)
	}
	eventually(t, db, settled, "true")
}

// A delivery that an operator parks while it is under way, and that is refused for now, is tried no sooner than that. One that arrives is not
// sent again.
func TestParkedUnderWay(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	held := make(chan struct{})
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		<-held
		if d.Event.Key == "s" {
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "busy"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "s1", "t2")
	eventually(t, db, `select seq::text from tidemark.pending order by seq`, "1", "2")
	exec(t, db, `select tidemark.pending_retry('maintenance', 'app', n, not_before => clock_timestamp() + interval '1 day') from generate_series(1, 2) n`)
	close(held)
	eventually(t, db, `select concat_ws(' ', seq, error_count, last_error, next_attempt_at > clock_timestamp() + interval '23 hours') from tidemark.pending`, "1 1 http_503: busy t")
	eventually(t, db, `select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.route_attempt where attempt_no > 1 order by seq`, "1 2 pending http_503", "2 2 sent")
	if got := arrivedAs(ts["app"].wait(t, 1)); got != "t2" {
		t.Errorf("arrived: %s", got)
	}
}

// What waits for an hour is delivered at once when an operator says so, and what waits behind it; what is given up is not.
func TestTriedNow(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 3600}`)
	var down atomic.Bool
	down.Store(true)
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		if down.Load() {
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "busy"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "s1", "s2", "t3", "t4")
	eventually(t, db, `select concat_ws(' ', seq, next_attempt_at > now() + interval '10 minutes', last_error) from tidemark.pending where error_count > 0 order by seq`,
		"1 t http_503: busy", "3 t http_503: busy")
	down.Store(false)
	exec(t, db, `select tidemark.pending_discard('not wanted', 'app', 3)`)
	eventually(t, db, `select outcome::text from tidemark.route_attempt where seq = 4 and attempt_no > 1`, "sent") // it was behind 3
	exec(t, db, `select tidemark.pending_retry('it is up', 'app', 1)`)
	eventually(t, db, settled, "true")
	eventually(t, db, `select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.route_attempt where seq in (1, 3) order by seq, attempt_no`,
		"1 1 pending http_503", "1 2 sent", "3 1 pending http_503", "3 2 failed given_up")
}
