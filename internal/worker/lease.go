package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// freshFor is how long the news that a gate is open may be acted on. A gate must be
	// obeyed within a second, also while the database does not answer.
	freshFor = 700 * time.Millisecond
	// beatBusy and beatIdle are between two beats, which renew the lease and ask for the gates.
	beatBusy = 200 * time.Millisecond
	beatIdle = time.Second
	beatTime = time.Second
	// margin is between the end of deliveries and the end of the lease.
	margin = 500 * time.Millisecond
	// lastWord is how long a worker that ends waits for the database to hear it.
	lastWord = 3 * time.Second
)

var (
	errFenced    = errors.New("another instance has taken the cursor, or the server is another one since")
	errLeaseOver = errors.New("the lease could not be renewed in time")
)

// A gateError names the gate that is closed.
type gateError struct{ gate string }

func (e gateError) Error() string { return "closed by " + e.gate }

// A reclaimError is how many pending events were dead-lettered without the targets' knowledge, and why. What they know of
// waiting keys is no longer true: the worker claims the cursor anew.
type reclaimError struct {
	events int64
	why    string
}

func (e reclaimError) Error() string {
	return fmt.Sprintf("%d pending events %s: they are dead letters now", e.events, e.why)
}

// A lease is the right to act for a worker. Its context is done, with the cause, when
// the right ends: a gate closed, another owner, no renewal in time. All of it is measured
// from before the question to the database by our monotonic clock, so that no clock that
// steps can make it longer.
type lease struct {
	lasts  time.Duration // from each renewal
	epoch  int64
	ctx    context.Context //nolint:containedctx // the lease is what the context is about
	run    context.Context //nolint:containedctx // done when nothing is to begin any more
	hard   context.Context //nolint:containedctx // done when what is under way is cut off
	last   context.Context //nolint:containedctx // done when even settling has to end
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when watch has returned
	beater beater        // nil: each pass renews the lease

	mu       sync.Mutex
	until    time.Time
	fresh    time.Time
	live     map[int32]time.Time // until when deliveries of these routes may begin
	liveAt   time.Time           // when a beat asked for them
	paused   map[int32]bool      // of the routes that pages needed, as the latest of them came
	shut     []string            // domains whose gate is closed
	shutAt   time.Time           // when the database was asked for them
	changed  chan struct{}       // closed when shut is another
	stopping bool
	beaten   time.Time     // when the database was last asked
	trusted  time.Duration // for so long after a beat the poll of the process is trusted with the next one
}

// A beater renews a lease between passes, and asks for the gates.
type beater interface {
	// Beat returns the gate that is closed, empty for none; the routes that may deliver; the domains whose gate is closed.
	Beat(ctx context.Context) (gate string, live []int32, shut []string, err error)
	// busy: deliveries are under way.
	busy() bool
}

// hold begins to watch over a lease that was claimed after began.
func hold(ctx, hard, last context.Context, c claimer, began time.Time, b beater) *lease {
	l := &lease{
		lasts: c.Lease(), epoch: c.Epoch(), run: ctx, hard: hard, last: last, over: make(chan struct{}), beater: b,
		until: began.Add(c.Lease()), live: map[int32]time.Time{}, paused: map[int32]bool{}, changed: make(chan struct{}),
	}
	// The end of ctx ends reading, and nothing begins any more; what is under way may come to its end.
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if b == nil {
		close(l.over)
	} else {
		go l.watch()
	}
	return l
}

// watch renews the lease and asks for the gates until the lease is over.
func (l *lease) watch() {
	defer close(l.over)
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-next.C:
		}
		if !time.Now().Before(l.deadline()) {
			l.cancel(errLeaseOver)
			return
		}
		next.Reset(beatBusy)
		if !l.beater.busy() && l.beatenLately() {
			continue
		}
		if err := l.beat(); err != nil {
			l.cancel(err)
			return
		}
	}
}

