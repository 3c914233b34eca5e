package incidents

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// receiver is a webhook whose answer the test chooses.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	takes  time.Duration
	got    map[string]int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK, got: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		status, takes := r.status, r.takes
		r.mu.Unlock()
		time.Sleep(takes) // it works before it answers
		if status == http.StatusOK {
			r.mu.Lock()
			r.got[q.Header.Get("Webhook-Id")]++
			r.mu.Unlock()
		} else {
			http.Error(w, "the total is missing", status)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) takesFor(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = d
}

func (r *receiver) events() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

const billing = `, "options": {"secret": "billing"}`

const billingSecret = "secrets: {billing: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}\n"

// Incident 1.
func TestOnlyDaemonKilled(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	n.route("billing", "webhook", target.URL, billing)
	daemon := n.daemon(billingSecret)
	n.emit(1, 10)
	n.until("10 events arrive", func() bool { return target.events() == 10 })
	// Silence counts from the last beat.
	n.until("the last beat is five seconds old", func() bool {
		return n.value(`select (now() - last_beat_at > '5 seconds')::text from tidemark.heartbeat where executor_id = 'daemon/courier'`) == "true"
	})
	n.happens()
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	n.emit(11, 40)
	c := n.sees("bad", "daemon_dead daemon/courier", `, 30 wait`, fmt.Sprintf("on host .*, process %d has not beaten for 00:00:3", daemon.Process.Pid), "no other daemon runs")
	n.mend(c)
	n.gone("daemon_dead")
	n.until("all events arrive", func() bool { return target.events() == 40 })
}

// Incident 5: 1,000 poison events on a route inside and on a webhook. Incident 8 in small: the replay is of one route alone.
func TestPoison(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	target.answers(http.StatusUnprocessableEntity)
	n.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as 'begin raise exception ''the total is missing''; end'`)
	n.route("orders", "sql", "public.take", "")
	n.route("billing", "webhook", target.URL, billing+`, "concurrency": 16`)
	n.daemon(billingSecret)
	n.happens()
	n.emit(1, 1000)
	orders := n.sees("bad", "dead_letters orders", `, since \d+s ago, 1000 wait`, `1000 dead letters, .* 1000 × P0001 \(.*the total is missing`)
	c := n.sees("bad", "dead_letters billing", `, since \d+s ago, 1000 wait`, `1000 dead letters, .* 1000 × http_422 \(422 .*the total is missing`)

	target.answers(http.StatusOK)
	n.mend(c)
	n.until("the webhook has all", func() bool { return target.events() == 1000 })
	n.gone("dead_letters billing,")
	if left := n.value(`select count(*)::text from tidemark.dead_letter where resolved_at is null`); left != "1000" {
		t.Errorf("%s letters are open after the replay of one route", left)
	}
	n.exec(`create or replace function public.take(event jsonb) returns void language sql as 'insert into public.got (key) values (event ->> ''key'')'`)
	n.mend(orders)
	n.gone("dead_letters")
	n.handled(1000)
}

// Incident 6.
func TestGateClosedForDays(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.until("maintain has seen that all is read", func() bool { return n.value(`select count(*)::text from tidemark.source_unread`) == "1" })
	n.exec(`select tidemark.gate_set('worker.default.enabled', false, 'the shop moves')`)
	n.emit(1, 25)
	passes := func(time string) {
		n.exec(`set session_replication_role = replica;
			update tidemark.audit set at = at - interval '` + time + `';
			update tidemark.source_unread set noted_at = noted_at - interval '` + time + `';
			update tidemark.outbox set created_at = created_at - interval '` + time + `'; reset session_replication_role`)
	}
	passes("50 minutes") // no news yet
	if causes, text, exit := n.screen(); len(causes) > 0 || exit != 0 {
		t.Errorf("exit status %d\n%s", exit, text)
	}
	passes("3 days")
	n.happens()
	c := n.sees("warn", "gate_closed worker.default.enabled", `, 25 wait`, `since 3d ago`, `by postgres, reason: the shop moves`)
	n.mend(c)
	n.gone("gate_closed")
	n.handled(25)
}

// Incident 24.
func TestUnregisteredType(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.happens()
	n.exec(`select tidemark.emit('shop', 'order.piad') from generate_series(1, 7)`)
	c := n.sees("warn", "emit_unregistered emit", `7 emits stored nothing.*shop/order.piad by postgres \(7\)`)
	n.mend(c)
	n.gone("emit_unregistered")
}

// Incident 18: the receiver's secret was changed. Events wait instead of dying.
func TestSecretIsRefused(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	n.route("billing", "webhook", target.URL, billing+`, "concurrency": 1, "retry_policy": {"max_attempts": 5, "base_seconds": 0.1}`)
	n.daemon(billingSecret)
	n.emit(1, 10)
	n.until("10 events arrive", func() bool { return target.events() == 10 })
	target.answers(http.StatusUnauthorized)
	n.happens()
	// The breaker opens with the fifth refusal, which would be the last attempt of this event.
	n.emit(11, 11)
	n.sees("bad", "credentials_refused billing", `, 1 waits`)
	n.emit(12, 60)
	n.sees("bad", "credentials_refused billing", `, 50 wait`, `http_401; the secret "billing" signs, in use by this daemon since 20`)
	if dead := n.value(`select count(*)::text from tidemark.dead_letter`); dead != "0" {
		t.Errorf("%s events died", dead)
	}
	// The command shows the route; the secret is mended at the receiver.
	target.answers(http.StatusOK)
	n.gone("credentials_refused")
	n.until("all events arrive", func() bool { return target.events() == 60 })
}

// Incident 19: while a daemon lives, the operator is not told to start one.
func TestSlowTarget(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	target.takesFor(3 * time.Second)
	n.route("billing", "webhook", target.URL, billing+`, "concurrency": 2`)
	n.daemon(billingSecret)
	n.happens()
	n.emit(1, 24)
	c := n.sees("warn", "slow_target billing", `half took 3(\.\d+)? s or more, and 99 of 100 up to 3(\.\d+)? s; 2 go at once`, `, \d+ wait`)
	causes, text, _ := n.screen()
	for _, other := range causes {
		if strings.Contains(other.title, "daemon") || strings.HasPrefix(other.title, "pending") {
			t.Errorf("a daemon lives:\n%s", text)
		}
	}
	n.mend(c)
	if got := n.value(`select concurrency::text from tidemark.outbound_route where route_code = 'billing'`); got != "8" {
		t.Errorf("concurrency %s", got)
	}
	n.gone("slow_target")
	n.until("all events arrive", func() bool { return target.events() == 24 })
}
