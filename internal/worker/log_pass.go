package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// The life of an event, from top to bottom: the worker claims the cursor (worker.go) and begins here; pass after pass it reads,
// acts and settles; in the end it settles what was under way, and the worker releases the cursor.

// Log is the log as a source. Its events go to Targets, outside of any transaction, and then to Handler, in the transaction that
// settles them; either may be nil.
type Log struct {
	Shard    int // 0: the first, often the only one
	MaxBatch int
	Targets  Targets
	Handler  Handler
	Permit   *Permit // what Targets and Handler ask before they deliver
}

// Targets act on events outside of any transaction. They are used from one goroutine, but for Busy and Report.
type Targets interface {
	// Begin is called with every claim: keys are those with events pending.
	Begin(keys []store.Waiting)
	// Act does something with the page's items, until ctx is done, and returns a result for each fresh item and route, and
	// whatever else has ended since it last returned.
	Act(ctx context.Context, page *store.Page) []store.Result
	// Ready is signalled when there is something to collect; Collect returns what has ended since it was last asked.
	Ready() <-chan struct{}
	Collect() []store.Result
	// Busy: something is under way, or to be collected. Quiesce returns when nothing is under way any more.
	Busy() bool
	Quiesce()
	// Capacity says how many pending events each route takes; those it does not name take 100.
	Capacity() map[int32]int
	// KeysWait: a target that takes events has some waiting behind their key in the database.
	KeysWait() bool
	// KeysUncounted: there were too many keys to know one by one, and they may be counted again. Recount is Begin for those
	// routes alone, in mid-lease.
	KeysUncounted() bool
	Recount(keys []store.Waiting)
	// Report tells the database what operators should know, after each settle.
	Report(ctx context.Context, c *store.Cursor)
}

// Handler acts on events in the transaction that settles them.
type Handler interface {
	// Apply does something with the page's items in tx, one of store.InHandlerTx, and returns a result for each item and route. It
	// gets every page that has items or routes. When ctx is done, what is under way is cut off; what has been done is still to be
	// settled. An error takes the page back; it is applied again, or read again.
	Apply(ctx context.Context, tx pgx.Tx, c *store.Cursor, page *store.Page) ([]store.Result, error)
	// Report tells the database what operators should know, after each settle.
	Report(ctx context.Context, c *store.Cursor)
}

// logPass makes passes over the log.
type logPass struct {
	Log
	*store.Cursor
	*reporter
	db      store.Pool
	budget  *budget
	unread  unreads
	settler *settler
	slots   *Slots

	routes   string          // version of those that the latest page needed
	ahead    <-chan pageRead // the page behind the latest one, if it is read beside that
	scanned  time.Time       // for what is pending
	recount  time.Time       // not before then
	applying atomic.Bool
	doubt    bool // whether the latest read has settled
	lost     bool // a page was not settled: the database does not know what of it was to be pending
}

func (s Log) open(db store.Pool, o *Options, r *reporter) source {
	r.log = o.Log.With("worker", o.Worker)
	if s.Shard > 0 {
		r.log = r.log.With("shard", s.Shard)
	}
	return &logPass{
		Log: s, Cursor: store.NewCursor(db, o.Worker, s.Shard, o.Owner, o.Lease), reporter: r, db: db,
		budget: newBudget(s.MaxBatch), unread: unreads{}, settler: newSettler(), slots: o.Slots,
	}
}

// begin follows a claim: the targets learn which keys have events pending.
func (p *logPass) begin(ctx context.Context, l *lease) error {
	p.Permit.set(l)
	p.routes, p.doubt, p.lost = "", false, false
	p.settler.begin(func(page *store.Page, results []store.Result) error {
		err := p.settle(ctx, l, page, results)
		if err != nil {
			l.cancel(err) // what is under way is not to be recorded by this instance
			return err
		}
		p.recorded(ctx)
		return nil
	})
	if p.Targets == nil {
		return nil
	}
	keys, err := p.waiting(ctx)
	if err == nil {
		p.Targets.Begin(keys)
	}
	return err
}

