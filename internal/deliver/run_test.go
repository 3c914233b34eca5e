package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// However slots take turns, each job is taken once, and what a slot takes are the first jobs whose key is no other slot's: a single
// slot takes all in order, live ones first.
func TestSlotsTakeInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := &queue{
			slots: rapid.IntRange(1, 5).Draw(t, "slots"), known: map[identity]*job{}, flying: map[lineOf]int{}, waiting: newWaiting(100),
			limits: sink.Limits{Batch: rapid.IntRange(1, 10).Draw(t, "batch"), KeepsOrder: rapid.Bool().Draw(t, "keeps order")},
		}
		var left []*job
		for i, key := range rapid.SliceOfN(rapid.StringMatching(`[a-f]?r?`), 1, 60).Draw(t, "keys") { // r: a replay
			key, replay := strings.CutSuffix(key, "r")
			left = append(left, &job{item: &store.Item{Event: tidemark.Event{Seq: int64(i), Key: key}, Replay: replay}})
		}
		slices.SortFunc(left, inOrder)
		r := q.admit(left)
		q.share(r)
		shareOf := map[*job]int{}
		for n := range r.parts {
			for _, l := range r.parts[n] {
				for _, j := range l.jobs {
					shareOf[j] = n
				}
			}
		}
		at := make([][]*line, r.slots) // of each slot
		working := make([]int, r.slots)
		for i := range working {
			working[i] = i
		}
		for len(working) > 0 {
			slot := rapid.SampledFrom(working).Draw(t, "slot")
			back := at[slot]
			at[slot] = nil
			free := func(key string) bool {
				return key == "" || !slices.ContainsFunc(slices.Concat(at...), func(l *line) bool { return l.key == key })
			}
			var want []*job
			for _, j := range left {
				again := slices.ContainsFunc(want, func(w *job) bool { return w.item.Key == j.item.Key && j.item.Key != "" })
				mine := q.limits.KeepsOrder && shareOf[j] == slot
				if len(want) < r.most && (mine || !q.limits.KeepsOrder && free(j.item.Key) && !again) {
					want = append(want, j)
				}
			}
			var got []*job
			got, at[slot], _ = q.take(r, slot, back)
			if !slices.Equal(got, want) {
				t.Fatalf("slot %d takes %v, want %v", slot, got, want)
			}
			left = slices.DeleteFunc(left, func(j *job) bool { return slices.Contains(got, j) })
			if len(got) == 0 {
				working = slices.DeleteFunc(working, func(other int) bool { return other == slot })
			}
		}
		if len(left) > 0 {
			t.Fatalf("%d jobs were left", len(left))
		}
		<-r.over
	})
}

// heavy opens targets that need as long for an event as its payload says, and records what arrives.
type heavy struct{ arrived chan int64 }

func (h heavy) Open(store.Route) (sink.Sink, error) { return h, nil }
func (heavy) Limits() sink.Limits                   { return sink.Limits{Batch: 1} }
func (heavy) Close() error                          { return nil }

func (h heavy) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	h.arrived <- batch[0].Event.Seq
	text, _, _ := strings.Cut(string(batch[0].Event.Payload), "\x00")
	needs, _ := time.ParseDuration(text)
	time.Sleep(needs)
	return []sink.Result{{Status: sink.Delivered}}
}

// A delivery that takes long holds up the later events of its key, and nothing else: neither fresh events nor those that were
// pending. What the database returns again meanwhile is not sent again.
func TestSlowKeyHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := newScene(t, "key", 2)
		pending := func(seq int64, key string) store.Item {
			it := freshItem(seq, key, 1)
			it.Fresh, it.Attempt = false, 2
			return it
		}
		got := []map[int64]string{d.act(lasting("30s", freshItem(1, "slow", 1)), freshItem(2, "b", 1)), d.act(freshItem(3, "c", 1), freshItem(4, "slow", 1))}
		if d.Capacity()[1] == 0 {
			t.Error("no event that was pending is asked for")
		}
		if d.Capacity()[1] != 0 {
			t.Error("what is under way is asked for again at once")
		}
		got = append(got, d.act(pending(1, "slow"), pending(4, "slow"), pending(5, "d")))
		if took := time.Since(began); took > 2*pageWait {
			t.Errorf("the slow delivery held up others for %s", took)
		}
		time.Sleep(time.Minute)
		got = append(got, d.act(), d.act(pending(4, "slow")))
		if diff := cmp.Diff([]map[int64]string{
			{1: "pending busy", 2: "sent"}, {3: "sent", 4: "pending behind_key"}, {5: "sent"}, {1: "sent"}, {4: "sent"},
		}, got); diff != "" {
			t.Error(diff)
		}
		arrived := d.arrives()
		if slices.Sort(arrived[:2]); !slices.Equal(arrived, []int64{1, 2, 3, 5, 4}) {
			t.Errorf("arrived: %v", arrived)
		}
	})
}

