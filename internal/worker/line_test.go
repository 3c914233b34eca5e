package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A line is a pool whose answers come as a test says: while it is heavy a page with payloads is too much, and each payload
// comes when the function says so.
type line struct {
	*pgxpool.Pool
	heavy     atomic.Bool
	saturated atomic.Bool // nothing renews the lease
	payload   func(ctx context.Context, l *line, seq int64) error
}

var noRoom = &pgconn.PgError{Code: "53200", Message: "no room"}

func (l *line) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "pass_read(") && l.heavy.Load() && !args[9].(bool) { //nolint:forcetypeassert // as store.Read has it
		return nil, noRoom
	}
	return l.Pool.Query(ctx, sql, args...)
}

func (l *line) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	switch {
	case strings.Contains(sql, "pass_payload("):
		if err := l.payload(ctx, l, args[2].(int64)); err != nil { //nolint:forcetypeassert // as store.Payload has it
			return failed{err}
		}
	case strings.Contains(sql, "tidemark.beat(") && l.saturated.Load():
		<-ctx.Done()
		return failed{ctx.Err()}
	}
	return l.Pool.QueryRow(ctx, sql, args...)
}

type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// never comes.
func never(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// onLine runs a worker on a heavy line with leases of so long.
func onLine(t *testing.T, db *tidemarktest.DB, ts targets, lease time.Duration, payload func(ctx context.Context, l *line, seq int64) error, change ...func(*worker.Options)) *line {
	t.Helper()
	l := &line{Pool: db.Pool, payload: payload}
	l.heavy.Store(true)
	runOn(t, db, l, ts, append(change, func(o *worker.Options) { o.Lease = lease })...)
	return l
}

// refusing makes the events pending on the route app.
func refusing(t *testing.T, db *tidemarktest.DB, ts targets, events string, emit func()) {
	t.Helper()
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
	})
	before := run(t, db, ts)
	emit()
	eventually(t, db, `select count(*)::text from tidemark.pending where error_count > 0`, events)
	before.stop()
	ts["app"].answers(nil)
}

const quickRetries = `, "ordering": "key", "retry_policy": {"base_seconds": 0.05, "max_seconds": 0.1, "max_attempts": 100}`

