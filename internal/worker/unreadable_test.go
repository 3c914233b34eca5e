package worker_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// slowLink is a pool whose connections bring so many bytes a second each.
func slowLink(t *testing.T, db *tidemarktest.DB, perSecond int) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return slowConn{conn, rate.NewLimiter(rate.Limit(perSecond), perSecond/20)}, nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

type slowConn struct {
	net.Conn
	limit *rate.Limiter
}

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.limit.Burst())])
	if n > 0 {
		_ = c.limit.WaitN(context.Background(), n) // no more than a burst: it waits, and gives no error
	}
	return n, err
}

// heavy emits events with so many bytes of payload.
func heavy(t *testing.T, db *tidemarktest.DB, n, bytes int, key string) {
	t.Helper()
	exec(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', repeat('x', $2)), key => nullif($3, '')) from generate_series(1, $1)`, n, bytes, key)
}

const letters = `select concat_ws(' ', r.route_code, l.seq, l.error_code, l.attempts, l.event_snapshot ? 'payload', l.event_snapshot ->> 'key', coalesce(l.resolution, 'open'))
	from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id order by l.seq, r.route_code`

// An event that does not come within the lease is a dead letter of each route that claims it, with its reason. The events
// behind it are delivered, of its key too. Until it is given up the worker is not ready, and says so.
func TestUnreadableEvent(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	route(t, db, "other", "")
	ts["other"] = newTarget()
	emit(t, db, "a1")
	heavy(t, db, 1, 4_000_000, "a")
	emit(t, db, "a3", "b4")
	slow := slowLink(t, db, 400_000)
	i := runOn(t, db, slow, ts, func(o *worker.Options) { o.Lease = 4 * time.Second })
	eventually(t, db, `select kind || ' ' || subject from tidemark.finding where kind = 'worker_failing'`, "worker_failing default")
	if err := i.failing(); err == nil {
		t.Error("the worker reads the same event again and again, and is ready")
	}
	for _, name := range []string{"app", "other"} {
		if got := arrivedAs(ts[name].wait(t, 3)); got != "a1 a3 b4" && got != "a1 b4 a3" && got != "b4 a1 a3" {
			t.Errorf("%s got %s", name, got)
		}
	}
	eventually(t, db, settled, "true")
	eventually(t, db, letters, "app 2 unreadable 1 f a open", "other 2 unreadable 1 f a open")
	// The detail names the route that gave it up last.
	eventually(t, db, `select regexp_replace(regexp_replace(detail, '\d{7}', 'N'), 'route (app|other)', 'route R') from tidemark.finding where kind = 'event_unreadable' and closed_at is null`,
		"event 2 for route R: its payload of N bytes, asked for alone, did not come within the lease of 4s")
	eventually(t, db, `select kind from tidemark.finding where kind = 'worker_failing' and closed_at is null`)
	if err := i.failing(); err != nil {
		t.Errorf("it is over: %v", err)
	}

	// A replay that cannot be read is a dead letter again, and holds up nothing.
	exec(t, db, `select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.route_id = 1`)
	emit(t, db, "a5")
	eventually(t, db, letters, "app 2 unreadable 3 f a open", "other 2 unreadable 1 f a open")
	ts["app"].wait(t, 4)
	i.stop()

	run(t, db, ts)
	exec(t, db, `select tidemark.dead_letter_replay_many()`)
	eventually(t, db, letters, "app 2 unreadable 5 f a sent", "other 2 unreadable 3 f a sent")
	for _, name := range []string{"app", "other"} {
		all := ts[name].wait(t, 5)
		if last := slices.MaxFunc(all, func(a, b sink.Delivery) int { return len(a.Event.Payload) - len(b.Event.Payload) }); !last.Replay || len(last.Event.Payload) != 4_000_009 {
			t.Errorf("%s got %d bytes, replay %t", name, len(last.Event.Payload), last.Replay)
		}
	}
	exec(t, db, `select tidemark.maintain()`)
	eventually(t, db, `select kind from tidemark.finding where closed_at is null`)
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

// What was pending and cannot be read is a dead letter as well; what waited behind it goes on, and retries that are too
// much together come one by one.
func TestUnreadableRetry(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 0.2, "max_seconds": 1, "max_attempts": 100}`)
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
	})
	heavy(t, db, 1, 4_000_000, "a")
	heavy(t, db, 6, 500_000, "")
	emit(t, db, "a8")
	before := run(t, db, ts)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "8")
	before.stop()

	ts["app"].answers(nil)
	runOn(t, db, slowLink(t, db, 400_000), ts, func(o *worker.Options) { o.Lease = 4 * time.Second })
	ts["app"].wait(t, 7)
	eventually(t, db, settled, "true")
	eventually(t, db, `select concat_ws(' ', l.seq, l.error_code, l.event_snapshot ? 'payload') from tidemark.dead_letter l`, "1 unreadable f")
	emit(t, db, "a9")
	if got := ts["app"].wait(t, 8)[7]; got.Event.Seq != 9 {
		t.Errorf("event %d came last", got.Event.Seq)
	}
}

// Large events that are too much together for a lease, and each of them is not, are delivered; the one that is too much
// alone is a dead letter.
func TestLargeEventsOnASlowLink(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	heavy(t, db, 12, 400_000, "")
	heavy(t, db, 1, 8_000_000, "")
	heavy(t, db, 12, 400_000, "")
	runOn(t, db, slowLink(t, db, 800_000), ts, func(o *worker.Options) { o.Lease = 4 * time.Second })
	ts["app"].wait(t, 24)
	eventually(t, db, settled, "true")
	eventually(t, db, `select concat_ws(' ', seq, error_code) from tidemark.dead_letter`, "13 unreadable")
	eventually(t, db, `select count(*)::text from tidemark.route_attempt where outcome = 'sent'`, "24")
	if n := ts["app"].count(); n != 24 {
		t.Error(fmt.Sprint(n, " deliveries, want 24"))
	}
}
