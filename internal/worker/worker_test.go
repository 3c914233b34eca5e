package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/cursor"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// setup is a live installation with a route "app" to the target "app".
func setup(t *testing.T, options string) (*tidemarktest.DB, targets) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	exec(t, db, `select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test')`)
	route(t, db, "app", options)
	exec(t, db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	return db, targets{"app": newTarget()}
}

func route(t *testing.T, db *tidemarktest.DB, code, options string) {
	t.Helper()
	exec(t, db, `select tidemark.route_set($1, $2::jsonb || jsonb_build_object('target_ref', $1::text))`, code,
		`{"domain": "test", "target_kind": "stdout", "enabled": true, "dry_run": false`+options+`}`)
}

func exec(t *testing.T, db *tidemarktest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// emit emits events, each given as its key and number: "a1".
func emit(t *testing.T, db *tidemarktest.DB, events ...string) {
	t.Helper()
	for _, e := range events {
		exec(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $2::text), key => nullif($1, ''))`, e[:1], e)
	}
}

func texts(t *testing.T, db *tidemarktest.DB, sql string) []string {
	t.Helper()
	rows, err := db.Pool.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// eventually waits until the query gives what is wanted.
func eventually(t *testing.T, db *tidemarktest.DB, sql string, want ...string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		got := texts(t, db, sql)
		if cmp.Equal(want, got) || len(want)+len(got) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\n(-want +got)\n%s", sql, cmp.Diff(want, got))
		}
	}
}

// evidence is every attempt, one a line.
const evidence = `select concat_ws(' ', coalesce(route_code, '-'), seq, attempt_no, outcome, reason) from tidemark.route_attempt order by seq, route_code, attempt_no`

const settled = `select (c.watermark_id::bigint >= (select max(seq) from tidemark.outbox) and isempty(c.holes + c.fenced)
	and not exists (select from tidemark.pending))::text from tidemark.worker_cursor c where worker = 'default'`

// numbers of what arrived: "a1 b1 a2".
func arrivedAs(deliveries []sink.Delivery) string {
	var all []string
	for _, d := range deliveries {
		text := strings.TrimSuffix(strings.TrimPrefix(string(d.Event.Payload), `{"n": "`), `"}`)
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

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
			return sink.Result{Outcome: sink.Retry, Code: "http_503", Detail: "not now"}
		}
		if text == "d1" {
			return sink.Result{Outcome: sink.Permanent, Code: "http_400", Detail: "never"}
		}
		return sink.Result{Outcome: sink.Delivered}
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

// With ordering = key what is behind a failing event of its key waits, however much it is and
// although the target would take it; other keys go on.
func TestOrderOfKey(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 0.05, "max_attempts": 100}`) // attempts enough for hours
	release := make(chan struct{})
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		select {
		case <-release:
		default:
			if arrivedAs([]sink.Delivery{d}) == "a1" {
				return sink.Result{Outcome: sink.Retry, Code: "http_503", Detail: "not now"}
			}
		}
		return sink.Result{Outcome: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "a1", "a2", "b1")
	ts["app"].wait(t, 1)
	want := "b1 b2 a1 a2"
	for n := 3; n <= 120; n++ {
		emit(t, db, fmt.Sprintf("a%d", n))
		want += fmt.Sprintf(" a%d", n)
	}
	emit(t, db, "b2")
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "b1 b2" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select count(*) || ' behind' from tidemark.pending where next_attempt_at = 'infinity'`, "119 behind")
	close(release)
	eventually(t, db, settled, "true")
	if got := arrivedAs(ts["app"].wait(t, 122)); got != want {
		t.Errorf("got %s", got)
	}
}

// A closed gate stops what has not begun, and cuts off what is under way.
func TestGateClosesInMidDelivery(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 1`)
	began := make(chan struct{}, 10)
	ts["app"].answers(func(ctx context.Context, _ sink.Delivery) sink.Result {
		began <- struct{}{}
		<-ctx.Done()
		return sink.Result{Outcome: sink.Unknown, Code: "timeout", Detail: "cut off"}
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
		return sink.Result{Outcome: sink.Delivered}
	})
	emit(t, db, "a1", "a2", "a3")
	run(t, db, ts)
	ts["other"].wait(t, 3)
	exec(t, db, `update tidemark.outbound_route set enabled = false where route_code = 'app'`)
	emit(t, db, "a4")
	ts["other"].wait(t, 4)
	eventually(t, db, `select outcome::text from tidemark.route_attempt where route_code = 'app' and seq = 4`, "disabled")
	// Two looks at the switches have passed by then.
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