// beatenLately: it is not yet time to ask.
func (l *lease) beatenLately() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.beaten) < max(beatIdle, l.trusted)
}

// trustPoll says for how long after a beat the poll of the process is trusted with the next one; 0: it is not.
func (l *lease) trustPoll(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trusted = d
}

// renewed tells the lease that a poll of the process, asked at began, has renewed it. That says nothing of the routes: the
// next read does.
func (l *lease) renewed(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.beaten = began.Add(l.lasts), began
}

func (l *lease) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Add(-margin)
}

// late turns an error that the end of the lease has caused into one that says that it took too long.
func (l *lease) late(err error) error {
	if err != nil && errors.Is(context.Cause(l.ctx), errLeaseOver) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, errLeaseOver)
	}
	return err
}

// beat asks the database. An error ends the lease; that it cannot be asked is none.
func (l *lease) beat() error {
	began := time.Now()
	l.mu.Lock()
	l.beaten = began
	l.mu.Unlock()
	// A connection that the network has forgotten must not cost the lease: ask on another.
	ctx, cancel := context.WithTimeout(l.ctx, min(beatTime, time.Until(l.deadline())))
	defer cancel()
	gate, live, shut, err := l.beater.Beat(ctx)
	switch {
	case store.Is(err, tidemark.ErrFenced):
		return errFenced
	case err != nil:
		return nil //nolint:nilerr // asked again until the lease is over
	case gate != "" && !failpoint.Bug("nogate"):
		return gateError{gate}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = began.Add(l.lasts)
	l.fresh = began.Add(freshFor)
	l.shutBy(began, shut)
	l.liveAt = began
	l.live = make(map[int32]time.Time, len(live))
	for _, id := range live {
		l.live[id] = l.fresh
	}
	return nil
}

// shutBy takes in which domains are closed, asked for at began. The answer that was asked for last counts. The caller
// holds mu.
func (l *lease) shutBy(began time.Time, shut []string) {
	if !began.After(l.shutAt) {
		return
	}
	l.shutAt = began
	slices.Sort(shut)
	if !slices.Equal(shut, l.shut) {
		l.shut = shut
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// read tells the lease what a read, asked at began, has found out: the gates are open and these routes are live, and deliver
// unless they are paused. A page comes with its routes when one of them is another than in the page before. A slow read's answer
// is older than that of a beat that asked meanwhile.
func (l *lease) read(began time.Time, page *store.Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh := began.Add(freshFor); fresh.After(l.fresh) {
		l.fresh = fresh
	}
	l.shutBy(began, page.Shut)
	for _, r := range page.Routes {
		l.paused[r.ID] = r.PausedAt != nil
	}
	if began.Before(l.liveAt) {
		return // a beat that asked later knows all live routes: one of these may have been switched off or paused since
	}
	// Of routes that are not on the page it says nothing: they may be off since the last beat.
	for i := range page.Items {
		for _, id := range page.Items[i].Routes {
			if l.paused[id] {
				delete(l.live, id)
			} else {
				l.live[id] = began.Add(freshFor)
			}
		}
	}
}

// stop prevents new deliveries; those in flight may finish.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

func (l *lease) allows(route int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	ended := l.stopping || l.run.Err() != nil || l.ctx.Err() != nil
	if failpoint.Bug("nogate") {
		return !ended
	}
	return !ended && now.Before(l.fresh) && now.Before(l.live[route]) && now.Before(l.until.Add(-margin))
}

func (l *lease) open(domain string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return failpoint.Bug("nogate") || !slices.Contains(l.shut, domain)
}

func (l *lease) why() error {
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("the lease ended")
}

// wait returns after d, or with an error when the lease is over or ctx is done.
func (l *lease) wait(ctx context.Context, d time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.ctx.Err() != nil:
		return l.why()
	case d == 0:
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.ctx.Done():
		return l.why()
	case <-ctx.Done():
		return ctx.Err()
	}
}
