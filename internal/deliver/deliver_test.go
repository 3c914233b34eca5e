package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// always permits everything, with epoch 1.
type always struct{}

func (always) Allows(int32) bool                                               { return true }
func (always) AllowsDomain(string) bool                                        { return true }
func (always) Changed() <-chan struct{}                                        { return nil }
func (always) Epoch() int64                                                    { return 1 }
func (always) Delivered(string, []sink.Delivery, []sink.Result, time.Duration) {}
func (always) Paused(string, bool)                                             {}

// slow opens targets that need a second for each event, and records the events that arrive.
type slow struct{ arrived *[]int64 }

func (s slow) Open(store.Route) (sink.Sink, error) { return s, nil }
func (slow) Limits() sink.Limits                   { return sink.Limits{Batch: 1} }
func (slow) Close() error                          { return nil }

func (s slow) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	*s.arrived = append(*s.arrived, batch[0].Event.Seq)
	time.Sleep(time.Second)
	return []sink.Result{{Status: sink.Delivered}}
}

func routeOfTest(id int32, ordering string) store.Route {
	return store.Route{ID: id, Ordering: ordering, Seconds: 60, Concurrency: 1}
}

func freshItem(seq int64, key string, routes ...int32) store.Item {
	return store.Item{Event: tidemark.Event{Seq: seq, Key: key}, Routes: routes, Attempt: 1, Fresh: true}
}

// The database does not know of deliveries that are under way or not settled, so a recount in mid-lease must skip the
// queues that have some.
func TestRecountPassesOverWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New(slow{&[]int64{}}, always{}, always{})
		d.Begin([]store.Waiting{{Route: 1, Uncounted: true}, {Route: 2, Uncounted: true}})
		replay := freshItem(1, "a", 1)
		replay.Fresh, replay.Replay = false, true
		d.Act(t.Context(), &store.Page{Routes: []store.Route{routeOfTest(1, "key"), routeOfTest(2, "key")}, Items: []store.Item{replay, freshItem(2, "a", 2)}})
		if !d.KeysUncounted() {
			t.Error("route 2 could be counted")
		}
		d.Recount([]store.Waiting{{Route: 1, Key: "b", Events: 1}, {Route: 2, Key: "a", Events: 1}})
		if !d.routes[1].keys.has("c") || d.routes[2].keys.has("c") || !d.routes[2].keys.has("a") {
			t.Error("the route at work was counted, or the other was not")
		}
		d.Quiesce()
		d.Collect()
		d.Recount([]store.Waiting{{Route: 1, Key: "b", Events: 1}})
		if d.routes[1].keys.has("c") || d.KeysUncounted() || d.KeysWait() != true {
			t.Error("the route at rest was not counted")
		}
	})
}

// A queue without order counts no keys. When its route changes to ordering = key, the waiting keys are unknown until they
// are counted.
func TestOrderingBeginsInMidLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New(slow{&[]int64{}}, always{}, always{})
		d.Begin(nil)
		act := func(ordering string, items ...store.Item) []store.Result {
			results := d.Act(t.Context(), &store.Page{Routes: []store.Route{routeOfTest(1, ordering)}, Items: items})
			d.Quiesce()
			return append(results, d.Collect()...)
		}
		act("none", freshItem(1, "a", 1))
		if results := act("key", freshItem(2, "a", 1)); len(results) != 1 || !results[0].Behind {
			t.Errorf("got %+v, want an event behind what may wait", results)
		}
		d.Recount(nil)
		if results := act("key", freshItem(3, "b", 1)); slices.ContainsFunc(results, func(r store.Result) bool { return r.Behind }) {
			t.Errorf("got %+v", results)
		}
	})
}

// poor is a target that this process cannot reach, since it has no file descriptor left for a connection.
type poor struct{ offered int }

func (p *poor) Open(store.Route) (sink.Sink, error) { return p, nil }
func (*poor) Limits() sink.Limits                   { return sink.Limits{Batch: 1} }
func (*poor) Close() error                          { return nil }

func (p *poor) Deliver(context.Context, []sink.Delivery) []sink.Result {
	p.offered++
	return []sink.Result{{Status: sink.Retry, Local: true, Code: "local", Detail: "too many open files"}}
}