// A page of a small event and one whose payload takes the lease: the small one is delivered, whether the lease could be
// renewed meanwhile or not, and the other one is a dead letter.
func TestSmallEventBesideAnUnreadable(t *testing.T) {
	t.Parallel()
	for name, saturates := range map[string]bool{"leases are renewed": false, "the line is full": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ts := setup(t, quickRetries)
			refusing(t, db, ts, "1", func() { emit(t, db, "a1") })
			heavy(t, db, 1, 100_000, "b")
			emit(t, db, "b3", "a4")
			onLine(t, db, ts, 3*time.Second, func(ctx context.Context, l *line, seq int64) error {
				if seq != 2 {
					return nil
				}
				l.saturated.Store(saturates)
				defer l.saturated.Store(false)
				return never(ctx)
			})
			ts["app"].wait(t, 3)
			eventually(t, db, settled, "true")
			eventually(t, db, letters, "app 2 unreadable 1 f b open")
			if got := arrivedAs(ts["app"].wait(t, 3)); len(got) != len("a1 b3 a4") || strings.Index(got, "a1") > strings.Index(got, "a4") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Large events that each take most of the lease come one after the other, in order, and are delivered at once: what the
// switches said when the page was read is asked for again. On a line that is well again events come many at a time.
func TestEventsThatTakeMostOfTheLease(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	heavy(t, db, 4, 100_000, "a")
	read := &pages{}
	l := onLine(t, db, ts, 3*time.Second, func(ctx context.Context, l *line, _ int64) error {
		if !l.heavy.Load() {
			return nil
		}
		select {
		case <-time.After(1800 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(o *worker.Options) { o.Observe = read.observer() })
	for i, d := range ts["app"].wait(t, 4) {
		if d.Event.Seq != int64(i+1) || len(d.Event.Payload) < 100_000 {
			t.Errorf("event %d came as number %d, with %d bytes", d.Event.Seq, i+1, len(d.Event.Payload))
		}
	}
	eventually(t, db, settled, "true")
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent", "app 3 1 sent", "app 4 1 sent")

	l.heavy.Store(false)
	exec(t, db, `select tidemark.emit_strict('test', 'tick', '{}') from generate_series(1, 1000)`)
	ts["app"].wait(t, 1004)
	read.mu.Lock()
	defer read.mu.Unlock()
	if slices.Max(read.sizes) < 16 {
		t.Errorf("pages of %v events", read.sizes)
	}
}

// Events go from the log between the page and their payload: one that was pending is a dead letter as any that is missing, a new
// one is nothing any more. What comes later is delivered, and nothing without its payload.
func TestPayloadGoneMeanwhile(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, quickRetries)
	exec(t, db, `select setval('tidemark.outbox_seq_seq', 999990, false)`)
	exec(t, db, `update tidemark.worker_cursor set watermark_id = '999989', decided_through = '999989'`)
	refusing(t, db, ts, "1", func() { heavy(t, db, 1, 100_000, "a") })
	heavy(t, db, 1, 100_000, "b")
	exec(t, db, `select setval('tidemark.outbox_seq_seq', 1000000, false)`)
	emit(t, db, "a1", "b2")
	var dropped atomic.Bool
	onLine(t, db, ts, 10*time.Second, func(ctx context.Context, _ *line, _ int64) error {
		if dropped.CompareAndSwap(false, true) {
			_, err := db.Pool.Exec(ctx, `drop table tidemark.outbox_p0`)
			return err
		}
		return nil
	})
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "a1 b2" && got != "b2 a1" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, settled, "true")
	eventually(t, db, `select concat_ws(' ', seq, error_code) from tidemark.dead_letter`, "999990 event_missing")
	if n := ts["app"].count(); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

// A switch that is turned while a payload does not come: a route that is off by then has no dead letter of the event, another
// one has. While the gate is closed nothing is given up.
func TestSwitchedOffWhileUnreadable(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	route(t, db, "other", "")
	ts["other"] = newTarget()
	heavy(t, db, 1, 100_000, "")
	emit(t, db, "a2")
	var asked atomic.Int64
	onLine(t, db, ts, 3*time.Second, func(ctx context.Context, _ *line, seq int64) error {
		if seq != 1 {
			return nil
		}
		if asked.Add(1) == 1 {
			if _, err := db.Pool.Exec(ctx, `select tidemark.route_set('app', '{"enabled": false}')`); err != nil {
				return err
			}
		}
		return noRoom
	})
	eventually(t, db, evidence, "app 1 1 disabled", "other 1 1 failed unreadable", "app 2 1 disabled", "other 2 1 sent")
	eventually(t, db, letters, "other 1 unreadable 1 f open")
	if ts["app"].count() != 0 {
		t.Error("a route that is off was delivered to")
	}
}

func TestGateClosedWhileUnreadable(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	heavy(t, db, 1, 100_000, "")
	var asked atomic.Int64
	var well atomic.Bool
	onLine(t, db, ts, 3*time.Second, func(ctx context.Context, _ *line, _ int64) error {
		if well.Load() {
			return nil
		}
		if asked.Add(1) == 2 {
			if _, err := db.Pool.Exec(ctx, `select tidemark.gate_set('routes.enabled', false)`); err != nil {
				return err
			}
		}
		return never(ctx)
	})
	eventually(t, db, `select (value = 'false')::text from tidemark.setting where key = 'routes.enabled'`, "true")
	eventually(t, db, `select (lease_owner is null)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	eventually(t, db, evidence)
	well.Store(true)
	exec(t, db, `select tidemark.gate_set('routes.enabled', true)`)
	eventually(t, db, evidence, "app 1 1 sent")
	eventually(t, db, letters)
}
