package deliver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cursor"
	"github.com/tidemarkhq/tidemark/sink"
)

// always permits everything under the first lease.
type always struct{}

func (always) Allows(int32) bool                              { return true }
func (always) Epoch() int64                                   { return 1 }
func (always) Delivered(string, []sink.Result, time.Duration) {}

// slow opens targets that take a second for each event, and notes what arrives.
type slow struct{ arrived *[]int64 }

func (s slow) Open(cursor.Route) (sink.Sink, error) { return s, nil }
func (slow) Limits() sink.Limits                    { return sink.Limits{Batch: 1} }
func (slow) Close() error                           { return nil }

func (s slow) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	*s.arrived = append(*s.arrived, batch[0].Event.Seq)
	time.Sleep(time.Second)
	return []sink.Result{{Outcome: sink.Delivered}}
}

func routeOfTest(id int32, ordering string) cursor.Route {
	return cursor.Route{ID: id, Ordering: ordering, Timeout: 60, Concurrency: 1}
}

func freshItem(seq int64, key string, routes ...int32) cursor.Item {
	return cursor.Item{Event: cursor.Event{Seq: seq, Key: key}, Routes: routes, Attempt: 1, Fresh: true}
}

// What a lane has under way, or not settled, the database does not know of: only the others
// take in a count in mid-lease.
func TestRecountPassesOverWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New(slow{&[]int64{}}, always{}, always{})
		d.Begin([]cursor.Waiting{{Route: 1, Crowd: true}, {Route: 2, Crowd: true}})
		replay := freshItem(1, "a", 1)
		replay.Fresh, replay.Replay = false, true
		d.Act(t.Context(), &cursor.Page{Routes: []cursor.Route{routeOfTest(1, "key"), routeOfTest(2, "key")}, Items: []cursor.Item{replay, freshItem(2, "a", 2)}})
		if !d.Crowded() {
			t.Error("route 2 could be counted")
		}
		d.Recount([]cursor.Waiting{{Route: 1, Key: "b", Events: 1}, {Route: 2, Key: "a", Events: 1}})
		if !d.routes[1].keys.has("c") || d.routes[2].keys.has("c") || !d.routes[2].keys.has("a") {
			t.Error("the route at work was counted, or the other was not")
		}
		d.Quiesce()
		d.Collect()
		d.Recount([]cursor.Waiting{{Route: 1, Key: "b", Events: 1}})
		if d.routes[1].keys.has("c") || d.Crowded() || d.Behind() != true {
			t.Error("the route at rest was not counted")
		}
	})
}

// A lane without order counts nothing. What waits when its route begins to keep the order of
// keys is unknown, until it is counted.
func TestOrderingBeginsInMidLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New(slow{&[]int64{}}, always{}, always{})
		d.Begin(nil)
		act := func(ordering string, items ...cursor.Item) []cursor.Result {
			results := d.Act(t.Context(), &cursor.Page{Routes: []cursor.Route{routeOfTest(1, ordering)}, Items: items})
			d.Quiesce()
			return append(results, d.Collect()...)
		}
		act("none", freshItem(1, "a", 1))
		if results := act("key", freshItem(2, "a", 1)); len(results) != 1 || !results[0].Behind {
			t.Errorf("got %+v, want an event behind what may wait", results)
		}
		d.Recount(nil)
		if results := act("key", freshItem(3, "b", 1)); slices.ContainsFunc(results, func(r cursor.Result) bool { return r.Behind }) {
			t.Errorf("got %+v", results)
		}
	})
}

// In one slot live events go first: a replay that hangs holds up none of its page.
func TestReplaysGoLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var arrived []int64
		d := New(slow{&arrived}, always{}, always{})
		d.Begin(nil)
		replay := freshItem(1, "a", 1)
		replay.Fresh, replay.Replay = false, true
		d.Act(t.Context(), &cursor.Page{Routes: []cursor.Route{routeOfTest(1, "key")}, Items: []cursor.Item{replay, freshItem(2, "a", 1), freshItem(3, "b", 1)}})
		d.Quiesce()
		if !slices.Equal(arrived, []int64{2, 3, 1}) {
			t.Errorf("arrived %v", arrived)
		}
	})
}

// choosy opens targets that answer every replay with 503 and take every live event.
type choosy struct{ arrived *[]int64 }

func (c choosy) Open(cursor.Route) (sink.Sink, error) { return c, nil }
func (choosy) Limits() sink.Limits                    { return sink.Limits{Batch: 1} }
func (choosy) Close() error                           { return nil }

func (c choosy) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	if batch[0].Replay {
		return []sink.Result{{Outcome: sink.Retry, Code: "503"}}
	}
	*c.arrived = append(*c.arrived, batch[0].Event.Seq)
	return []sink.Result{{Outcome: sink.Delivered}}
}

// Replays that fail time and again open no breaker: a live event that comes next is delivered at once.
func TestFailedReplaysOpenNoBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var arrived []int64
		d := New(choosy{&arrived}, always{}, always{})
		d.Begin(nil)
		page := &cursor.Page{Routes: []cursor.Route{routeOfTest(1, "key")}}
		for seq := range int64(2 * breakerTrips) {
			replay := freshItem(seq+1, "a", 1)
			replay.Fresh, replay.Replay = false, true
			page.Items = append(page.Items, replay)
		}
		d.Act(t.Context(), page)
		d.Quiesce()
		d.Collect()
		page.Items = []cursor.Item{freshItem(100, "a", 1)}
		d.Act(t.Context(), page)
		d.Quiesce()
		if !slices.Equal(arrived, []int64{100}) {
			t.Errorf("arrived %v, want the live event", arrived)
		}
	})
}
