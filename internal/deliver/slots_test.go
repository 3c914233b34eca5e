package deliver

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Each key is in one slot, in its order. Where no key has two events, all slots are as long, but for one event.
func TestSlotsAreEven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-j]?`), 0, 100).Draw(t, "keys")
		s := newSlots(rapid.IntRange(0, 8).Draw(t, "concurrency"))
		longest := 1
		counts := map[string]int{}
		for i, key := range keys {
			s.add(&job{item: &store.Item{Event: tidemark.Event{Seq: int64(i), Key: key}}})
			if counts[key]++; key != "" {
				longest = max(longest, counts[key])
			}
		}
		slotOf := map[string]int{}
		var lengths []int
		got := 0
		for n, jobs := range s.jobs {
			lengths = append(lengths, len(jobs))
			got += len(jobs)
			for i, j := range jobs {
				if i > 0 && jobs[i-1].item.Seq >= j.item.Seq {
					t.Fatalf("%d behind %d", j.item.Seq, jobs[i-1].item.Seq)
				}
				if in, known := slotOf[j.item.Key]; j.item.Key != "" && known && in != n {
					t.Fatalf("key %s in slots %d and %d", j.item.Key, in, n)
				}
				slotOf[j.item.Key] = n
			}
		}
		if got != len(keys) {
			t.Fatalf("%d of %d", got, len(keys))
		}
		if apart := slices.Max(lengths) - slices.Min(lengths); longest == 1 && apart > 1 {
			t.Fatalf("lengths %v", lengths)
		}
	})
}
