package incidents

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Incident 4: a webhook refuses connections. The error is on the screen, whole.
func TestWebhookRefuses(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	at := target.Listener.Addr().String()
	target.Close()
	n.route("billing", "webhook", target.URL, billing)
	n.daemon(billingSecret)
	n.happens()
	n.emit(1, 30)
	c := n.sees("bad", "target_down billing", `, 30 wait`, `: connect: dial tcp `+at+`: connect: connection refused( \(seen \d+ times\))?$`)

	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(target.Config.Handler)
	_ = again.Listener.Close()
	again.Listener = listener
	again.Start()
	t.Cleanup(again.Close)
	n.mend(c)
	n.gone("target_down")
	n.until("all events arrive", func() bool { return target.events() == 30 })
	if dead := n.value(`select count(*)::text from tidemark.dead_letter`); dead != "0" {
		t.Errorf("%s events died", dead)
	}
}

// Incident 4: a webhook takes the request and does not answer. That it is slow too is no news.
func TestWebhookHangs(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	hangs := make(chan struct{})
	t.Cleanup(func() { // before the receiver closes
		select {
		case <-hangs:
		default:
			close(hangs)
		}
	})
	answers := target.Config.Handler
	target.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case <-hangs:
			answers.ServeHTTP(w, q)
		case <-q.Context().Done():
		}
	})
	n.route("billing", "webhook", target.URL, billing+`, "timeout": "5 seconds"`)
	n.daemon(billingSecret)
	n.happens()
	n.emit(1, 30)
	c := n.sees("bad", "target_down billing", `, 30 wait`, `: timeout \(5s\): outcome unknown: no answer within the time for it( \(seen \d+ times\))?$`)
	if causes, text, _ := n.screen(); len(causes) != 1 {
		t.Errorf("%d causes:\n%s", len(causes), text)
	}
	close(hangs)
	n.mend(c)
	n.gone("target_down")
	n.until("all events arrive", func() bool { return target.events() == 30 })
}

// Incident 8: the dead letters of one route are full. The SQL of the view replays them all, and those of no other route.
func TestFullDeadLetters(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	n.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as 'begin raise exception ''the total is missing''; end'`)
	n.exec(`select tidemark.type_set('refund', 'made');
		select tidemark.route_set('refunds', '{"domain": "refund", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')`)
	n.route("billing", "webhook", target.URL, billing+`, "concurrency": 16`)
	n.daemon(billingSecret)
	n.happens()
	target.answers(http.StatusUnprocessableEntity)
	n.emit(1, 900)
	n.until("900 events die", func() bool { return n.value(`select count(*)::text from tidemark.dead_letter`) == "900" })
	target.answers(http.StatusNotFound)
	n.emit(901, 1400)
	n.exec(`select tidemark.emit('refund', 'made') from generate_series(1, 3)`)
	c := n.sees("bad", "dead_letters billing", `, 1400 wait`, `1400 dead letters, .*: 900 × http_422 \(422 Unprocessable Entity: the total is missing\); 500 × http_404 \(404 Not Found`)
	n.sees("bad", "dead_letters refunds", `, 3 wait`, `3 × P0001`)
	if want := "tidemark dead-letter replay --route billing"; len(c.next) != 1 || c.next[0] != want {
		t.Errorf("next is %q", c.next)
	}

	target.answers(http.StatusOK)
	n.psql(n.value(`select c.sql[1] from tidemark.cause c where c.subject = 'billing'`))
	n.gone("dead_letters billing")
	n.until("all events arrive", func() bool { return target.events() == 1400 })
	if left := n.value(`select string_agg(r.route_code || ' ' || l.error_code, ',') from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id
		where l.resolved_at is null`); left != strings.TrimSuffix(strings.Repeat("refunds P0001,", 3), ",") {
		t.Errorf("left open: %s", left)
	}
}
