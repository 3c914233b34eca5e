package worker

import (
	"time"

	"github.com/tidemarkhq/tidemark/internal/cursor"
)

// A budget says how much to read and how long to wait: more and sooner under load, less
// where a pass takes long.
type budget struct {
	most    int // events in a page
	pollMin time.Duration
	pollMax time.Duration

	limit int
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
func (b *budget) spent(page *cursor.Page, results []cursor.Result, acted, took time.Duration) {
	bytes, put := 0, 0
	for i := range page.Items {
		bytes += len(page.Items[i].Payload)
	}
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

// halve is for a page that could not be read in time.
func (b *budget) halve() { b.limit = max(1, b.limit/2) }

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