// A target that hangs fills its own pending; the others get theirs at once.
func TestDeadTargetHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "timeout": "300 ms"`)
	ts["other"] = newTarget()
	route(t, db, "other", "")
	ts["app"].answers(func(ctx context.Context, _ sink.Delivery) sink.Result {
		<-ctx.Done()
		return sink.Result{Outcome: sink.Retry, Code: "timeout", Detail: "nobody there"}
	})
	run(t, db, ts)
	for range 50 {
		emit(t, db, "a1", "b1", "c1", "d1", "e1", "f1", "g1", "h1")
	}
	ts["other"].wait(t, 400)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "400")
	eventually(t, db, `select kind || ' ' || subject from tidemark.finding where closed_at is null`, "target_down app")
	eventually(t, db, `select (count(*) < 20)::text from tidemark.attempt`, "true") // the breaker spares it the rest
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
	eventually(t, db, `select route_code || ' ' || seq || ' ' || reason from tidemark.route_attempt where outcome = 'pending'`, "typo 1 misconfigured", "typo 2 misconfigured")
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
		return sink.Result{Outcome: sink.Permanent, Code: "http_410", Detail: "gone for good", Gone: true}
	})
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select enabled::text from tidemark.outbound_route`, "false")
	eventually(t, db, `select kind || ' ' || detail from tidemark.finding where kind = 'route_gone'`,
		"route_gone the target says that it is gone for good; the route was switched off: gone for good")
	eventually(t, db, `select reason from tidemark.audit where object = 'outbound_route app' order by id desc limit 1`, "the target is gone")
}

// An owner that was paused past its lease records nothing, and says so.
func TestFencedOwner(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	began, next := make(chan struct{}), make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		began <- struct{}{}
		<-next
		return sink.Result{Outcome: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "a1")
	<-began
	exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_owner = 'another', lease_until = now() + interval '1 second'`)
	close(next)
	eventually(t, db, `select kind || ' ' || (detail ~ 'told by pid \d+, application "[^"]*", user \w+; the lease is of another, epoch \d+, until 2')
		from tidemark.finding where closed_at is null`, "cursor_lease_conflict true")
	ts["app"].answers(nil)
	eventually(t, db, settled, "true") // once the other one's lease is over
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "a1 a1" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

// Two instances take turns: the second waits, and takes over when the first stops.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	first := run(t, db, ts)
	emit(t, db, "a1")
	ts["app"].wait(t, 1)
	second := run(t, db, ts)
	emit(t, db, "a2")
	ts["app"].wait(t, 2)
	first.stop()
	emit(t, db, "a3")
	if got := arrivedAs(ts["app"].wait(t, 3)); got != "a1 a2 a3" {
		t.Errorf("got %s", got)
	}
	second.stop()
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent", "app 3 1 sent")
}

// Large pages are read ahead; small ones are not. Either way each event arrives once, in
// the order of its key.
func TestBacklog(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 16, "ordering": "key"`)
	ts["app"].limits = sink.Limits{Batch: 100, KeepsOrder: true}
	exec(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => 'k' || n % 37) from generate_series(1, 20000) n`)
	run(t, db, ts)
	got := ts["app"].wait(t, 20000)
	eventually(t, db, settled, "true")
	seen, last := map[string]bool{}, map[string]int64{}
	for _, d := range got {
		if seen[d.Event.ID] {
			t.Fatalf("%d arrived twice", d.Event.Seq)
		}
		seen[d.Event.ID] = true
		if d.Event.Seq < last[d.Event.Key] {
			t.Fatalf("%d arrived after %d", d.Event.Seq, last[d.Event.Key])
		}
		last[d.Event.Key] = d.Event.Seq
	}
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

func TestStopEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 1`)
	began, next := make(chan struct{}, 9), make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		began <- struct{}{}
		<-next
		return sink.Result{Outcome: sink.Delivered}
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