// pass reads a page and acts on it. A page of which all arrived is settled while those behind it are read and acted on.
func (p *logPass) pass(ctx context.Context, l *lease) (next, error) {
	began := time.Now()
	page, unreadable, err := p.read(ctx, l)
	switch {
	case err != nil:
		return next{}, err
	case page.Settled:
		p.observe.settled(0, time.Since(began))
		p.recorded(ctx)
		p.budget.spent(page.Events, 0, nil, 0, time.Since(began))
		return next{again: page.Events > 0, open: page.Open}, nil
	}
	acting := time.Now()
	results := append(p.act(ctx, l, page), unreadable...)
	acted, bytes := time.Since(acting), page.Bytes()
	p.routes = page.RoutesVersion
	n := next{again: page.Events > 0 || len(page.Items) > 0 || page.Inside > 0, open: page.Open}
	switch {
	case p.arrived(page, results):
		n.ended = page.Events < p.budget.limit && bytes <= fewBytes // a page with more may have been cut
		page.Items = nil
		err = p.settler.add(page, results, p.budget.limit)
	case !n.again && len(results) == 0 && p.settler.unsettled() != nil:
		n.found = true // it is read again when all before it is settled
	default:
		err = p.settleNow(ctx, l, page, results, unreadable)
		page.Items = nil // a handler may hold the page: there is no room for two large ones
	}
	p.budget.spent(page.Events, bytes, results, acted, time.Since(began))
	return n, err
}

// arrived: nothing of the page has to be recorded before what comes behind it is acted on. An event that waits or is given up
// is recorded first, since later ones of its key depend on that; so is what had been pending.
func (p *logPass) arrived(page *store.Page, results []store.Result) bool {
	return page.Events > 0 && page.Inside == 0 && !p.applies(page) && !slices.ContainsFunc(results, func(r store.Result) bool {
		return !r.Fresh || r.Outcome != store.Sent && r.Outcome != store.Skipped
	})
}

// read is one transaction, which makes durable what it returns before anything leaves. What is unreadable is no part of the
// page any more, and has its results already.
func (p *logPass) read(ctx context.Context, l *lease) (page *store.Page, unreadable []store.Result, err error) {
	if page = p.takeAhead(); page == nil {
		page, err = p.readNext(ctx, l)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case page.Gate != "":
		return nil, nil, gateError{page.Gate}
	case page.Missing > 0:
		return nil, nil, reclaimError{page.Missing, "are no longer in the log"}
	}
	unreadable, err = p.fill(ctx, l, page)
	return page, unreadable, err
}

// act delivers outside of any transaction. What has not ended when the page need not wait any longer goes on, and is pending.
func (p *logPass) act(ctx context.Context, l *lease, page *store.Page) []store.Result {
	p.readBeside(ctx, l, page)
	failpoint.Pause("act")
	if p.Targets == nil {
		return nil
	}
	return p.Targets.Act(l.ctx, page)
}

// settleNow settles the page behind those that the settler has.
func (p *logPass) settleNow(ctx context.Context, l *lease, page *store.Page, results, unreadable []store.Result) error {
	if err := p.settler.flush(); err != nil {
		return err
	}
	if err := p.settle(ctx, l, page, results); err != nil {
		return err
	}
	if len(unreadable) == 0 {
		p.recorded(ctx)
		return nil
	}
	p.unread.forgetGivenUp()
	p.report(ctx)
	if n := waited(unreadable); n > 0 {
		return reclaimError{n, "could not be read"}
	}
	return nil
}

// settleTime is after how long a settle is taken for lost on the way, at least.
const settleTime = 5 * time.Second