// scene is a deliverer whose targets need as long for an event as its payload says.
type scene struct {
	*Deliverer
	t     *testing.T
	route store.Route
	heavy
}

func newScene(t *testing.T, ordering string, concurrency int) *scene {
	h := heavy{make(chan int64, 1000)}
	s := &scene{Deliverer: New(h, always{}, always{}), t: t, route: routeOfTest(1, ordering), heavy: h}
	s.route.Concurrency = concurrency
	s.Begin(nil)
	return s
}

func (s *scene) act(items ...store.Item) (of map[int64]string) {
	of = map[int64]string{}
	for _, r := range s.Act(s.t.Context(), &store.Page{Routes: []store.Route{s.route}, Items: items}) {
		of[r.Seq] += strings.TrimSpace(fmt.Sprintf("%s %s", r.Outcome, r.Reason))
	}
	return of
}

// arrives are the numbers in the order in which they arrived.
func (s *scene) arrives() (all []int64) {
	for len(s.arrived) > 0 {
		all = append(all, <-s.arrived)
	}
	return all
}

func lasting(needs string, it store.Item) store.Item {
	it.Payload = []byte(needs)
	return it
}

// Without an order an event waits for those under way, as none of its key may overtake another at its first attempt.
func TestWithoutOrderPagesDoNotMix(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "none", 4)
		s.act(lasting("1s", freshItem(1, "k", 1)), lasting("1s", freshItem(2, "k", 1)), lasting("1s", freshItem(3, "k", 1)))
		if got := s.act(freshItem(4, "k", 1))[4]; got != "pending busy" {
			t.Errorf("the event behind is %s", got)
		}
		s.Quiesce()
		if got := s.arrives(); !slices.Equal(got, []int64{1, 2, 3}) {
			t.Errorf("arrived: %v", got)
		}
	})
}

// Replays of a key keep their order, too.
func TestReplaysOfAKeyDoNotMix(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replay := func(seq int64, key string) store.Item {
			it := freshItem(seq, key, 1)
			it.Fresh, it.Replay = false, true
			return it
		}
		s := newScene(t, "key", 3)
		s.act(lasting("30s", replay(1, "k")), lasting("30s", replay(2, "k")), replay(3, "b"))
		s.act(replay(4, "k"), replay(5, "b"))
		s.Quiesce()
		if got := s.arrives(); !slices.Equal(got, []int64{1, 3, 5, 2}) {
			t.Errorf("arrived: %v", got)
		}
	})
}

// A run that begins with one idle slot has all of them once the others have nothing left to do.
func TestIdleSlotsJoinARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newScene(t, "key", 4)
		s.act(lasting("2s", freshItem(1, "a", 1)), lasting("2s", freshItem(2, "b", 1)), lasting("2s", freshItem(3, "c", 1)))
		var page []store.Item
		for seq := range int64(100) {
			page = append(page, lasting("100ms", freshItem(10+seq, fmt.Sprint(seq), 1)))
		}
		s.act(page...)
		s.Quiesce()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a hundred deliveries of 100 ms took %s", took)
		}
	})
}

// While a queue has jobs left, and while its keys are not counted, no page begins beside.
func TestNoRoomBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, "key", 2)
		s.act(lasting("3s", freshItem(1, "a", 1)), lasting("3s", freshItem(2, "b", 1)), lasting("3s", freshItem(3, "c", 1)))
		if got := s.act(freshItem(4, "d", 1))[4]; got != "pending busy" || s.Capacity()[1] != 0 {
			t.Errorf("beside jobs that are left: %s", got)
		}
		s.Quiesce()
		s.act()
		large := lasting("3s", freshItem(7, "a", 1))
		large.Payload = append(large.Payload, make([]byte, heldBytes)...)
		s.act(large)
		if got := s.act(freshItem(8, "d", 1))[8]; got != "pending busy" || s.Capacity()[1] != 0 {
			t.Errorf("beside much payload: %s", got)
		}
		s.Quiesce()
		s.act()
		s.routes[1].keys.forget()
		s.act(lasting("3s", freshItem(5, "", 1)))
		if got := s.act(freshItem(6, "", 1))[6]; got != "pending busy" || s.Capacity()[1] != 0 {
			t.Errorf("beside keys that are not counted: %s", got)
		}
		s.Quiesce()
	})
}