// A fault of this host counts as no attempt: no event is given up for it, however few attempts its route allows, and a
// pending event stays as it was. The breaker opens nevertheless.
func TestLocalFaultIsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &poor{}
		d := New(target, always{}, always{})
		d.Begin(nil)
		route := routeOfTest(1, "none")
		route.RetryPolicy = []byte(`{"max_attempts": 1}`)
		var items []store.Item
		for seq := range int64(20) {
			items = append(items, freshItem(seq+1, "", 1))
		}
		waited := freshItem(30, "", 1)
		waited.Fresh, waited.Errors = false, 1
		results := d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: append(items, waited)})
		d.Quiesce()
		results = append(results, d.Collect()...)
		for _, r := range results {
			if r.Outcome != store.Pending || r.Detail != "" || r.Delay != breakerPause || r.Seq == 30 {
				t.Errorf("event %d: %+v, want it pending as it was", r.Seq, r)
			}
		}
		if len(results) != len(items) || target.offered != breakerTrips {
			t.Errorf("%d results for %d events; the target was offered %d, want %d", len(results), len(items), target.offered, breakerTrips)
		}
	})
}

// later is a target that says when it wants to be asked again.
type later struct{ after time.Duration }

func (l later) Open(store.Route) (sink.Sink, error) { return l, nil }
func (later) Limits() sink.Limits                   { return sink.Limits{Batch: 1} }
func (later) Close() error                          { return nil }

func (l later) Deliver(context.Context, []sink.Delivery) []sink.Result {
	return []sink.Result{{Status: sink.Retry, After: l.after, Code: "http_429", Detail: "too many requests"}}
}

// A target's Retry-After counts if it is longer than what the route's policy says, and a shorter one does not make it shorter.
func TestRetryAfterOutweighsThePolicy(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, time.Millisecond: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			d := New(later{after}, always{}, always{})
			d.Begin(nil)
			route := routeOfTest(1, "none")
			route.RetryPolicy = []byte(`{"base_seconds": 60, "jitter": 0}`)
			results := d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: []store.Item{freshItem(1, "", 1)}})
			d.Quiesce()
			if results = append(results, d.Collect()...); len(results) != 1 || results[0].Delay != want {
				t.Errorf("Retry-After %s: %+v, want it due after %s", after, results, want)
			}
		})
	}
}

// shutting permits the domain until it is shut.
type shutting struct {
	always
	from time.Time
}

func (s shutting) AllowsDomain(string) bool { return time.Now().Before(s.from) }

// The gate of a domain closes while an event waits its turn at a slow rate: it is not delivered.
func TestDomainClosesWhileAnEventWaitsItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var arrived []int64
		d := New(slow{&arrived}, shutting{from: time.Now().Add(5 * time.Second)}, always{})
		d.Begin(nil)
		route := routeOfTest(1, "none")
		route.Options = []byte(`{"rate_per_second": 0.1}`) // the first goes at once, the second after ten seconds
		results := d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: []store.Item{freshItem(1, "", 1), freshItem(2, "", 1)}})
		d.Quiesce()
		results = append(results, d.Collect()...)
		if !slices.Equal(arrived, []int64{1}) {
			t.Errorf("arrived %v, want the first alone; %+v", arrived, results)
		}
	})
}

// A delivery that the worker itself cut off (its lease ended, a gate closed) says nothing about the target.
func TestBreakerCountsNoCutOff(t *testing.T) {
	t.Parallel()
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	var paused []bool
	b := newBreaker("r", func(_ string, now bool) { paused = append(paused, now) })
	fail := func(ctx context.Context) {
		for range breakerTrips {
			done, err := b.allow(false)
			if err != nil {
				t.Fatal(err)
			}
			done(verdict(ctx, []sink.Result{{Status: sink.Retry}}))
		}
	}
	fail(cut)
	if s := b.state(); s != gobreaker.StateClosed {
		t.Errorf("after deliveries that were cut off the breaker is %s", s)
	}
	fail(t.Context())
	if s := b.state(); s != gobreaker.StateOpen {
		t.Errorf("after %d failures the breaker is %s", breakerTrips, s)
	}
	if !slices.Equal(paused, []bool{false, true}) {
		t.Errorf("the observer was told %v, want that it is closed, then open", paused)
	}
}

// doubtful forbids the first deliveries that it is asked for, as a lease does whose beat was late.
type doubtful struct {
	always
	asked *atomic.Int32
}

func (d doubtful) Allows(int32) bool { return d.asked.Add(1) > 1 }

// bare opens targets that record the payloads that arrive.
type bare struct {
	always
	arrived *[]string
}

