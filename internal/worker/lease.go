package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// freshFor is how long the news that a gate is open may be acted on. A gate must be
	// obeyed within a second, also while the database does not answer.
	freshFor = 700 * time.Millisecond
	// beatBusy and beatIdle are between two looks at the gates, which renew the lease.
	beatBusy = 200 * time.Millisecond
	beatIdle = time.Second
	beatTime = time.Second
	// margin is between the end of deliveries and the end of the lease.
	margin = 500 * time.Millisecond
	// lastWord is how long a worker that ends waits for the database to hear it.
	lastWord = 3 * time.Second
)

var (
	errFenced    = errors.New("another instance has taken the cursor")
	errLeaseOver = errors.New("the lease could not be renewed in time")
)

// A closedError is the gate that forbids to go on.
type closedError struct{ gate string }

func (e closedError) Error() string { return "closed by " + e.gate }

// An anewError is how many pending events were dead-lettered beside the handler, and why. What it knows of the keys that
// wait is no longer true: it has to begin anew.
type anewError struct {
	events int64
	why    string
}

func (e anewError) Error() string {
	return fmt.Sprintf("%d pending events %s: they are dead letters now", e.events, e.why)
}

// A lease is the right to act for a worker. Its context is done, with the cause, when
// the right ends: a gate closed, another owner, no renewal in time. All of it is measured
// from before the question to the database by our monotonic clock, so that no clock that
// steps can make it longer.
type lease struct {
	cursor *store.Cursor
	ctx    context.Context //nolint:containedctx // the lease is what the context is about
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when watch has returned

	mu       sync.Mutex
	until    time.Time
	fresh    time.Time
	live     map[int32]bool
	shut     []string      // domains whose gate is closed
	shutAt   time.Time     // when the database was asked for them
	changed  chan struct{} // closed when shut is another
	stopping bool
	beaten   time.Time     // when the database was last asked
	dozing   time.Duration // for so long a look beats for us; 0: nobody does
}

// claimer is a cursor whose lease can be asked for.
type claimer interface {
	Lease() time.Duration
	Claim(ctx context.Context) (store.Claim, error)
}

// claim asks for the lease. The end of ctx does not take a question back: the database may have said yes already, and a
// lease that was got must be given back, or another instance waits for its end.
func claim(ctx context.Context, c claimer) (store.Claim, error) {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Lease())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWord, cancel) })()
	return c.Claim(asked)
}

// hold begins to watch over a lease that was claimed after began.
func hold(ctx context.Context, c *store.Cursor, began time.Time, busy func() bool) *lease {
	l := &lease{cursor: c, over: make(chan struct{}), until: began.Add(c.Lease()), live: map[int32]bool{}, changed: make(chan struct{})}
	// The end of ctx ends reading; deliveries that are under way may come to their end.
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go l.watch(busy)
	return l
}

// watch renews the lease and looks at the gates until the lease is over.
func (l *lease) watch(busy func() bool) {
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
		if !busy() && l.resting() {
			continue
		}
		if err := l.beat(); err != nil {
			l.cancel(err)
			return
		}
	}
}

// resting: it is not time to ask, or somebody else does.
func (l *lease) resting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.beaten) < max(beatIdle, l.dozing)
}

// doze says for how long after a beat somebody else is trusted with the next one.
func (l *lease) doze(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dozing = d
}

// rested tells the lease that a look, asked at began, has renewed it. It says nothing of
// the routes: what is read next does.
func (l *lease) rested(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.beaten = began.Add(l.cursor.Lease()), began
}

func (l *lease) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Add(-margin)
}

// late gives an error that was ended by the end of the lease the look of one that took too long, which it did.
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
	gate, live, shut, err := l.cursor.Beat(ctx)
	switch {
	case store.Is(err, store.Fenced):
		return errFenced
	case err != nil:
		return nil //nolint:nilerr // asked again until the lease is over
	case gate != "" && !failpoint.Bug("nogate"):
		return closedError{gate}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = began.Add(l.cursor.Lease())
	l.fresh = began.Add(freshFor)
	l.shutBy(began, shut)
	l.live = make(map[int32]bool, len(live))
	for _, id := range live {
		l.live[id] = true
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

// read tells the lease what a read, asked at began, has found out: the gates are open and
// these routes are live.
func (l *lease) read(began time.Time, page *store.Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh := began.Add(freshFor); fresh.After(l.fresh) {
		l.fresh = fresh
	}
	l.shutBy(began, page.Shut)
	added := map[int32]bool{}
	for i := range page.Items {
		for _, id := range page.Items[i].Routes {
			added[id] = true
		}
	}
	maps.Copy(l.live, added)
}

// stop forbids to begin anything more. What is under way may come to its end.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

func (l *lease) allows(route int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if failpoint.Bug("nogate") {
		return !l.stopping && l.ctx.Err() == nil
	}
	return !l.stopping && l.ctx.Err() == nil && now.Before(l.fresh) && now.Before(l.until.Add(-margin)) && l.live[route]
}

func (l *lease) open(domain string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return failpoint.Bug("nogate") || !slices.Contains(l.shut, domain)
}

// A Permit is what a handler asks before it delivers: the lease of the moment.
type Permit struct {
	mu    sync.Mutex
	lease *lease
}

func (p *Permit) set(l *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = l
}

func (p *Permit) current() *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease
}

// Allows reports whether the route may deliver now: the lease is ours, the gates are
// open, and it is live.
func (p *Permit) Allows(route int32) bool {
	l := p.current()
	return l != nil && l.allows(route)
}

// AllowsDomain reports whether the gate of the domain is open, as of what Allows goes by.
func (p *Permit) AllowsDomain(domain string) bool {
	l := p.current()
	return l != nil && l.open(domain)
}

// Changed returns a channel that is closed when the gate of a domain opens or closes. Without a lease it is nil, and the
// permit allows nothing.
func (p *Permit) Changed() <-chan struct{} {
	l := p.current()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Epoch is that of the lease.
func (p *Permit) Epoch() int64 {
	if l := p.current(); l != nil {
		return l.cursor.Epoch()
	}
	return 0
}

func (l *lease) why() error {
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("the lease ended")
}
