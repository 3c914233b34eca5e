package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

const (
	ordered, unordered, alsoOrdered = int32(1), int32(2), int32(3)
	mostKeysOfModel                 = 3
	attemptsOfModel                 = 4
)

var allRoutes = []int32{ordered, unordered, alsoOrdered}

// A place is an event on a route.
type place struct {
	route int32
	seq   int64
}

// A row stands for a row of tidemark.pending.
type row struct {
	due    time.Time // zero: behind an earlier event of its key
	tries  int
	errors int
	replay bool
}

// A world is a model of the database and the targets around a Deliverer, in the simplest form that keeps the promises of
// tidemark.pass_read and tidemark.settle.
type world struct {
	t    *rapid.T
	d    *Deliverer
	ctx  context.Context //nolint:containedctx // ends with the lease
	end  context.CancelFunc
	seed uint64

	events []string // keys by number, from 1
	read   int      // numbers that are settled
	dead   []place
	handed map[place]bool // under this lease

	mu       sync.Mutex // guards the fields below, which targets read while they answer
	pending  map[place]*row
	resolved map[place]bool // the target has it, or refused it for good
	healthy  bool
	off      map[int32]bool
	epoch    int64
	wrong    []string
}

func (w *world) key(seq int64) string { return w.events[seq-1] }

func (w *world) Allows(route int32) bool  { w.mu.Lock(); defer w.mu.Unlock(); return !w.off[route] }
func (w *world) AllowsDomain(string) bool { return true }
func (w *world) Changed() <-chan struct{} { return nil }
func (w *world) Epoch() int64             { w.mu.Lock(); defer w.mu.Unlock(); return w.epoch }

func (*world) Delivered(string, []sink.Delivery, []sink.Result, time.Duration) {}
func (*world) Paused(string, bool)                                             {}

func (w *world) Open(r store.Route) (sink.Sink, error) { return fickle{w, r.ID}, nil }

// fickle gives any answer after any time, but always the same one to the same attempt of an event.
type fickle struct {
	w     *world
	route int32
}

func (f fickle) Limits() sink.Limits { return sink.Limits{Batch: 3, KeepsOrder: f.w.seed%2 == 0} }
func (f fickle) Close() error        { return nil }

func (f fickle) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	failed := map[string]bool{}
	for i, d := range batch {
		switch key := d.Event.Key; {
		case ctx.Err() != nil || failed[key]:
			results[i] = sink.Result{Status: sink.Retry}
		default:
			results[i] = sink.Result{Status: f.answer(ctx, d)}
			failed[key] = key != "" && (results[i].Status == sink.Retry || results[i].Status == sink.Unknown)
		}
	}
	return results
}

func (f fickle) answer(ctx context.Context, d sink.Delivery) sink.Status {
	h := fnv.New64a()
	fmt.Fprint(h, f.w.seed, f.route, d.Event.Seq, d.Attempt)
	n := h.Sum64()
	f.w.arrives(place{f.route, d.Event.Seq}, d.Replay)
	f.w.mu.Lock()
	if f.w.healthy {
		n = 0
	}
	f.w.mu.Unlock()
	after := []time.Duration{0, 0, 0, 30 * time.Millisecond, 300 * time.Millisecond, 5 * time.Second}[n%6]
	// No time.After(0): a timer that is over before it is waited for runs on the goroutine that receives from it, and two
	// such in one bubble crash the race detector (golang.org/issue/78156).
	if after > 0 {
		select {
		case <-time.After(after):
		case <-ctx.Done():
			outcome := []sink.Status{sink.Unknown, sink.Retry}[n>>8%2]
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // it counts as an attempt
				f.w.answered(place{f.route, d.Event.Seq}, outcome)
			}
			return outcome
		}
	}
	outcome := []sink.Status{sink.Delivered, sink.Delivered, sink.Retry, sink.Retry, sink.Permanent, sink.Unknown}[n>>16%6]
	f.w.answered(place{f.route, d.Event.Seq}, outcome)
	return outcome
}

