package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/time/rate"
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

// Incident 12: the topic is missing, then Kafka is down. The events wait.
func TestKafkaDown(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Close() })
	address := cluster.ListenAddrs()[0]
	n.route("ledger", "kafka", "shop", "")
	n.daemon(fmt.Sprintf("connections: {main: {kind: kafka, brokers: [%q]}}\n", address))
	arrive := func(events int) {
		t.Helper()
		n.until(fmt.Sprintf("%d events are in the topic", events), func() bool { return cluster.PartitionInfo("shop", 0).HighWatermark >= int64(events) })
	}
	n.happens()
	n.emit(1, 10)
	c := n.sees("bad", "target_down ledger", `, 10 wait`, `unknown_topic: UNKNOWN_TOPIC_OR_PARTITION`)
	if err := cluster.CreateTopic("shop", 1, nil); err != nil {
		t.Fatal(err)
	}
	n.mend(c)
	n.gone("target_down")
	arrive(10)

	cluster.Close()
	n.happens()
	n.emit(11, 30)
	c = n.sees("bad", "target_down ledger", `, 20 wait`, `dial tcp `+address+`: connect: connection refused`)
	_, port, _ := net.SplitHostPort(address)
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(number), kfake.SeedTopics(1, "shop")); err != nil {
		t.Fatal(err)
	}
	n.mend(c)
	n.gone("target_down")
	arrive(20)
	if dead := n.value(`select count(*)::text from tidemark.dead_letter`); dead != "0" {
		t.Errorf("%s events died", dead)
	}
}

// Incident 8: the dead letters of one route are full. The SQL of the view replays them all, as the button does, and those of no
// other route.
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
	if *inBrowser {
		n.mend(c)
	} else {
		n.psql(n.value(`select c.sql[1] from tidemark.cause c where c.subject = 'billing'`))
	}
	n.gone("dead_letters billing")
	n.until("all events arrive", func() bool { return target.events() == 1400 })
	if left := n.value(`select string_agg(r.route_code || ' ' || l.error_code, ',') from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id
		where l.resolved_at is null`); left != strings.TrimSuffix(strings.Repeat("refunds P0001,", 3), ",") {
		t.Errorf("left open: %s", left)
	}
}

// Incident 22: an SQL target loops on one event. Its time ends, and the others go on.
func TestTargetLoopsOnce(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as $$
		begin
			insert into public.got (key) values (event ->> 'key');
			while event ->> 'key' = '7' loop perform 1; end loop;
		end $$`)
	n.route("orders", "sql", "public.take", `, "timeout": "3 seconds"`)
	n.daemon("")
	n.happens()
	n.emit(1, 30)
	c := n.sees("warn", "dead_letters orders", `, 1 waits`, `1 dead letter, .*: 1 × 57014 \(it took longer than 00:00:03: `)
	n.until("the others are handled", func() bool { return n.value(`select count(distinct key)::text from public.got`) == "29" })
	n.mended()
	n.mend(c)
	n.gone("dead_letters")
	n.handled(30)
}

// Incident 22: it loops on every event, so that each of them takes the whole time.
func TestTargetLoops(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as 'begin loop perform 1; end loop; end'`)
	n.route("orders", "sql", "public.take", `, "timeout": "3 seconds"`)
	n.daemon("")
	n.happens()
	n.emit(1, 30)
	c := n.sees("warn", "dead_letters orders", `\d+ × 57014 \(it took longer than 00:00:03: `)
	n.mended()
	n.until("no more of them wait", func() bool { return n.value(`select count(*)::text from tidemark.pending`) == "0" })
	n.mend(c)
	n.gone("dead_letters")
	n.handled(30)
}

// mended is the SQL target as it was.
func (n *night) mended() {
	n.t.Helper()
	n.exec(`create or replace function public.take(event jsonb) returns void language sql as 'insert into public.got (key) values (event ->> ''key'')'`)
}

const huge = `select tidemark.emit('shop', 'order.paid', jsonb_build_object('scan', repeat('x', 50000000)), key => '1')`

// Incident 23: one event of 50 MB is refused, and the writer knows why.
func TestHugeEventIsRefused(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.daemon("")
	_, err := n.Pool.Exec(t.Context(), huge)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "TM005" || refused.Message != "payload has 50000012 bytes, and must have at most 1000000" {
		t.Errorf("error %v", err)
	}
	n.gone("") // the worker has run, and nothing is wrong
}

// Incident 23: the limit is off, and the link between the database and the daemon is too slow for the event.
func TestHugeEventDoesNotArrive(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	n.route("billing", "webhook", target.URL, billing)
	n.exec(`update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	link := newLink(t, n.URL)
	direct := n.url
	n.url = link.url
	n.daemon(billingSecret + "lease: 3s\n")
	n.url = direct
	n.happens()
	n.exec(huge)
	n.emit(2, 30)
	c := n.sees("warn", "dead_letters billing", `, 1 waits`, `1 × unreadable`)
	n.until("the others arrive", func() bool { return target.events() == 29 })
	link.isFast()
	n.mend(c)
	n.gone("dead_letters")
	n.until("all events arrive", func() bool { return target.events() == 30 })
}

// link is a slow way from the database: 2 MB a second.
type link struct {
	url    string
	pace   *rate.Limiter
	across sync.WaitGroup
}

func newLink(t *testing.T, database string) *link {
	t.Helper()
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := to.Host
	to.Host = listener.Addr().String()
	l := &link{url: to.String(), pace: rate.NewLimiter(2<<20, 1<<20)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		l.across.Wait()
	})
	l.across.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			l.across.Go(func() { l.connect(ctx, near, server) })
		}
	})
	return l
}

func (l *link) isFast() { l.pace.SetLimit(rate.Inf) }

// connect copies in both directions until an end closes, or ctx.
func (l *link) connect(ctx context.Context, near net.Conn, server string) {
	far, err := net.Dial("tcp", server)
	if err != nil {
		_ = near.Close()
		return
	}
	stop := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer stop()
	l.across.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	piece := make([]byte, 64<<10)
	for {
		k, err := far.Read(piece)
		if err != nil || l.pace.WaitN(ctx, k) != nil {
			break
		}
		if _, err := near.Write(piece[:k]); err != nil {
			break
		}
	}
	_, _ = near.Close(), far.Close()
}