// settle records what came of the page, and of what has ended beside it, and moves the
// cursor, in one transaction under the lease's epoch. It runs to its end even when the
// worker is told to stop or its lease has run out: as long as no other instance has taken the
// cursor the record is right, and without it everything would be delivered again.
func (p *logPass) settle(ctx context.Context, l *lease, page *store.Page, results []store.Result) (err error) {
	defer func() {
		if page != nil && err != nil {
			p.lost = true
		}
	}()
	if page != nil && len(results) == 0 && page.Inside == 0 && !p.Moves(page) && !p.applies(page) {
		return nil
	}
	failpoint.Pause("settle")
	unhurried := context.WithoutCancel(ctx)
	for try := 0; ; try++ {
		began := time.Now()
		err := p.settleOnce(unhurried, l, page, results)
		switch {
		// Of the first try, settled already would be another settle: the page is in no record.
		case err == nil, errors.Is(err, store.ErrSettled) && (try > 0 || page == nil):
			p.Settled(page)
			p.observe.settled(len(results), time.Since(began))
			return nil
		case store.Is(err, tidemark.ErrFenced):
			return errFenced
		case l.last.Err() != nil, errors.As(err, &gateError{}):
			return err
		case !store.Transient(err):
			p.once(ctx, slog.LevelError, "settle failed", "error", store.WithKey(err))
			p.failing.failed(l.last, "settle", err)
			return err
		}
		p.failed(l.last, "settle", err)
		select {
		case <-time.After(pause(try)):
		case <-l.last.Done():
			return err
		}
	}
}

func (p *logPass) settleOnce(ctx context.Context, l *lease, page *store.Page, results []store.Result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.last, cancel)()
	patience := max(settleTime, p.Lease())
	if page != nil {
		// The server ends it first, and tells what of it was to blame.
		patience = max(patience, page.Inside+settleTime)
	}
	if !p.applies(page) {
		if page != nil && page.Inside > 0 {
			free, err := p.slots.Take(ctx, patience)
			if err != nil {
				return err
			}
			defer free()
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return p.Settle(ctx, nil, page, results)
	}
	p.applying.Store(true)
	defer p.applying.Store(false)
	return store.InHandlerTx(ctx, p.db, patience, func(tx pgx.Tx) error {
		done, err := p.Handler.Apply(l.ctx, tx, p.Cursor, page)
		if err != nil {
			return err
		}
		// Handlers may end after l.last, if they do not obey: what they have done has a last word of its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		defer context.AfterFunc(l.hard, func() { time.AfterFunc(lastWord, cancel) })()
		gate, err := p.SettleHandled(ctx, tx, page, handled(done), slices.Concat(results, done))
		if err == nil && gate != "" {
			err = gateError{gate}
		}
		return err
	})
}

// applies: the page has something for the handler.
func (p *logPass) applies(page *store.Page) bool {
	return p.Handler != nil && page != nil && len(page.Items)+len(page.Routes) > 0
}

// recorded follows a settle.
func (p *logPass) recorded(ctx context.Context) {
	p.well(ctx)
	p.report(ctx)
}

// end precedes the release: what is under way comes to its end, and is settled.
func (p *logPass) end(ctx context.Context, l *lease, why error) error {
	defer p.Permit.set(nil)
	if err := p.settler.flush(); err != nil {
		why = err
	}
	if p.Targets != nil {
		p.Targets.Quiesce()
		if results := p.Targets.Collect(); len(results) > 0 && !p.lost && !errors.Is(why, errFenced) {
			if err := p.settle(ctx, l, nil, results); err != nil {
				why = err
			}
		}
		p.report(l.last)
	}
	if p.ahead != nil {
		<-p.ahead
		p.ahead = nil
	}
	return why
}

func (p *logPass) busy() bool {
	return p.applying.Load() || p.settler.unsettled() != nil || p.Targets != nil && p.Targets.Busy()
}

func (p *logPass) ready() <-chan struct{} {
	if p.Targets == nil {
		return nil
	}
	return p.Targets.Ready()
}

// report lets the targets or the handler tell operators. It is bounded, since it holds up the next pass.
func (p *logPass) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	if p.Targets != nil {
		p.Targets.Report(ctx, p.Cursor)
	}
	if p.Handler != nil {
		p.Handler.Report(ctx, p.Cursor)
	}
}

// handled are the routes whose handlers have done something that the commit makes last.
func handled(done []store.Result) (ids []int32) {
	for _, r := range done {
		if r.Outcome != store.Pending {
			ids = append(ids, r.Route)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