// The cursor is moved by hand while a page is out. The worker gives the lease back and stays held: what it skipped would
// never be decided.
func TestHeldWorkerReleases(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	let := make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result { <-let; return sink.Result{Outcome: sink.Delivered} })
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select (lease_owner is not null)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	exec(t, db, `update tidemark.worker_cursor set watermark_id = '1000'`)
	close(let)

	const held = `select concat_ws(' ', last_status, coalesce(lease_owner, 'free'), lease_epoch) from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	eventually(t, db, held, "held free 1")
	emit(t, db, "a2")
	ticks := texts(t, db, `select ticks_total::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`)[0]
	eventually(t, db, `select (ticks_total >= `+ticks+` + 20)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	// Each claim counts the finding. The look beats for the worker, and does not wake it.
	eventually(t, db, `select (count <= 10)::text from tidemark.finding where kind = 'cursor_watermark_regression'`, "true")
	eventually(t, db, held, "held free 1")
	eventually(t, db, evidence)
	eventually(t, db, `select watermark_id || ' ' || decided_through from tidemark.worker_cursor`, "1000 0")
	const open = `select kind || ' ' || severity from tidemark.finding where closed_at is null`
	eventually(t, db, open, "cursor_watermark_regression high")

	exec(t, db, `select tidemark.worker_rewind('default', 0, 'the edit was a mistake')`)
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent")
	eventually(t, db, open)
}

type reads struct {
	silent
	n atomic.Int64
}

func (r *reads) Read(int, time.Duration) { r.n.Add(1) }

// An emit that was rolled back at the end of the log leaves a number open for good. It costs a few reads, and then no
// more than an empty log.
func TestRolledBackEmitAtTheEnd(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	var r reads
	run(t, db, ts, func(o *worker.Options) {
		o.PollMin, o.PollMax, o.Observe = time.Millisecond, 200*time.Millisecond, &r
		o.Look = looker(t, db, o.Owner, o.Lease, o.PollMax)
	})
	emit(t, db, "a1")
	eventually(t, db, settled, "true")
	tx, err := db.Pool.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), `select tidemark.emit_strict('test', 'tick', '{}')`); err != nil {
		t.Fatal(err)
	}
	before := r.n.Load()
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	// Asleep, a worker beats with each look of its process.
	const beats = `select ticks_total::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	eventually(t, db, `select (ticks_total >= `+texts(t, db, beats)[0]+` + 20)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	if n := r.n.Load() - before; n > 150 {
		t.Errorf("%d reads over a number that is nobody's", n)
	}
	emit(t, db, "a2") // what follows is found, and the number is dropped
	eventually(t, db, settled, "true")
	eventually(t, db, evidence, "app 1 1 sent", "app 3 1 sent")
}

// A replay that fails again is outside the order of its key: live events of the key go on, those
// that were pending too.
func TestReplayHoldsUpNoLiveEvent(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"max_attempts": 100}`)
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		switch {
		case d.Replay:
			return sink.Result{Outcome: sink.Retry, After: time.Hour, Code: "http_503", Detail: "not now"}
		case d.Event.Seq == 1:
			return sink.Result{Outcome: sink.Permanent, Code: "http_400", Detail: "never"}
		}
		return sink.Result{Outcome: sink.Delivered}
	})
	i := run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select count(*)::text from tidemark.dead_letter`, "1")
	i.stop()

	exec(t, db, `select tidemark.dead_letter_replay(1)`)
	emit(t, db, "a2")
	exec(t, db, `insert into tidemark.pending (worker_id, route_id, seq, key) select worker_id, route_id, 2, key from tidemark.pending`)
	exec(t, db, `update tidemark.worker_cursor set watermark_id = '2', decided_through = '2'`)
	emit(t, db, "a3")
	run(t, db, ts)
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "a2 a3" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', seq, error_count, replay) from tidemark.pending`, "1 1 t")
	ts["app"].answers(nil)
	exec(t, db, `update tidemark.pending set next_attempt_at = clock_timestamp()`)
	eventually(t, db, `select coalesce(resolution, 'open') from tidemark.dead_letter`, "sent")
}

