package deliver

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// In a slot, live events go first: a replay that hangs holds up no live event of its page.
func TestReplaysGoLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var arrived []int64
		d := New(slow{&arrived}, always{}, always{})
		d.Begin(nil)
		replay := freshItem(1, "a", 1)
		replay.Fresh, replay.Replay = false, true
		d.Act(t.Context(), &store.Page{Routes: []store.Route{routeOfTest(1, "key")}, Items: []store.Item{replay, freshItem(2, "a", 1), freshItem(3, "b", 1)}})
		d.Quiesce()
		if !slices.Equal(arrived, []int64{2, 3, 1}) {
			t.Errorf("arrived %v", arrived)
		}
	})
}

// The retries of a delivery have the number of its first attempt in common, and those of a replay that of the replay's.
func TestFirstAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, err := newQueue(routeOfTest(1, "none"), slow{&[]int64{}}, 0, New(slow{&[]int64{}}, always{}, always{}))
		if err != nil {
			t.Fatal(err)
		}
		for want, items := range map[int][]store.Item{
			1: {{Attempt: 1}, {Attempt: 2, Errors: 1}, {Attempt: 9, Errors: 8}},
			4: {{Attempt: 4, Replay: true}, {Attempt: 6, Errors: 2, Replay: true}},
		} {
			for _, it := range items {
				if d := q.delivery(&job{item: &it}); d.First != want || d.Attempt != it.Attempt {
					t.Errorf("%+v is %+v", it, d)
				}
			}
		}
	})
}

// choosy opens targets that answer 503 to every replay, to every live event, or to both, as its fields say.
type choosy struct {
	mu            sync.Mutex
	live, replays bool // true: refused
	arrived       []int64
	offered       int
	batch         int
}

func (c *choosy) Open(store.Route) (sink.Sink, error) { return c, nil }
func (c *choosy) Limits() sink.Limits                 { return sink.Limits{Batch: max(1, c.batch)} }
func (*choosy) Close() error                          { return nil }

func (c *choosy) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offered += len(batch)
	results := make([]sink.Result, len(batch))
	for i, d := range batch {
		if results[i] = (sink.Result{Status: sink.Delivered}); d.Replay && c.replays || !d.Replay && c.live {
			results[i] = sink.Result{Status: sink.Retry, Code: "503"}
		} else {
			c.arrived = append(c.arrived, d.Event.Seq)
		}
	}
	return results
}

// takes returns the events that it took, and how many it was offered, since the last call.
func (c *choosy) takes() (arrived []int64, offered int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	arrived, offered = c.arrived, c.offered
	c.arrived, c.offered = nil, 0
	return arrived, offered
}

func replaysOfTest(from, to int64) (items []store.Item) {
	for seq := from; seq <= to; seq++ {
		item := freshItem(seq, "a", 1)
		item.Fresh, item.Replay = false, true
		items = append(items, item)
	}
	return items
}

// actsOn delivers the items on route 1 and waits for all results.
func actsOn(t *testing.T, d *Deliverer, items ...store.Item) []store.Result {
	t.Helper()
	results := d.Act(t.Context(), &store.Page{Routes: []store.Route{routeOfTest(1, "key")}, Items: items})
	d.Quiesce()
	return append(results, d.Collect()...)
}

// Failed replays do not open the breaker for live events: the next live event is delivered at once.
func TestFailedReplaysOpenNoBreaker(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			target := &choosy{replays: true, batch: batch}
			d := New(target, always{}, always{})
			d.Begin(nil)
			for n := range int64(2 * breakerTrips) {
				actsOn(t, d, replaysOfTest(10*n+1, 10*n+5)...)
			}
			target.takes()
			actsOn(t, d, append(replaysOfTest(200, 220), freshItem(300, "x", 1), freshItem(301, "y", 1))...)
			if arrived, offered := target.takes(); !slices.Equal(arrived, []int64{300, 301}) || offered != 2 {
				t.Errorf("arrived %v of %d, want the live events, and no replay offered", arrived, offered)
			}
		})
	}
}

