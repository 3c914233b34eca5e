package worker

import (
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// The rows of a page come by statements of their own in a backlog, and only in one: to plan them takes longer than a small page.
func TestSmallPageAfterABacklog(t *testing.T) {
	t.Parallel()
	b := newBudget(5000)
	page := func(events, items int) bool {
		b.read(&store.Page{Events: events, Items: make([]store.Item, items)}, time.Millisecond, time.Minute)
		b.spent(events, 0, nil, time.Millisecond, time.Millisecond)
		return b.ask().Apart
	}
	if b.ask().Apart {
		t.Error("the first page")
	}
	for b.limit < 5000 {
		if apart := page(b.limit, b.limit); apart != (b.limit >= store.ApartFrom) {
			t.Errorf("at a limit of %d in a backlog: %t", b.limit, apart)
		}
	}
	if !page(1200, 1200) {
		t.Error("after a page of 1,200")
	}
	for _, items := range []int{1, 0} {
		if page(items, items) {
			t.Errorf("after a page of %d, at a limit of %d", items, b.limit)
		}
	}
	if page(5000, 5000); page(5000, 0) {
		t.Error("after a full page that leaves nothing to deliver")
	}
}
