package worker

import (
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A markFeed has no records, but something behind the cursor that is none.
type markFeed struct {
	idleFeed
	end int64
}

func (f markFeed) Peek(int) store.Records { return store.Records{Next: f.end} }

// The cursor moves over what is no record when the lease is renewed: it costs no pass of its own.
func TestPartitionPassesMarks(t *testing.T) {
	t.Parallel()
	k, _, l := idlePartitions(t)
	pass := func(end, want int64) {
		t.Helper()
		k.o.Feed = markFeed{make(idleFeed, 1), end}
		if got, err := k.pass(t.Context(), l); err != nil || got.again {
			t.Fatal(got, err)
		}
		if at, _, err := k.Place(t.Context()); err != nil || at != want {
			t.Errorf("at %d, want %d: %v", at, want, err)
		}
	}
	l.lasts = time.Hour
	k.placed = l.epoch
	pass(3, 3) // the first renews
	pass(5, 3)
	k.renewed = time.Time{}
	pass(5, 5)
}
