package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// work is the life of an event, from the claim of the cursor on: read, act, settle, and
// again. It returns when the lease is over or ctx is done, with everything settled that
// could be.
func (w *Worker) work(ctx context.Context, l *lease) error {
	var page, last *store.Page
	for {
		if page == nil {
			var err error
			if page, err = w.read(ctx, l, last); err != nil {
				return err
			}
		}
		if page.Gate != "" {
			return closedError{page.Gate}
		}
		if page.Missing > 0 {
			return anewError{page.Missing, "are not in the log any more"}
		}
		unreadable, err := w.fill(ctx, l, page)
		if err != nil {
			return err
		}
		began := time.Now()

		// A backlog is read ahead while this page is acted on; at the end of the log, while
		// it is settled. But now and then the next page has to wait for the settle: only
		// then it can bring what is pending and due.
		var ahead <-chan readAhead
		may := time.Since(w.looked) < lookForDue && !w.handler.Behind() && !w.budget.alone && page.Bytes() <= aheadBytes
		full := page.Events >= w.budget.limit
		if may && full {
			ahead = w.readAhead(ctx, l, page)
		}

		failpoint.Pause("act")
		acting := time.Now()
		results := append(w.handler.Act(l.ctx, page), unreadable...)
		acted := time.Since(acting)

		if may && !full && page.Events > 0 {
			ahead = w.readAhead(ctx, l, page)
		}
		failpoint.Pause("settle")
		if err := w.settle(ctx, l, page, results); err != nil {
			return err
		}
		if len(unreadable) == 0 {
			w.failing.well(ctx)
		} else {
			w.unread.forgetGivenUp()
		}
		w.report(ctx)
		if n := waited(unreadable); n > 0 {
			return anewError{n, "could not be read"}
		}
		w.budget.spent(page, results, acted, time.Since(began))
		found := page.Events > 0 || len(page.Items) > 0 || page.Inside > 0
		page.Items = nil // there is no room for two large pages

		last, page = page, nil
		if ahead != nil {
			page = w.take(<-ahead)
		}
		if page != nil && page.Events > 0 || page == nil && full {
			w.busy()
			continue
		}
		page = nil
		if err := w.rest(ctx, l, found, last.Open); err != nil {
			return err
		}
	}
}

const (
	// lookForDue is how often what is pending is looked for while there is something to read
	// all the time.
	lookForDue = 100 * time.Millisecond
	// aheadBytes is the most payload of a page beside which another one is in memory, and of that one.
	aheadBytes = 4 << 20
)

// read is one transaction, which makes durable what it returns before anything leaves.
func (w *Worker) read(ctx context.Context, l *lease, known *store.Page) (*store.Page, error) {
	for try := 0; ; try++ {
		w.recountKeys(ctx)
		ask := w.budget.ask(known)
		ask.Rooms = w.handler.Rooms()
		began := time.Now()
		page, err := w.ask(ctx, l, ask, known)
		switch {
		case err == nil:
			w.looked = began
			if !ask.Withhold {
				w.budget.read(page, time.Since(began), w.cursor.Lease())
			}
			return page, nil
		case store.Is(err, store.Fenced):
			return nil, errFenced
		case store.Is(err, store.Edited):
			return nil, store.ErrHeld
		case store.TooMuch(err):
			w.budget.tooMuch()
		}
		if err := w.cannotRead(ctx, l, try, err); err != nil {
			return nil, err
		}
	}
}

// cannotRead waits before the next try. An error says that there is none.
func (w *Worker) cannotRead(ctx context.Context, l *lease, try int, err error) error {
	if ctx.Err() == nil {
		w.log.WarnContext(ctx, "cannot read", "error", err)
		w.failing.failed(ctx, "read", err)
	}
	return w.wait(ctx, l, pause(try))
}

// ask has a deadline, as every statement has: a connection that the network has forgotten
// gives no answer, ever. What takes longer than the lease is of no use to anybody.
func (w *Worker) ask(ctx context.Context, l *lease, ask store.Ask, known *store.Page) (*store.Page, error) {
	failpoint.Pause("read")
	began := time.Now()
	limited, cancel := w.limited(ctx, l)
	defer cancel()
	page, err := w.cursor.Read(limited, ask)
	if err != nil {
		return nil, l.late(err)
	}
	if page.Gate == "" {
		l.read(began, page)
	}
	if page.RoutesVersion == "" && known != nil {
		page.RoutesVersion = known.RoutesVersion
	}
	w.observe.Read(page.Events, time.Since(began))
	return page, nil
}