// arrives checks that no live event overtakes an earlier live event of its key.
func (w *world) arrives(at place, replay bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pending[at]; (p != nil && p.replay) != replay {
		w.wrong = append(w.wrong, fmt.Sprintf("%v: replay %v", at, replay))
	}
	if at.route == unordered || replay || w.key(at.seq) == "" {
		return
	}
	for earlier := range at.seq - 1 {
		if seq := earlier + 1; w.key(seq) == w.key(at.seq) && !w.resolved[place{at.route, seq}] {
			w.wrong = append(w.wrong, fmt.Sprintf("%v arrives before %d of its key %q", at, seq, w.key(at.seq)))
		}
	}
}

func (w *world) answered(at place, outcome sink.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	errors := 0
	if p := w.pending[at]; p != nil {
		errors = p.errors
	}
	if outcome == sink.Delivered || outcome == sink.Permanent || errors+1 >= attemptsOfModel {
		w.resolved[at] = true
	}
}

// earlierPending reports whether an earlier live event of the same key is pending.
func (w *world) earlierPending(at place) bool {
	for p, r := range w.pending {
		if p.route == at.route && p.seq < at.seq && !r.replay && w.key(p.seq) == w.key(at.seq) && w.key(at.seq) != "" {
			return true
		}
	}
	return false
}

// due models tidemark.pending_due.
func (w *world) due(capacity map[int32]int) (items []store.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := map[int32]int{}
	for _, at := range slices.SortedFunc(maps.Keys(w.pending), func(a, b place) int { return cmp.Compare(a.seq, b.seq) }) {
		p := w.pending[at]
		most, known := capacity[at.route]
		if !known {
			most = 100
		}
		if p.due.IsZero() || p.due.After(time.Now()) || taken[at.route] >= most || at.route != unordered && !p.replay && w.earlierPending(at) {
			continue
		}
		// The first event of a key is read with those that wait behind it.
		run := []place{at}
		for seq := at.seq + 1; at.route != unordered && !p.replay && most > 1 && seq <= int64(len(w.events)); seq++ {
			next := place{at.route, seq}
			q := w.pending[next]
			if q == nil || q.replay || w.key(seq) == "" || w.key(seq) != w.key(at.seq) {
				continue
			}
			if q.due.After(time.Now()) {
				break
			}
			run = append(run, next)
		}
		for _, at := range run {
			if taken[at.route]++; taken[at.route] <= most {
				q := w.pending[at]
				items = append(items, store.Item{
					Event: tidemark.Event{Seq: at.seq, Key: w.key(at.seq)}, Routes: []int32{at.route}, Attempt: q.tries + 1, Errors: q.errors, Replay: q.replay,
				})
				w.handed[at] = true
			}
		}
	}
	return items
}

// pass reads, acts and settles.
func (w *world) pass(emit []string, unsettled bool) {
	if w.d.KeysUncounted() {
		w.d.Recount(w.keys())
	}
	page := &store.Page{Items: w.due(w.d.Capacity()), Routes: []store.Route{
		{ID: ordered, RouteCode: "ordered", Ordering: "key", Seconds: 1, Concurrency: 2, RetryPolicy: policyOfModel},
		{ID: alsoOrdered, RouteCode: "also", Ordering: "key", Seconds: 1, Concurrency: 1, RetryPolicy: policyOfModel},
		{ID: unordered, RouteCode: "unordered", Ordering: "none", Seconds: 1, Concurrency: 2, RetryPolicy: policyOfModel},
	}}
	w.mu.Lock()
	w.events = append(w.events, emit...)
	w.mu.Unlock()
	fresh := map[place]bool{}
	for seq := int64(w.read + 1); seq <= int64(len(w.events)); seq++ {
		page.Items = append(page.Items, store.Item{
			Event: tidemark.Event{Seq: seq, Key: w.key(seq)}, Routes: allRoutes, Attempt: 1, Fresh: true,
		})
		for _, route := range allRoutes {
			fresh[place{route, seq}], w.handed[place{route, seq}] = true, true
		}
	}
	results := w.d.Act(w.ctx, page)
	if unsettled {
		return // fenced meanwhile
	}
	w.settle(fresh, results)
	w.read = len(w.events)
}

