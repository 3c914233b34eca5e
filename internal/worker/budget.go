package worker

import (
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A budget says how much to read: more under load, less where a pass takes long.
type budget struct {
	most  int // events in a page
	limit int
	items int   // of the latest page
	bytes int64 // of payload in a page, while reading takes long; 0: as the setting batch.max_bytes says
	alone bool  // one event of each kind, whose payload is asked for by itself: the page before could not be read in time
}

const (
	firstPage  = 250
	quickAct   = 100 * time.Millisecond
	slowAct    = 200 * time.Millisecond // as long as a page waits for its slowest target
	slowPass   = time.Second
	heavyBytes = 16 << 20 // of payload in a page
)

func newBudget(most int) *budget {
	return &budget{most: most, limit: min(firstPage, most)}
}

// spent takes in how the pass of a page went: what came of it, and how long of it its deliveries took.
func (b *budget) spent(events int, bytes int64, results []store.Result, acted, took time.Duration) {
	put := 0
	for i := range results {
		if results[i].Fresh && (results[i].Reason == "busy" || results[i].Reason == "behind_key") {
			put++ // off: more at a time would only be put off too
		}
	}
	switch full := events >= b.limit; {
	case acted >= slowAct && full, took > slowPass, bytes > heavyBytes:
		b.halve()
	case 2*put > len(results) && put > 0:
		b.limit = max(min(firstPage, b.most), b.limit/2)
	case full && acted < quickAct && bytes < heavyBytes/4 && 10*put <= len(results):
		b.limit = min(b.most, b.limit*2)
	}
}

// ask is for the next page. The limit stays high after a backlog, so the latest page tells how large it may become: twice that.
func (b *budget) ask() store.Ask {
	return store.Ask{Limit: b.limit, Apart: min(b.limit, 2*b.items) >= store.ApartFrom, Bytes: b.bytes, Withhold: b.alone}
}

// halve is for a page that took long to act on.
func (b *budget) halve() { b.limit = max(1, b.limit/2) }

// A page that is read slowly has less in it, long before it takes the whole lease.
const (
	slowRead   = 2 // the lease divided by it: half as much next time
	quickRead  = 8 // likewise: more, up to the setting
	fewBytes   = 64 << 10
	allBytes   = 1 << 30
	growFaster = 4
)

// tooMuch is for a page that could not be read within the lease. Halving would take a lease for each step, and deliver
// nothing meanwhile: the next page is as small as one can be.
func (b *budget) tooMuch() { b.limit, b.bytes, b.alone = 1, 1, true }

// read takes in the page, and how long reading it took, of the lease.
func (b *budget) read(page *store.Page, took, lease time.Duration) {
	b.items = len(page.Items)
	bytes := page.Bytes()
	switch {
	case took > lease/slowRead && len(page.Items) > 1:
		b.bytes = max(fewBytes, bytes/2)
	case b.bytes > 0 && took < lease/quickRead && len(page.Items) > 0:
		b.alone = false
		if b.bytes = max(fewBytes, growFaster*b.bytes); b.bytes > allBytes {
			b.bytes = 0
		}
	}
}
