package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// TableOptions are what a worker of a table needs. All are required but Handle and Look.
type TableOptions struct {
	Worker, Source string
	Shard          int
	Owner          string // names this instance of this process, and no other ever
	Lease          time.Duration
	PageSize       int
	PageTimeout    time.Duration
	PollMin        time.Duration
	PollMax        time.Duration
	StopTime       time.Duration // for the pass under way when the worker is told to stop

	Handle  store.Handle // nil: the handler is in the database
	Look    *Looker      // nil: it looks for itself, also asleep
	Observe Observer
	Log     *slog.Logger
}

// Table runs passes over a table under a lease. A pass is one transaction: it reads,
// hands over, records and moves the cursor, so there is nothing to deliver in between and
// nothing to renew.
type Table struct {
	voice
	cursor *store.Table
	o      TableOptions
	page   int // rows at most, while Handle takes too long; 0: as the worker says

	failing failing
}

// NewTable returns a worker that does nothing yet.
func NewTable(pool store.Pool, o TableOptions) *Table {
	t := &Table{
		cursor: store.NewTable(pool, o.Worker, o.Source, o.Shard, o.Owner, o.Lease), o: o,
		voice: voice{log: o.Log.With("worker", o.Worker, "source", o.Source, "shard", o.Shard)},
	}
	t.failing.report = t.cursor.Failing
	return t
}

// Failing is what fails again and again; nil: nothing does.
func (t *Table) Failing() error { return t.failing.Why() }

// Run works until ctx is done, ends the pass under way and gives the lease back. It
// returns an error only where going on makes no sense.
func (t *Table) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(t.o.StopTime, cancel) })
	for try := 0; ctx.Err() == nil; {
		claim, err := claim(ctx, t.cursor)
		switch {
		case ctx.Err() != nil && claim.Status != "claimed":
			return nil
		case store.Is(err, store.NotFound):
			return err
		case err != nil:
			t.say(ctx, slog.LevelWarn, "cannot claim", "error", err)
			t.failing.failed(ctx, "claim", err)
		case claim.Status != "claimed":
			t.say(ctx, slog.LevelInfo, "waiting", "status", claim.Status, "detail", claim.Detail)
		default:
			try = 0
			t.o.Observe.Claimed(t.cursor.Epoch())
			err := t.work(ctx, hard)
			t.o.Observe.Lost(err)
			if err != nil && ctx.Err() == nil {
				t.say(ctx, slog.LevelWarn, "lost the lease", "error", err)
			}
			if store.Is(err, store.Fenced) {
				t.conflict(hard)
			} else {
				t.release(hard)
			}
			if err != nil && !errors.As(err, &closedError{}) {
				sleep(ctx, longestPause)
			}
		}
		if t.o.Look != nil && err == nil && claim.Status != "claimed" && pause(try) >= longestPause {
			t.o.Look.wait(ctx, t.sleeper(0))
		} else {
			sleep(ctx, pause(try))
		}
		try++
	}
	return nil
}

func (t *Table) sleeper(epoch int64) store.Sleeper {
	return store.Sleeper{Worker: t.o.Worker, Source: t.o.Source, Shard: t.o.Shard, Epoch: epoch}
}

func (t *Table) conflict(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	if err := t.cursor.Conflict(ctx); err != nil {
		t.log.WarnContext(ctx, "cannot report", "error", err)
	}
}

func (t *Table) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	if err := t.cursor.Release(ctx); err != nil {
		t.log.WarnContext(ctx, "cannot release the lease; it ends by itself", "error", err)
	}
}

// work runs pass after pass. It returns when the lease is over or ctx is done.
func (t *Table) work(ctx, hard context.Context) error {
	t.say(ctx, slog.LevelInfo, "running", "detail", "")
	wait := t.o.PollMin
	tooLong := ""
	for try := 0; ctx.Err() == nil; {
		failpoint.Pause("read")
		began := time.Now()
		pass, err := t.pass(hard, tooLong)
		switch {
		case err == nil && pass.Status == "cut":
			// The cursor knows how many rows the next page is to have, down to the one that is at fault.
			tooSlow := &pgconn.PgError{Code: store.Timeout, Message: pass.Detail}
			t.say(ctx, slog.LevelWarn, "a page was cut off", "detail", pass.Detail)
			t.failing.failed(ctx, "pass", tooSlow)
			if !pass.More {
				sleep(ctx, pause(try))
				try++
			}
			continue
		case err == nil:
			try, tooLong = 0, ""
			t.failing.well(ctx)
		case store.Is(err, store.Fenced):
			return err
		case t.timedOut(err) && t.page != 1:
			// Fewer rows, down to the one that is at fault: each try takes as long as a page may.
			t.page = max(1, cmp.Or(t.page, t.o.PageSize)/8)
			continue
		case t.timedOut(err) && tooLong == "":
			tooLong = "it took longer than " + t.o.PageTimeout.String()
			continue
		case hard.Err() != nil:
			return err
		default:
			t.say(ctx, slog.LevelWarn, "a pass failed", "error", err)
			t.failing.failed(ctx, "pass", err)
			if !store.Transient(err) {
				return err // another instance may do better, and an operator sees who has the lease
			}
			sleep(ctx, pause(try))
			try++
			continue
		}

		switch pass.Status {
		case "closed":
			return closedError{pass.Detail}
		case "ran":
			t.o.Observe.Read(pass.Rows, time.Since(began))
			t.o.Observe.Settled(pass.Taken, time.Since(began))
			if t.page *= 2; t.page >= t.o.PageSize {
				t.page = 0
			}
			t.say(ctx, slog.LevelInfo, pass.Phase, "detail", pass.BlockedBy)
			if pass.More {
				wait = t.o.PollMin
				continue
			}
			if pass.Taken > 0 {
				wait = t.o.PollMin
			}
		default:
			t.say(ctx, slog.LevelInfo, pass.Status, "detail", pass.Detail)
			wait = t.o.PollMax
		}
		if t.o.Look != nil && wait >= t.o.PollMax && pass.Status != "held" {
			t.o.Look.wait(ctx, t.sleeper(t.cursor.Epoch()))
		} else {
			sleep(ctx, wait)
		}
		wait = min(2*wait, t.o.PollMax)
	}
	return nil
}

// pass runs one pass to its end, also when the worker is told to stop meanwhile.
func (t *Table) pass(ctx context.Context, tooLong string) (store.Pass, error) {
	if t.o.Handle == nil {
		// The server ends what takes too long, and narrows it down; the deadline is for connections that the network
		// has forgotten.
		ctx, cancel := context.WithTimeout(ctx, t.o.PageTimeout+settleTime)
		defer cancel()
		return t.cursor.Pass(ctx, t.o.PageTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.PageTimeout)
	defer cancel()
	handle := t.o.Handle
	if tooLong != "" {
		handle = func(_ context.Context, _ pgx.Tx, rows []store.Row) (failed []store.FailedRow, splits int, err error) {
			for _, r := range rows {
				failed = append(failed, store.FailedRow{Row: r, Message: tooLong})
			}
			return failed, 0, nil
		}
	}
	return t.cursor.Apply(ctx, t.page, handle)
}

// timedOut: a function of this program is ended by its context, what it does in the database also by the server.
func (t *Table) timedOut(err error) bool {
	return t.o.Handle != nil && (store.Is(err, store.Timeout) || errors.Is(err, context.DeadlineExceeded))
}