var policyOfModel = []byte(fmt.Sprintf(`{"max_attempts": %d, "base_seconds": 0.5, "max_seconds": 2, "jitter": 0}`, attemptsOfModel))

// settle models tidemark.settle, and checks the results that it gets.
func (w *world) settle(fresh map[place]bool, results []store.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	released := map[place]bool{} // an event of each key to release
	for _, r := range results {
		at := place{r.Route, r.Seq}
		p := w.pending[at]
		switch {
		case !w.handed[at]:
			w.t.Fatalf("%v %+v: of an earlier lease", at, r)
		case r.Fresh != fresh[at]:
			w.t.Fatalf("%v %+v: not of this page, or the second result", at, r)
		case !r.Fresh && p == nil:
			w.t.Fatalf("%v %+v: not pending", at, r)
		case r.Behind && (p != nil && p.replay || r.Route == unordered || !w.d.routes[r.Route].keys.uncounted && !w.earlierPending(at)):
			w.t.Fatalf("%v %+v: it waits for nothing", at, r)
		}
		delete(fresh, at)
		if p == nil {
			p = &row{}
		}
		if r.Fresh || r.Detail != "" || r.Outcome != store.Pending {
			p.tries++
		}
		if r.Detail != "" {
			p.errors++
		}
		switch r.Outcome {
		case store.Pending:
			p.due = time.Time{}
			if !r.Behind {
				p.due = time.Now().Add(r.Delay)
			} else if r.Fresh {
				released[at] = true
			}
			w.pending[at] = p
		case store.Sent, store.Failed:
			delete(w.pending, at)
			released[at] = true
			if r.Outcome == store.Failed {
				w.dead = append(w.dead, at)
			}
		}
	}
	for at := range fresh {
		w.t.Fatalf("%v: no result", at)
	}
	w.release(released)
}

// release models tidemark.release_keys.
func (w *world) release(of map[place]bool) {
	for at := range of {
		for p, r := range w.pending {
			if p.route == at.route && !r.replay && w.key(p.seq) != "" && w.key(p.seq) == w.key(at.seq) && r.due.IsZero() && !w.earlierPending(p) {
				r.due = time.Now()
			}
		}
	}
}

// keys models tidemark.pending_keys.
func (w *world) keys() (keys []store.Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, route := range allRoutes {
		counts, all := map[string]int{}, 0
		for at, p := range w.pending {
			if at.route == route && !p.replay && w.key(at.seq) != "" {
				counts[w.key(at.seq)]++
				all++
			}
		}
		if len(counts) > mostKeysOfModel {
			keys = append(keys, store.Waiting{Route: route, Uncounted: true, Events: all})
			continue
		}
		for key, events := range counts {
			keys = append(keys, store.Waiting{Route: route, Key: key, Events: events})
		}
	}
	return keys
}

// claim begins a lease.
func (w *world) claim() {
	w.ctx, w.end = context.WithCancel(context.Background())
	w.handed = map[place]bool{}
	w.mu.Lock()
	w.epoch++
	w.mu.Unlock()
	w.d.Begin(w.keys())
}

// another models another owner of the cursor: it delivers the first event of each key, due or not.
func (w *world) another() {
	w.mu.Lock()
	defer w.mu.Unlock()
	released := map[place]bool{}
	for at, p := range w.pending {
		if p.replay || at.route == unordered || !w.earlierPending(at) {
			w.resolved[at] = true
			released[at] = true
		}
	}
	for at := range released {
		delete(w.pending, at)
	}
	w.release(released)
}

