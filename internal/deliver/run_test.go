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
			slots: rapid.IntRange(1, 5).Draw(t, "slots"), known: map[identity]*job{}, flying: map[string]int{}, waiting: newWaiting(100),
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
			got, at[slot] = q.take(r, slot, back)
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
	needs, _ := time.ParseDuration(string(batch[0].Event.Payload))
	time.Sleep(needs)
	return []sink.Result{{Status: sink.Delivered}}
}

// A delivery that takes long holds up the later events of its key, and nothing else: neither fresh events nor those that were
// pending. What the database returns again meanwhile is not sent again.
func TestSlowKeyHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := heavy{make(chan int64, 100)}
		d := New(h, always{}, always{})
		d.Begin(nil)
		route := routeOfTest(1, "key")
		route.Concurrency = 2
		act := func(items ...store.Item) (of map[int64]string) {
			of = map[int64]string{}
			for _, r := range d.Act(t.Context(), &store.Page{Routes: []store.Route{route}, Items: items}) {
				of[r.Seq] += strings.TrimSpace(fmt.Sprintf("%s %s", r.Outcome, r.Reason))
			}
			return of
		}
		pending := func(seq int64, key string) store.Item {
			it := freshItem(seq, key, 1)
			it.Fresh, it.Attempt = false, 2
			return it
		}
		slow := freshItem(1, "slow", 1)
		slow.Payload = []byte("30s")

		got := []map[int64]string{act(slow, freshItem(2, "b", 1)), act(freshItem(3, "c", 1), freshItem(4, "slow", 1))}
		if d.Capacity()[1] == 0 {
			t.Error("no event that was pending is asked for")
		}
		if d.Capacity()[1] != 0 {
			t.Error("what is under way is asked for again at once")
		}
		got = append(got, act(pending(1, "slow"), pending(4, "slow"), pending(5, "d")))
		if took := time.Since(began); took > 2*pageWait {
			t.Errorf("the slow delivery held up others for %s", took)
		}
		time.Sleep(time.Minute)
		got = append(got, act(), act(pending(4, "slow")))
		if diff := cmp.Diff([]map[int64]string{
			{1: "pending busy", 2: "sent"}, {3: "sent", 4: "pending behind_key"}, {5: "sent"}, {1: "sent"}, {4: "sent"},
		}, got); diff != "" {
			t.Error(diff)
		}
		close(h.arrived)
		var arrived []int64
		for seq := range h.arrived {
			arrived = append(arrived, seq)
		}
		if slices.Sort(arrived[:2]); !slices.Equal(arrived, []int64{1, 2, 3, 5, 4}) {
			t.Errorf("arrived: %v", arrived)
		}
	})
}
