package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A target is what the routes of a test deliver to, by the route's target_ref. It keeps a
// journal, and answers as it is told to.
type target struct {
	mu      sync.Mutex
	arrived []sink.Delivery
	changed chan struct{}
	answer  func(context.Context, sink.Delivery) sink.Result // nil: Delivered
	limits  sink.Limits
	forgets bool // it keeps no payloads
}

func newTarget() *target {
	return &target{changed: make(chan struct{}), limits: sink.Limits{Batch: 1}}
}

func (s *target) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	for i, d := range batch {
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		results[i] = sink.Result{Status: sink.Delivered}
		if answer != nil {
			results[i] = answer(ctx, d)
		}
		if results[i].Status == sink.Delivered || results[i].Status == sink.Unknown {
			s.mu.Lock()
			if s.forgets {
				d.Event.Payload = nil
			}
			s.arrived = append(s.arrived, d)
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
		}
	}
	return results
}

func (s *target) Limits() sink.Limits { return s.limits }
func (s *target) Close() error        { return nil }

func (s *target) answers(f func(context.Context, sink.Delivery) sink.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// wait returns when n deliveries have arrived.
func (s *target) wait(t *testing.T, n int) []sink.Delivery {
	t.Helper()
	limit := time.After(3 * time.Minute)
	for {
		s.mu.Lock()
		n0, changed := len(s.arrived), s.changed
		if n0 >= n {
			defer s.mu.Unlock()
			return slices.Clone(s.arrived)
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%d deliveries arrived, want %d", n0, n)
		}
	}
}

func (s *target) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrived)
}

// targets opens them by name.
type targets map[string]*target

func (ts targets) Open(r store.Route) (sink.Sink, error) {
	if ts[r.TargetRef] == nil {
		return nil, fmt.Errorf("there is no target %q", r.TargetRef)
	}
	return ts[r.TargetRef], nil
}

type silent struct{}

func (silent) Delivered(string, []sink.Delivery, []sink.Result, time.Duration) {}
func (silent) Paused(string, bool)                                             {}

// An instance is a running worker.
type instance struct {
	permit  *worker.Permit
	failing func() error
	cancel  func() // tells it to stop
	stop    func() // and waits until it has
}

// poller runs one to the end of the test.
func poller(t *testing.T, db *tidemarktest.DB, owner string, lease, poll time.Duration) *worker.Poller {
	t.Helper()
	l := worker.NewPoller(db.Pool, owner, lease, poll, testLog(t), worker.Besides{})
	ctx, cancel := context.WithCancel(context.Background())
	var polling sync.WaitGroup
	polling.Go(func() { l.Run(ctx) })
	t.Cleanup(func() { cancel(); polling.Wait() })
	return l
}

// run starts an instance of worker default.
func run(t *testing.T, db *tidemarktest.DB, ts targets, change ...func(*worker.Options)) instance {
	t.Helper()
	return runOn(t, db, db.Pool, ts, change...)
}

// runOn runs it on a pool of its own.
func runOn(t *testing.T, db *tidemarktest.DB, pool store.Pool, ts targets, change ...func(*worker.Options)) instance {
	t.Helper()
	permit := &worker.Permit{}
	handler := deliver.New(ts, permit, silent{})
	o := worker.Options{
		Worker: "default", Owner: fmt.Sprintf("test/%d", time.Now().UnixNano()), Lease: 5 * time.Second,
		PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond, StopTime: 5 * time.Second,
		Log: testLog(t),
	}
	o.Poll = poller(t, db, o.Owner, o.Lease, o.PollMax)
	for _, c := range change {
		c(&o)
	}
	w := worker.New(pool, o, worker.Log{MaxBatch: 5000, Targets: handler, Permit: permit})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	i := instance{permit: permit, failing: w.Failing, cancel: cancel, stop: sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the worker ended: %v", err)
			}
		case <-time.After(3 * time.Minute):
			t.Error("the worker does not stop")
		}
		if err := handler.Close(); err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(i.stop)
	return i
}