// drain checks that healthy targets get everything in the end, replays too, and that the Deliverer's counts of waiting keys
// are right again.
func (w *world) drain() {
	w.mu.Lock()
	w.healthy, w.off = true, map[int32]bool{}
	w.mu.Unlock()
	w.pass([]string{"a", "b", ""}, false) // a breaker that is not closed needs an event to close
	for range 100 {
		w.pass(nil, false)
		time.Sleep(time.Second)
		synctest.Wait()
	}
	if len(w.pending) > 0 || w.d.Busy() || w.d.KeysWait() {
		w.t.Fatalf("it does not come to an end: %v", w.pending)
	}
	for range 2 {
		at := int64(len(w.events) + 1)
		w.pass([]string{"a", "b", ""}, false)
		for seq := at; seq < at+3; seq++ {
			if p := w.pending[place{ordered, seq}]; p != nil {
				w.t.Fatalf("%d waits for nothing", seq)
			}
		}
	}
	for seq := range int64(len(w.events)) {
		for _, route := range allRoutes {
			if !w.resolved[place{route, seq + 1}] {
				w.t.Errorf("event %d never reached route %d", seq+1, route)
			}
		}
	}
}

// bubbled hides Deadline, which panics inside a synctest bubble.
type bubbled struct{ rapid.TB }

// The order of keys, one result for each event and route, leases, uncounted keys and replays, against the
// simplest database that there is, under targets that answer anything.
func TestModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbled{t}, func(t *rapid.T) {
			w := &world{
				t: t, seed: rapid.Uint64().Draw(t, "seed"), pending: map[place]*row{}, resolved: map[place]bool{}, off: map[int32]bool{},
			}
			w.d = New(w, w, w)
			w.d.mostKeys = mostKeysOfModel
			w.claim()
			keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a", "a", "b", "c", "d", "e", "f", ""}), 0, 8)
			lease := func(fenced bool) {
				w.end()
				w.d.Quiesce()
				if fenced {
					w.another()
				} else {
					w.settle(nil, w.d.Collect())
				}
				w.claim()
			}
			t.Repeat(map[string]func(*rapid.T){
				"":        func(*rapid.T) { w.sound() },
				"page":    func(t *rapid.T) { w.pass(keys.Draw(t, "keys"), false) },
				"more":    func(t *rapid.T) { w.pass(keys.Draw(t, "keys"), false) },
				"retry":   func(*rapid.T) { w.pass(nil, false) },
				"collect": func(*rapid.T) { w.settle(nil, w.d.Collect()) },
				"wait": func(t *rapid.T) {
					time.Sleep(time.Duration(rapid.SampledFrom([]int{1, 100, 600, 3000, 11000}).Draw(t, "ms")) * time.Millisecond)
				},
				"switch": func(t *rapid.T) {
					w.mu.Lock()
					defer w.mu.Unlock()
					route := rapid.SampledFrom(allRoutes).Draw(t, "route")
					w.off[route] = !w.off[route]
				},
				"replay": func(t *rapid.T) {
					if len(w.dead) == 0 {
						t.Skip("no dead letter")
					}
					n := rapid.IntRange(0, len(w.dead)-1).Draw(t, "letter")
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.pending[w.dead[n]] == nil {
						w.pending[w.dead[n]] = &row{due: time.Now(), tries: 5, replay: true}
					}
				},
				"release": func(*rapid.T) { lease(false) },
				"fence":   func(*rapid.T) { lease(true) },
				"late": func(t *rapid.T) {
					w.pass(keys.Draw(t, "keys"), true)
					lease(true)
				},
			})
			w.drain()
			w.sound()
			w.end()
			if err := w.d.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

func (w *world) sound() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) > 0 {
		w.t.Fatal(strings.Join(w.wrong, "\n"))
	}
}