// More keys wait than a worker holds in memory. An event without a key changes nothing; keys that
// it does not hold go by way of the database; and when few wait, it is exact again.
func TestCrowd(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	exec(t, db, `insert into tidemark.pending (worker_id, route_id, seq, key, next_attempt_at)
		select w.id, r.id, -n, 'k' || n, clock_timestamp() + interval '1 hour' from tidemark.worker w, tidemark.outbound_route r, generate_series(1, $1::integer) n
		where w.worker = 'default'`, cursor.MaxKeys+1)
	run(t, db, ts)
	emit := func(key string) {
		t.Helper()
		exec(t, db, `select tidemark.emit_strict('test', 'tick', '{}', key => nullif($1, ''))`, key)
	}
	attempts := func(key string) string {
		t.Helper()
		return `select concat_ws(' ', a.seq, a.attempt_no, a.outcome, a.reason) from tidemark.route_attempt a join tidemark.outbox o on o.seq = a.seq
			where o.key = '` + key + `' order by a.seq, a.attempt_no`
	}
	emit("")
	ts["app"].wait(t, 1)
	emit("k50")
	emit("new")
	if got := ts["app"].wait(t, 2); got[1].Event.Key != "new" {
		t.Errorf("got %s", got[1].Event.Key)
	}
	eventually(t, db, attempts("new"), "3 1 pending behind_key", "3 2 sent")
	eventually(t, db, attempts("k50"), "2 1 pending behind_key")

	exec(t, db, `delete from tidemark.pending where seq < 0 and key <> 'k50'`)
	const sent = `select o.key from tidemark.route_attempt a join tidemark.outbox o on o.seq = a.seq where a.outcome = 'sent'`
	n := 0
	for deadline := time.Now().Add(time.Minute); ; n++ {
		key := fmt.Sprintf("exact%d", n)
		emit(key)
		ts["app"].wait(t, 3+n)
		eventually(t, db, `select key from (`+sent+`) s where key = '`+key+`'`, key)
		if len(texts(t, db, attempts(key))) == 1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("it still counts every key as one that waits")
		}
	}
	emit("k50")
	eventually(t, db, `select count(*)::text from tidemark.pending where key = 'k50' and next_attempt_at = 'infinity'`, "2")
	exec(t, db, `delete from tidemark.pending where seq < 0`)
	exec(t, db, `update tidemark.pending set next_attempt_at = clock_timestamp()`)
	eventually(t, db, settled, "true")
	if got := ts["app"].wait(t, 5+n); got[3+n].Event.Key != "k50" || got[4+n].Event.Key != "k50" || got[3+n].Event.Seq > got[4+n].Event.Seq {
		t.Errorf("got %v", got[3+n:])
	}
}

// pages notes how many events each had.
type pages struct {
	silent
	mu    sync.Mutex
	sizes []int
}

func (p *pages) Read(events int, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes = append(p.sizes, events)
}

// Events that weigh more than a page come one by one, each within the lease.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	exec(t, db, `update tidemark.setting set value = '1000000' where key = 'batch.max_bytes'`)
	exec(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', repeat('x', 2000000))) from generate_series(1, 24)`)
	read := &pages{}
	run(t, db, ts, func(o *worker.Options) { o.Lease, o.Observe = 10*time.Second, read })
	ts["app"].wait(t, 24)
	eventually(t, db, settled, "true")
	read.mu.Lock()
	defer read.mu.Unlock()
	if slices.Max(read.sizes) != 1 {
		t.Errorf("pages of %v events", read.sizes)
	}
}

// A partition of the log was dropped by hand, with the events that wait for an ordered route: they are dead letters, and
// what came later of their key is delivered, without a restart of the worker.
func TestEventsMissing(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 0.05, "max_seconds": 0.1, "max_attempts": 100}`)
	fails := func(context.Context, sink.Delivery) sink.Result {
		return sink.Result{Outcome: sink.Retry, Code: "http_503", Detail: "not now"}
	}
	ts["app"].answers(fails)
	run(t, db, ts)
	exec(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', 'a'), key => 'a') from generate_series(1, 3000)`)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "3000")
	exec(t, db, `select setval('tidemark.outbox_seq_seq', 1000000, false)`)
	exec(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', 'a' || n), key => 'a') from generate_series(1, 50) n`)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "3050")
	exec(t, db, `drop table tidemark.outbox_p0`)
	ts["app"].answers(nil)
	want := "a1"
	for n := 2; n <= 50; n++ {
		want += fmt.Sprintf(" a%d", n)
	}
	if got := arrivedAs(ts["app"].wait(t, 50)); got != want {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', error_code, count(*)) from tidemark.dead_letter group by error_code`, "event_missing 3000")
	eventually(t, db, settled, "true")
	emit(t, db, "a51")
	if got := arrivedAs(ts["app"].wait(t, 51)); got != want+" a51" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', outcome, attempt_no) from tidemark.route_attempt where seq = 1000050`, "sent 1")
}