// limited ends with the lease, and after as long as a lease takes.
func (w *Worker) limited(ctx context.Context, l *lease) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, w.cursor.Lease())
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// A readAhead is the page behind the one that is acted on, or why there is none.
type readAhead struct {
	page *store.Page
	took time.Duration
	err  error
}

// readAhead reads the page behind this one.
func (w *Worker) readAhead(ctx context.Context, l *lease, page *store.Page) <-chan readAhead {
	ask := w.budget.ask(page)
	// What this page makes pending is not settled yet.
	ask.After, ask.NothingPending = page, true
	if ask.Bytes == 0 || ask.Bytes > aheadBytes {
		ask.Bytes = aheadBytes
	}
	ahead := make(chan readAhead, 1)
	go func() {
		began := time.Now()
		next, err := w.ask(ctx, l, ask, page)
		ahead <- readAhead{next, time.Since(began), err}
	}()
	return ahead
}

// take takes in what was read ahead. Nil: it is read again.
func (w *Worker) take(ahead readAhead) *store.Page {
	switch {
	case ahead.err == nil:
		w.budget.read(ahead.page, ahead.took, w.cursor.Lease())
	case store.TooMuch(ahead.err):
		w.budget.tooMuch()
	}
	return ahead.page
}

// settleTime is after how long a settle is taken for lost on the way, at least.
const settleTime = 5 * time.Second

// settle records what came of the page, and of what has ended beside it, and moves the
// cursor, in one transaction under the lease's epoch. It runs to its end even when the
// worker is told to stop or its lease has run out: as long as nobody else has taken the
// cursor the record is right, and without it everything would be delivered again.
func (w *Worker) settle(ctx context.Context, l *lease, page *store.Page, results []store.Result) error {
	if page != nil && len(results) == 0 && page.Inside == 0 && !w.cursor.Moves(page) && w.inTx == nil {
		return nil
	}
	unhurried := context.WithoutCancel(ctx)
	for try := 0; ; try++ {
		began := time.Now()
		err := w.settleOnce(unhurried, l, page, results)
		switch {
		case err == nil, errors.Is(err, store.ErrSettled):
			w.cursor.Settled(page)
			w.observe.Settled(len(results), time.Since(began))
			return nil
		case store.Is(err, store.Fenced):
			return errFenced
		case w.hard.Err() != nil, errors.As(err, &closedError{}):
			return err
		case !store.Transient(err):
			w.log.ErrorContext(ctx, "cannot settle", "error", err)
			w.failing.failed(w.hard, "settle", err)
			return err
		}
		w.log.WarnContext(ctx, "cannot settle yet", "error", err)
		w.failing.failed(w.hard, "settle", err)
		select {
		case <-time.After(pause(try)):
		case <-w.hard.Done():
			return err
		}
	}
}

func (w *Worker) settleOnce(ctx context.Context, l *lease, page *store.Page, results []store.Result) error {
	if w.inTx == nil || page == nil || len(page.Items) == 0 {
		patience := max(settleTime, w.cursor.Lease())
		if page != nil {
			// The server ends it first, and tells what of it was to blame.
			patience = max(patience, page.Inside+settleTime)
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		defer context.AfterFunc(w.hard, cancel)()
		return w.cursor.Settle(ctx, nil, page, results)
	}
	return pgx.BeginTxFunc(ctx, w.begin, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		done, err := w.inTx.Apply(l.ctx, tx, w.cursor, page)
		if err != nil {
			return err
		}
		// The last look at the switches comes after the last effect.
		if gate, err := w.cursor.Closed(ctx, tx, routes(page), page.Shut); err != nil || gate != "" {
			return errors.Join(err, closedError{gate})
		}
		return w.cursor.Settle(ctx, tx, page, append(results, done...))
	})
}

func routes(page *store.Page) (ids []int32) {
	for i := range page.Items {
		ids = append(ids, page.Items[i].Routes...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
