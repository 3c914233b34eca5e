package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/cursor"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
)

// work is the life of an event, from the claim of the cursor on: read, act, settle, and
// again. It returns when the lease is over or ctx is done, with everything settled that
// could be.
func (w *Worker) work(ctx context.Context, l *lease) error {
	var page, last *cursor.Page
	for {
		if page == nil {
			var err error
			if page, err = w.read(ctx, l, last, nil); err != nil {
				return err
			}
		}
		if page.Gate != "" {
			return closedError{page.Gate}
		}
		if page.Missing > 0 {
			return missingError{page.Missing}
		}
		began := time.Now()

		// A backlog is read ahead while this page is acted on; at the end of the log, while
		// it is settled. But now and then the next page has to wait for the settle: only
		// then it can bring what is pending and due.
		var ahead <-chan *cursor.Page
		may, full := time.Since(w.looked) < lookForDue && !w.handler.Behind(), page.Events >= w.budget.limit
		if may && full {
			ahead = w.readAhead(ctx, l, page)
		}

		failpoint.Pause("act")
		acting := time.Now()
		results := w.handler.Act(l.ctx, page)
		acted := time.Since(acting)

		if may && !full && page.Events > 0 {
			ahead = w.readAhead(ctx, l, page)
		}
		failpoint.Pause("settle")
		if err := w.settle(ctx, l, page, results); err != nil {
			return err
		}
		w.failing.well(ctx)
		w.report(ctx)
		w.budget.spent(page, results, acted, time.Since(began))

		last, page = page, nil
		if ahead != nil {
			page = <-ahead
		}
		if page != nil && page.Events > 0 || page == nil && full {
			w.busy()
			continue
		}
		page = nil
		if err := w.rest(ctx, l, last); err != nil {
			return err
		}
	}
}

// lookForDue is how often what is pending is looked for while there is something to read
// all the time.
const lookForDue = 100 * time.Millisecond

// read is one transaction, which makes durable what it returns before anything leaves.
func (w *Worker) read(ctx context.Context, l *lease, known, after *cursor.Page) (*cursor.Page, error) {
	for try := 0; ; try++ {
		failpoint.Pause("read")
		ask := cursor.Ask{Limit: w.budget.limit, After: after}
		if known != nil {
			ask.KnownRoutes = known.RoutesVersion
		}
		if after == nil {
			w.recountKeys(ctx)
			ask.Rooms = w.handler.Rooms()
		} else {
			// What this page makes pending is not settled yet.
			ask.NothingPending = true
		}
		began := time.Now()
		page, err := w.ask(ctx, l, ask)
		switch {
		case err == nil:
			if page.Gate == "" {
				l.read(began, page)
			}
			if after == nil {
				w.looked = began
			}
			if page.RoutesVersion == "" && known != nil {
				page.RoutesVersion = known.RoutesVersion
			}
			w.observe.Read(page.Events, time.Since(began))
			return page, nil
		case cursor.Is(err, cursor.Fenced):
			return nil, errFenced
		case after != nil:
			return nil, nil //nolint:nilnil // it is read again when its turn has come
		case cursor.Is(err, cursor.Edited):
			return nil, cursor.ErrHeld
		case errors.Is(err, context.DeadlineExceeded):
			w.budget.halve() // less may come in time
		}
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "cannot read", "error", err)
			w.failing.failed(ctx, "read", err)
		}
		if err := w.wait(ctx, l, pause(try)); err != nil {
			return nil, err
		}
	}
}

// ask has a deadline, as every statement has: a connection that the network has forgotten
// gives no answer, ever. What takes longer than the lease is of no use to anybody.
func (w *Worker) ask(ctx context.Context, l *lease, ask cursor.Ask) (*cursor.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, w.cursor.Lease())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	return w.cursor.Read(ctx, ask)
}

// readAhead reads the page behind this one. It gives nil where it could not.
func (w *Worker) readAhead(ctx context.Context, l *lease, page *cursor.Page) <-chan *cursor.Page {
	ahead := make(chan *cursor.Page, 1)
	go func() {
		defer close(ahead)
		next, err := w.read(ctx, l, page, page)
		if err == nil && next != nil {
			ahead <- next
		}
	}()
	return ahead
}

// settleTime is after how long a settle is taken for lost on the way, at least.
const settleTime = 5 * time.Second

// settle records what came of the page, and of what has ended beside it, and moves the
// cursor, in one transaction under the lease's epoch. It runs to its end even when the
// worker is told to stop or its lease has run out: as long as nobody else has taken the
// cursor the record is right, and without it everything would be delivered again.
func (w *Worker) settle(ctx context.Context, l *lease, page *cursor.Page, results []cursor.Result) error {
	if page != nil && len(results) == 0 && page.Inside == 0 && !w.cursor.Moves(page) && w.inTx == nil {
		return nil
	}
	unhurried := context.WithoutCancel(ctx)
	for try := 0; ; try++ {
		began := time.Now()
		err := w.settleOnce(unhurried, l, page, results)
		switch {
		case err == nil, errors.Is(err, cursor.ErrSettled):
			w.cursor.Settled(page)
			w.observe.Settled(len(results), time.Since(began))
			return nil
		case cursor.Is(err, cursor.Fenced):
			return errFenced
		case w.hard.Err() != nil, errors.As(err, &closedError{}):
			return err
		case !cursor.Transient(err):
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

func (w *Worker) settleOnce(ctx context.Context, l *lease, page *cursor.Page, results []cursor.Result) error {
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
		if gate, err := w.cursor.Closed(ctx, tx, routes(page)); err != nil || gate != "" {
			return errors.Join(err, closedError{gate})
		}
		return w.cursor.Settle(ctx, tx, page, append(results, done...))
	})
}

func routes(page *cursor.Page) (ids []int32) {
	for i := range page.Items {
		ids = append(ids, page.Items[i].Routes...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
