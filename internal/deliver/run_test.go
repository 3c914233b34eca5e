package deliver

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// However a run is shared out, each job is taken once, live ones in the order of their numbers and those of a key together, and no more
// at once than the sink takes or than an even share, unless they are of one key.
func TestSlotsShareARun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-j]?`), 1, 100).Draw(t, "keys")
		q := &queue{
			slots: rapid.IntRange(1, 8).Draw(t, "slots"), limits: sink.Limits{Batch: rapid.IntRange(1, 30).Draw(t, "batch")},
			known: map[identity]*job{}, flying: map[string]int{}, waiting: newWaiting(100),
		}
		var jobs []*job
		for i, key := range keys {
			jobs = append(jobs, &job{item: &store.Item{Event: tidemark.Event{Seq: int64(i), Key: key}, Fresh: true}})
		}
		r := q.line(jobs)
		q.share(r)
		if even := (len(keys) + r.slots - 1) / r.slots; r.most > q.limits.Batch || r.most > even {
			t.Fatalf("at once %d, of %d by %d slots", r.most, len(keys), r.slots)
		}
		takenAt := map[string]int{}
		got := 0
		for n := 0; ; n++ {
			taken := q.take(r)
			if len(taken) == 0 {
				break
			}
			alike := true
			for i, j := range taken {
				got++
				if i > 0 && taken[i-1].item.Seq >= j.item.Seq {
					t.Fatalf("%d behind %d", j.item.Seq, taken[i-1].item.Seq)
				}
				if at, before := takenAt[j.item.Key]; j.item.Key != "" && before && at != n {
					t.Fatalf("key %s was taken twice", j.item.Key)
				}
				takenAt[j.item.Key] = n
				alike = alike && j.item.Key != "" && j.item.Key == taken[0].item.Key
			}
			if len(taken) > r.most && !alike {
				t.Fatalf("%d jobs at once, and not %d", len(taken), r.most)
			}
		}
		if got != len(keys) {
			t.Fatalf("%d of %d", got, len(keys))
		}
	})
}
