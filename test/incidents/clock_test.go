package incidents

import (
	"net/http"
	"testing"
)

// steps makes the clock of the server step: what it has noted, and what daemons remember of it, is of another time then.
func (n *night) steps(by string) {
	n.t.Helper()
	n.exec(`update tidemark.heartbeat set last_beat_at = last_beat_at - interval '` + by + `', lease_until = lease_until - interval '` + by + `',
			payload = payload || jsonb_build_object('clock', (payload ->> 'clock')::numeric - extract(epoch from interval '` + by + `'));
		update tidemark.pending set created_at = created_at - interval '` + by + `', next_attempt_at = next_attempt_at - interval '` + by + `'`)
}

// Incident 17: an hour back. Retries wait for an hour more, and so does the lease of an executor that died.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	target.answers(http.StatusServiceUnavailable)
	n.route("billing", "webhook", target.URL, billing+`, "retry_policy": {"base_seconds": 1}`)
	n.daemon(billingSecret)
	n.emit(1, 20)
	n.until("they are tried", func() bool {
		return n.value(`select count(*)::text from tidemark.finding where kind = 'target_down'`) == "1"
	})
	n.happens()
	n.steps("-1 hour")
	target.answers(http.StatusOK)
	c := n.sees("bad", "clock_step server", `, \d+ wait`, `the clock of the server stepped back by 01:00:00, as daemon/courier saw; \d+ deliveries, rows, commands or jobs wait for a time of the old clock`)
	if target.events() == 20 {
		t.Error("nothing was held")
	}
	n.mend(c)
	n.gone("clock_step")
	n.until("all events arrive", func() bool { return target.events() == 20 })
}

// Incident 17: an hour forward.
func TestClockStepsForward(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.emit(1, 10)
	n.handled(10)
	n.happens()
	n.steps("1 hour")
	n.emit(11, 20)
	c := n.sees("warn", "clock_step server", `the clock of the server stepped forward by 01:00:00, as daemon/courier saw, or its host stood still; nothing is held`)
	n.mend(c)
	n.gone("clock_step")
	n.handled(20)
}