func (b bare) Open(store.Route) (sink.Sink, error) { return b, nil }
func (bare) Limits() sink.Limits                   { return sink.Limits{Batch: 1} }
func (bare) Close() error                          { return nil }

func (b bare) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	*b.arrived = append(*b.arrived, string(batch[0].Event.Payload))
	return []sink.Result{{Status: sink.Delivered}}
}

// What the lease forbids when it is asked first, and allows a moment later, is not delivered as it is in the log.
func TestNothingLeavesUntransformed(t *testing.T) {
	t.Parallel()
	var arrived []string
	d := New(bare{arrived: &arrived}, doubtful{asked: new(atomic.Int32)}, always{})
	d.Transform = func(_ context.Context, _ store.Route, payloads []json.RawMessage) ([]json.RawMessage, error) {
		return slices.Repeat([]json.RawMessage{json.RawMessage(`{}`)}, len(payloads)), nil
	}
	d.Begin(nil)
	route := routeOfTest(1, "none")
	route.Columns = []string{"n"}
	first, second := freshItem(1, "", 1), freshItem(2, "", 1)
	first.Payload, second.Payload = json.RawMessage(`{"secret": 1}`), json.RawMessage(`{"secret": 2}`)
	results := d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: []store.Item{first, second}})
	if !slices.Equal(arrived, []string{`{}`}) || len(results) != 2 || results[0].Reason != GateClosed {
		t.Errorf("arrived %s; %+v", arrived, results)
	}
}

// several opens targets that take three events at a time.
type several struct{ bare }

func (s several) Open(store.Route) (sink.Sink, error) { return s, nil }
func (several) Limits() sink.Limits                   { return sink.Limits{Batch: 3} }

// revoked permits deliveries until off is set.
type revoked struct {
	always
	off *atomic.Bool
}

func (r revoked) Allows(int32) bool { return !r.off.Load() }

// A transform hangs, and the route is switched off meanwhile: it is not called for each of the other events of the batch.
func TestHangingTransformEndsWithTheRoute(t *testing.T) {
	t.Parallel()
	var arrived []string
	var off atomic.Bool
	calls := 0
	d := New(several{bare{arrived: &arrived}}, revoked{off: &off}, always{})
	d.Transform = func(context.Context, store.Route, []json.RawMessage) ([]json.RawMessage, error) {
		calls++
		off.Store(calls == 2)
		return nil, &pgconn.PgError{Code: store.Timeout}
	}
	d.Begin(nil)
	route := routeOfTest(1, "none")
	route.Columns = []string{"n"}
	results := d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: []store.Item{freshItem(1, "", 1), freshItem(2, "", 1), freshItem(3, "", 1)}})
	if calls != 2 || len(results) != 3 || results[0].Reason != ReasonTransformFailed || results[1].Reason != GateClosed || len(arrived) > 0 {
		t.Errorf("%d calls, arrived %v; %+v", calls, arrived, results)
	}
}

// A page that was decided by a route as it is now waits until its target can be opened anew: it does not go to the one before.
func TestNothingGoesToTheTargetBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var arrived []int64
		d := New(slow{&arrived}, always{}, always{})
		d.Begin(nil)
		route := routeOfTest(1, "none")
		act := func(items ...store.Item) []store.Result {
			return d.Act(t.Context(), &store.Page{Routes: []store.Route{route, routeOfTest(2, "none")}, Items: items})
		}
		act(freshItem(1, "", 1)) // is pending after pageWait
		d.Quiesce()              // has ended, and is not collected
		route.TargetRef = "another"
		old := freshItem(2, "", 1)
		old.Fresh = false
		if results := act(old, freshItem(3, "", 1)); !slices.Equal(arrived, []int64{1}) || len(results) != 2 || results[1].Outcome != store.Pending {
			t.Errorf("arrived %v; %+v", arrived, results)
		}
		act(old, freshItem(4, "", 1))
		d.Quiesce()
		if !slices.Equal(arrived, []int64{1, 2, 4}) {
			t.Errorf("arrived %v", arrived)
		}
	})
}

// A read brings as many events behind one of their key as the capacity of a route has room for.
func TestBehindOneIsThatOfTheRead(t *testing.T) {
	t.Parallel()
	sql, err := os.ReadFile("../../sql/code/worker/pending_due.sql")
	if limit := fmt.Sprintf("order by q.key, q.seq limit %d)", behindOne); err != nil || !strings.Contains(string(sql), limit) {
		t.Errorf("tidemark.pending_due has no %q (%v)", limit, err)
	}
}
