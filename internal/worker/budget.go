package worker

import (
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A budget says how much to read and how long to wait: more and sooner under load, less
// where a pass takes long.
type budget struct {
	most    int // events in a page
	pollMin time.Duration
	pollMax time.Duration

	limit int
	bytes int64 // of payload in a page, while reading takes long; 0: as the setting batch.max_bytes says
	alone bool  // one event of each kind, whose payload is asked for by itself: the page before could not be read in time
	poll  time.Duration

	openFor time.Duration // for how long it has waited while numbers were open and nothing was found
}

const (
	firstPage  = 250
	quickAct   = 100 * time.Millisecond
	slowAct    = 200 * time.Millisecond // as long as a page waits for its slowest target
	slowPass   = time.Second
	heavyBytes = 16 << 20 // of payload in a page
)

func newBudget(most int, pollMin, pollMax time.Duration) *budget {
	return &budget{most: most, pollMin: pollMin, pollMax: pollMax, limit: min(firstPage, most), poll: pollMin}
}

// spent takes in how a pass went: what came of it, and how long of it its deliveries took.
func (b *budget) spent(page *store.Page, results []store.Result, acted, took time.Duration) {
	bytes, put := page.Bytes(), 0
	for i := range results {
		if results[i].Fresh && (results[i].Reason == "busy" || results[i].Reason == "behind_key") {
			put++ // off: more at a time would only be put off too
		}
	}
	switch full := page.Events >= b.limit; {
	case acted >= slowAct && full, took > slowPass, bytes > heavyBytes:
		b.halve()
	case 2*put > len(results) && put > 0:
		b.limit = max(min(firstPage, b.most), b.limit/2)
	case full && acted < quickAct && bytes < heavyBytes/4 && 10*put <= len(results):
		b.limit = min(b.most, b.limit*2)
	}
}

// openShare bounds what polling adds to the latency of a late commit: a tenth of the time its number was open.
const openShare = 10

// ask is for the next page, where the page before is known.
func (b *budget) ask(known *store.Page) store.Ask {
	ask := store.Ask{Limit: b.limit, Bytes: b.bytes, Withhold: b.alone}
	if known != nil {
		ask.KnownRoutes = known.RoutesVersion
	}
	return ask
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

// read takes in how long reading the page took, of the lease.
func (b *budget) read(page *store.Page, took, lease time.Duration) {
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

// wait is how long to wait after a pass that found something or nothing. While numbers are open, a writer is about to
// commit an event that may wake nobody: the worker looks again soon, and less often as they age, since the number of an
// emit that was rolled back stays open until another event follows it.
func (b *budget) wait(found, open bool) time.Duration {
	if found {
		b.poll, b.openFor = b.pollMin, 0
		return 0
	}
	wait := b.poll
	b.poll = min(b.poll*2, b.pollMax)
	if !open {
		b.openFor = 0
		return wait
	}
	wait = min(wait, max(2*b.pollMin, b.openFor/openShare))
	b.openFor += wait
	return wait
}