// The breaker holds back replays to a dead target too: after five failures the others wait without an attempt, and one at a
// time tests whether the target is back.
func TestFailedReplaysAreLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &choosy{live: true, replays: true}
		d := New(target, always{}, always{})
		d.Begin(nil)
		results := actsOn(t, d, replaysOfTest(1, 50)...)
		if _, offered := target.takes(); offered != breakerTrips {
			t.Errorf("a dead target was offered %d, want %d", offered, breakerTrips)
		}
		for _, r := range results {
			untried := r.Seq > breakerTrips
			if r.Outcome != store.Pending || (r.Detail == "") != untried || untried && (r.Reason != breakerOpen || r.Delay != breakerPause || r.Behind) {
				t.Errorf("replay %d: %+v", r.Seq, r)
			}
		}
		if len(results) != 50 {
			t.Errorf("%d results for 50 replays", len(results))
		}
		for range 3 {
			time.Sleep(breakerPause + 1)
			actsOn(t, d, replaysOfTest(6, 50)...)
			if _, offered := target.takes(); offered != 1 {
				t.Errorf("it was offered %d to find out whether it is back", offered)
			}
		}
		time.Sleep(breakerPause + 1)
		target.live, target.replays = false, false
		actsOn(t, d, replaysOfTest(6, 50)...)
		if arrived, offered := target.takes(); len(arrived) != 45 || offered != 45 {
			t.Errorf("%d of 45 replays arrived, %d offered", len(arrived), offered)
		}
	})
}

// While live events fail, replays wait too. A replay that the target takes closes the breaker for live events.
func TestReplaysWaitWithLiveEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &choosy{live: true, replays: true}
		d := New(target, always{}, always{})
		d.Begin(nil)
		for seq := range int64(breakerTrips) {
			actsOn(t, d, freshItem(seq+1, "", 1))
		}
		target.takes()
		results := actsOn(t, d, replaysOfTest(10, 20)...)
		if _, offered := target.takes(); offered != 0 || len(results) != 11 {
			t.Errorf("%d offered, %d results", offered, len(results))
		}
		time.Sleep(breakerPause + 1)
		target.replays = false
		actsOn(t, d, replaysOfTest(10, 20)...)
		target.live = false
		actsOn(t, d, freshItem(30, "", 1), freshItem(31, "", 1))
		if arrived, _ := target.takes(); len(arrived) != 13 {
			t.Errorf("arrived %v", arrived)
		}
		if d.routes[1].queue.breaker.state() != gobreaker.StateClosed {
			t.Error("the breaker is not closed")
		}
	})
}

// A target that takes no replays makes the queue put them off, by a write each: it takes few of them at a time.
func TestReplaysOfADeadTargetArePutOffInSmallNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &choosy{}
		d := New(target, always{}, always{})
		d.Begin(nil)
		for seq := range int64(1000) {
			actsOn(t, d, freshItem(seq+1, "", 1)) // a fast target
		}
		if got := d.Capacity()[1]; got <= firstCapacity {
			t.Fatalf("a fast target: capacity %d", got)
		}
		target.replays = true
		actsOn(t, d, replaysOfTest(2000, 2000+breakerTrips)...)
		if got := d.Capacity()[1]; got != firstCapacity {
			t.Errorf("replays fail: capacity %d, want %d", got, firstCapacity)
		}
		time.Sleep(breakerPause + 1)
		if got := d.Capacity()[1]; got != firstCapacity {
			t.Errorf("one replay may try: capacity %d, want %d", got, firstCapacity)
		}
		target.replays = false
		actsOn(t, d, replaysOfTest(3000, 3001)...)
		actsOn(t, d, freshItem(4000, "", 1))
		if got := d.Capacity()[1]; got <= firstCapacity {
			t.Errorf("the target takes replays again: capacity %d", got)
		}
	})
}

// A target that takes nothing is given no pending event while its breaker is open, and then one, which shows whether the target is
// back. A full page would be put off again but for that one, by a write each.
func TestOneEventTriesADeadTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &choosy{live: true}
		d := New(target, always{}, always{})
		d.Begin(nil)
		capacity := func(when string, want int) {
			t.Helper()
			if got := d.Capacity()[1]; got != want {
				t.Errorf("%s: capacity %d, want %d", when, got, want)
			}
		}
		for seq := range int64(breakerTrips) {
			actsOn(t, d, freshItem(seq+1, "", 1))
		}
		capacity("it takes nothing", 0)
		for range 2 {
			time.Sleep(breakerPause + 1)
			capacity("after the pause", 1)
			actsOn(t, d, freshItem(10, "", 1))
			capacity("it still takes nothing", 0)
		}
		time.Sleep(breakerPause + 1)
		target.live = false
		actsOn(t, d, freshItem(10, "", 1))
		if got := d.Capacity()[1]; got < firstCapacity {
			t.Errorf("it is back: capacity %d", got)
		}
	})
}
