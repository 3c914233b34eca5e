package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Table is a shard of a table as a source.
type Table struct {
	Source string
	Shard  int
	Paging *Paging
	Handle store.Handle // nil: the handler is in the database
}

// Paging may be set while the worker runs: its next pass goes by it.
type Paging struct{ now atomic.Pointer[store.Paging] }

// NewPaging returns one that is set.
func NewPaging(now store.Paging) *Paging {
	p := &Paging{}
	p.Set(now)
	return p
}

// Set is for what an operator may have changed.
func (p *Paging) Set(now store.Paging) { p.now.Store(&now) }

func (p *Paging) size() int { return p.now.Load().PageSize }

func (p *Paging) timeout() time.Duration {
	return time.Duration(p.now.Load().PageTimeout * float64(time.Second))
}

// tablePass makes passes over a table. A pass is one transaction: it reads, hands over, records and moves the cursor, so
// that nothing is delivered in between. It renews the lease, too.
type tablePass struct {
	*store.Table
	*reporter
	o      Table
	slots  *Slots
	page   int // rows at most, while Handle takes too long; 0: as the worker says
	states tableStates
}

func (s Table) open(db store.Pool, o *Options, r *reporter) source {
	r.log = o.Log.With("worker", o.Worker, "source", s.Source, "shard", s.Shard)
	return &tablePass{
		Table: store.NewTable(db, o.Worker, s.Source, s.Shard, o.Owner, o.Lease), reporter: r, o: s, slots: o.Slots,
		states: tableStates{log: r.log, seen: map[string]time.Time{}},
	}
}

func (t *tablePass) pass(ctx context.Context, l *lease) (next, error) {
	began := time.Now()
	pass, err := t.narrowed(ctx, l)
	switch {
	case err == nil && pass.Status == "cut":
		// The cursor knows how many rows the next page is to have, down to the one that is at fault.
		return next{}, retryError{"pass", pass.More, &pgconn.PgError{Severity: "ERROR", Code: store.Timeout, Message: pass.Detail}}
	case store.Is(err, tidemark.ErrFenced):
		return next{}, errFenced
	case err != nil && store.Transient(err):
		return next{}, retryError{"pass", false, err}
	case err != nil:
		t.failed(ctx, "pass", err)
		return next{}, err // another instance may do better, and an operator sees which one has the lease
	}
	t.well(ctx)
	if pass.Status == "closed" {
		return next{}, gateError{pass.Detail}
	}
	t.states.note(ctx, pass)
	switch pass.Status {
	case "ran":
		if t.page *= 2; t.page >= t.o.Paging.size() {
			t.page = 0
		}
		t.observe.read(pass.Rows, time.Since(began))
		t.observe.settled(pass.Taken, time.Since(began))
		return next{again: pass.More, found: pass.Taken > 0}, nil
	default:
		return next{idle: true, pollSelf: pass.Status == "held"}, nil
	}
}

// An UnfitError is that of a Handle which has left its transaction so that nothing can follow in it.
type UnfitError struct{ Cause error }

func (e UnfitError) Error() string { return e.Cause.Error() }

// narrowed runs a pass, again with fewer rows while Handle takes too long or is unfit, down to the one that is at fault: each try
// takes as long as a page may. In the end that row has failed without Handle. If another row comes up by then, Handle gets it.
func (t *tablePass) narrowed(ctx context.Context, l *lease) (store.Pass, error) {
	for given := (*fault)(nil); ; {
		timeout := t.o.Paging.timeout()
		free, err := t.slots.Take(ctx, timeout+settleTime)
		if err != nil {
			return store.Pass{}, err
		}
		pass, alone, err := t.run(l.hard, timeout, given)
		free()
		var unfit UnfitError
		is := errors.As(err, &unfit)
		switch {
		case err == nil || !is && !t.timedOut(err) || ctx.Err() != nil:
			return pass, err
		case t.page != 1:
			t.page = max(1, cmp.Or(t.page, t.o.Paging.size())/8)
		case alone == nil:
			return pass, err
		case is:
			given = &fault{alone.ID, unfit.Error()}
		default:
			given = &fault{alone.ID, "it took longer than " + timeout.String()}
		}
	}
}

// A fault is why the row of an id fails without Handle.
type fault struct{ id, message string }

// run runs one pass to its end, also when the worker is told to stop meanwhile. alone is the row that Handle got by itself.
func (t *tablePass) run(ctx context.Context, timeout time.Duration, given *fault) (pass store.Pass, alone *store.Row, err error) {
	failpoint.Pause("read")
	// The server ends what takes too long; the deadline is for connections that the network has forgotten.
	ctx, cancel := context.WithTimeout(ctx, timeout+settleTime)
	defer cancel()
	if t.o.Handle == nil {
		pass, err = t.Pass(ctx, timeout)
		return pass, nil, err
	}
	pass, err = t.Apply(ctx, timeout, t.page, func(ctx context.Context, tx pgx.Tx, rows []store.Row) ([]store.FailedRow, int, error) {
		if len(rows) == 1 {
			if given != nil && rows[0].ID == given.id {
				return []store.FailedRow{{Row: rows[0], Message: given.message}}, 0, nil
			}
			alone = &rows[0]
		}
		return t.o.Handle(ctx, tx, rows)
	})
	return pass, alone, err
}

// timedOut: a function of this program is ended by its context, what it does in the database also by the server.
func (t *tablePass) timedOut(err error) bool {
	return t.o.Handle != nil && (store.TimedOut(err) || errors.Is(err, context.DeadlineExceeded))
}

// tableStates logs what passes report, when an operator cares: a new phase, and why the worker pauses or is held. Under steady
// work a worker pauses and goes on by turns, so a pause is news only if there was none of its kind for a while.
type tableStates struct {
	log   *slog.Logger
	phase string               // and whether it is blocked, as logged last
	seen  map[string]time.Time // pauses, when they were seen last
}

// newsAfter is for how long a pause must not have been seen to be logged again.
const newsAfter = 10 * time.Minute

func (s *tableStates) note(ctx context.Context, pass store.Pass) {
	if pass.Status == "ran" {
		phase := pass.Phase
		if pass.BlockedBy != "" {
			phase += " blocked"
		}
		if phase != s.phase {
			s.phase = phase
			s.log.InfoContext(ctx, pass.Phase, withValue([]any{"detail", pass.BlockedBy})...)
		}
		return
	}
	level, key := slog.LevelInfo, pass.Status
	if pass.Status == "held" {
		level = slog.LevelWarn
		key += " " + pass.Detail
	}
	last, seen := s.seen[key]
	s.seen[key] = time.Now()
	if seen && time.Since(last) < newsAfter {
		return
	}
	if pass.Status == "held" {
		s.phase = "" // that it goes on is news
	}
	s.log.Log(ctx, level, pass.Status, withValue([]any{"detail", pass.Detail})...)
}
