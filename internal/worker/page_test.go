package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

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

type reads struct{ n atomic.Int64 }

func (r *reads) observer() worker.Observer {
	return worker.Observer{Read: func(int, time.Duration) { r.n.Add(1) }}
}

// An emit that was rolled back at the end of the log leaves a number open for good. It costs a few reads, and then no
// more than an empty log.
func TestRolledBackEmitAtTheEnd(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	var r reads
	run(t, db, ts, func(o *worker.Options) {
		o.PollMin, o.PollMax, o.Observe = time.Millisecond, 200*time.Millisecond, r.observer()
		o.Poll = poller(t, db, o.Owner, o.Lease, o.PollMax)
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
	// While a worker sleeps, each poll of its process sends its heartbeat.
	const beats = `select ticks_total::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	eventually(t, db, `select (ticks_total >= `+texts(t, db, beats)[0]+` + 20)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	if n := r.n.Load() - before; n > 150 {
		t.Errorf("%d reads over a number that no transaction owns", n)
	}
	emit(t, db, "a2") // what follows is found, and the number is dropped
	eventually(t, db, settled, "true")
	eventually(t, db, evidence, "app 1 1 sent", "app 3 1 sent")
}

// pages notes how many events each had.
type pages struct {
	mu    sync.Mutex
	sizes []int
}

func (p *pages) observer() worker.Observer {
	return worker.Observer{Read: func(events int, _ time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sizes = append(p.sizes, events)
	}}
}

// Events that weigh more than a page come one by one, each within the lease.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	exec(t, db, `update tidemark.setting set value = '1000000' where key = 'batch.max_bytes'`)
	exec(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', repeat('x', 2000000))) from generate_series(1, 24)`)
	read := &pages{}
	run(t, db, ts, func(o *worker.Options) { o.Lease, o.Observe = 10*time.Second, read.observer() })
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
		return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
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
