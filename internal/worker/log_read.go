package worker

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// retryScanEvery is how often what is pending and due is read while there are new events all the time.
	retryScanEvery = 100 * time.Millisecond
	// aheadBytes is the most payload of a page beside which another one is in memory, and of that one.
	aheadBytes = 4 << 20
)

// readNext reads the page behind the latest one, with what is pending and due: all of a page that is not settled has arrived, so
// its settle makes nothing pending. If the page leaves nothing to deliver and nothing else is to be recorded, the same statement
// settles it.
func (p *logPass) readNext(ctx context.Context, l *lease) (*store.Page, error) {
	if err := p.resolve(ctx, l); err != nil {
		return nil, err
	}
	if err := p.recountKeys(ctx); err != nil {
		return nil, err
	}
	ask := p.budget.ask()
	ask.After, ask.KnownRoutes = p.settler.unsettled(), p.routes
	ask.Settle = ask.After == nil && p.Handler == nil && !ask.Withhold
	if p.Targets != nil {
		ask.Capacity = p.Targets.Capacity()
		ask.Settle = ask.Settle && !p.Targets.Busy()
	}
	read := p.ask(ctx, l, ask)
	p.doubt = ask.Settle && read.err != nil && !store.Refused(read.err)
	switch err := read.err; {
	case err == nil:
		p.scanned = read.began
		if !ask.Withhold {
			p.budget.read(read.page, read.took, p.Lease())
		}
		return read.page, nil
	case store.Is(err, tidemark.ErrFenced):
		return nil, errFenced
	case store.Is(err, tidemark.ErrRegression):
		return nil, store.ErrHeld
	case store.TooMuch(err):
		p.budget.tooMuch()
	}
	return nil, retryError{step: "read", error: read.err}
}

// resolve follows a read that settles and whose answer was lost. That read may come to the database at any time: after its
// number is given up, it changes nothing. Otherwise it could settle the events of a page that is being delivered.
func (p *logPass) resolve(ctx context.Context, l *lease) error {
	if !p.doubt {
		return nil
	}
	if err := p.settle(ctx, l, nil, nil); err != nil {
		return err
	}
	p.doubt = false
	return nil
}

// A pageRead is a page, or why there is none.
type pageRead struct {
	page  *store.Page
	began time.Time
	took  time.Duration
	err   error
}

// ask has a deadline, as every statement has: a connection that the network has forgotten
// gives no answer, ever. What takes longer than the lease is of no use.
func (p *logPass) ask(ctx context.Context, l *lease, ask store.Ask) pageRead {
	failpoint.Pause("read")
	began := time.Now()
	limited, cancel := p.limited(ctx, l)
	defer cancel()
	page, err := p.Read(limited, ask)
	if err != nil {
		return pageRead{nil, began, time.Since(began), l.late(err)}
	}
	if page.Gate == "" {
		l.read(began, page)
	}
	if page.RoutesVersion == "" {
		page.RoutesVersion = ask.KnownRoutes
	}
	took := time.Since(began)
	p.observe.read(page.Events, took)
	p.observe.decided(page.Items, began, took)
	return pageRead{page, began, took, nil}
}

// limited ends with the lease, and after as long as a lease takes.
func (p *logPass) limited(ctx context.Context, l *lease) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, p.Lease())
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// readBeside reads the page behind this one while it is acted on, if there is a backlog, or if its settle takes part in that. But
// now and then the next page has to wait for the settle: only then it can bring what is pending and due.
func (p *logPass) readBeside(ctx context.Context, l *lease, page *store.Page) {
	slow := page.Events >= p.budget.limit || page.Events > 0 && (page.Inside > 0 || p.applies(page))
	if !slow || time.Since(p.scanned) >= retryScanEvery || p.Targets != nil && p.Targets.KeysWait() || p.budget.alone ||
		page.Bytes() > aheadBytes {
		return
	}
	ask := p.budget.ask()
	// What this page makes pending is not settled yet.
	ask.After, ask.NothingPending, ask.KnownRoutes = page, true, page.RoutesVersion
	if ask.Bytes == 0 || ask.Bytes > aheadBytes {
		ask.Bytes = aheadBytes
	}
	ahead := make(chan pageRead, 1)
	go func() { ahead <- p.ask(ctx, l, ask) }()
	p.ahead = ahead
}

// takeAhead is the page that was read beside the latest one. Nil: there is none, or it is empty, or has to be read again.
func (p *logPass) takeAhead() *store.Page {
	if p.ahead == nil {
		return nil
	}
	read := <-p.ahead
	p.ahead = nil
	switch {
	case read.err == nil:
		p.budget.read(read.page, read.took, p.Lease())
	case store.TooMuch(read.err):
		p.budget.tooMuch()
	}
	if read.page == nil || read.page.Events == 0 {
		return nil
	}
	return read.page
}

func (p *logPass) waiting(ctx context.Context) ([]store.Waiting, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Lease())
	defer cancel()
	return p.Waiting(ctx)
}

// recountKeys lets the targets know keys one by one again where there were too many. A count
// takes at most a twentieth of the time.
func (p *logPass) recountKeys(ctx context.Context) error {
	began := time.Now()
	if p.Targets == nil || began.Before(p.recount) || !p.Targets.KeysUncounted() {
		return nil
	}
	if err := p.settler.flush(); err != nil {
		return err
	}
	if keys, err := p.waiting(ctx); err == nil {
		p.Targets.Recount(keys)
	}
	p.recount = time.Now().Add(max(time.Second, 19*time.Since(began)))
	return nil
}
