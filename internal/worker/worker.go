// Package worker is the loop that everything runs in: claim a cursor, make pass after pass under its lease, release it.
// What a pass is depends on the source: log_pass.go for the log, table_pass.go for a table. The loop owns the lease, retries,
// wake-up and reports, and knows no target by name.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Options are what every worker needs. All are required but Wake, Poll, Drain, Slots and Observe.
type Options struct {
	Worker   string
	Owner    string // names this instance of this process, and no other ever
	Lease    time.Duration
	PollMin  time.Duration
	PollMax  time.Duration
	StopTime time.Duration // for what is under way when the worker is told to stop
	Drain    bool          // Run returns when there is nothing to do, and does not wait for the lease or for a gate

	Wake    Waker   // nil: the worker finds out by polling alone
	Poll    *Poller // nil: the worker polls for itself, also asleep
	Slots   *Slots  // of the pool, which other workers use too; nil: no limit. Those of partitions have them from Sharing
	Observe Observer
	Log     *slog.Logger
}

// A Source is what a worker reads: Log or Table.
type Source interface {
	open(db store.Pool, o *Options, r *reporter) source
}

// A source is a cursor and the passes over it.
type source interface {
	claimer
	// pass reads, acts and settles once. It begins nothing when ctx is done, and brings what it has begun to its end.
	// A retryError says that the next pass may succeed; any other error ends the lease.
	pass(ctx context.Context, l *lease) (next, error)
}

// A claimer is a cursor and its lease: a *store.Cursor or a *store.Table.
type claimer interface {
	Lease() time.Duration
	Epoch() int64
	Claim(ctx context.Context) (store.Claim, error)
	Release(ctx context.Context) error
	Conflict(ctx context.Context) error
	Failing(ctx context.Context, detail, message string) error
	Sleeper(epoch int64) store.Sleeper
}

// An outside source has deliveries under way beside its passes. A heartbeat renews its lease and asks for the gates; a source
// without renews its lease by each pass, in the pass's own transaction.
type outside interface {
	source
	beater
	// begin is called with every claim.
	begin(ctx context.Context, l *lease) error
	// ready is signalled when a pass has something to settle.
	ready() <-chan struct{}
	// end waits for what is under way, settles it, and returns why the lease ends: the reason given, or a better one.
	end(ctx context.Context, l *lease, why error) error
}

// A retryError is why a pass failed that may succeed when it is repeated under the same lease.
type retryError struct {
	step   string // read or pass
	atOnce bool   // the next pass asks for less
	error
}

func (e retryError) Unwrap() error { return e.error }

// Worker makes passes under a lease, and waits for the lease while another instance has it.
type Worker struct {
	*reporter
	source  source
	outside outside // the source, if it is one; or nil
	backoff *backoff
	wakeUp  wakeUp
	poll    *Poller
	stop    time.Duration
	drain   bool
	hard    context.Context //nolint:containedctx // done when what is under way is cut off
	last    context.Context //nolint:containedctx // done when even settling has to end
}

// New returns a worker that does nothing yet.
func New(db store.Pool, o Options, s Source) *Worker {
	r := &reporter{observe: o.Observe}
	w := &Worker{
		reporter: r, source: s.open(db, &o, r), backoff: newBackoff(o.PollMin, o.PollMax), wakeUp: wakeUp{waker: o.Wake},
		poll: o.Poll, stop: o.StopTime, drain: o.Drain,
	}
	w.outside, _ = w.source.(outside)
	w.failing.report = w.source.Failing
	return w
}

// Failing is what fails again and again; nil: nothing does.
func (w *Worker) Failing() error { return w.failing.Why() }

// errDrained is why a worker that drains ends its lease: there is nothing to do.
var errDrained = errors.New("drained")

// Run works until ctx is done, or with Options.Drain until there is nothing to do. Then it ends what is under way, settles and
// gives the lease back. It returns an error only where going on makes no sense.
func (w *Worker) Run(ctx context.Context) error {
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	hard, cut := context.WithCancel(last)
	defer cut()
	w.hard, w.last = hard, last
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.stop, cut); time.AfterFunc(w.stop+lastWord, end) })()

	for try := 0; ctx.Err() == nil; {
		began := time.Now()
		got, err := claim(ctx, w.source)
		switch {
		case err == nil && got.Status == "claimed":
			try = 0
			if w.tenure(ctx, began) && w.drain {
				return nil
			}
			continue
		case ctx.Err() != nil:
			return nil
		case store.Is(err, tidemark.ErrNotFound), w.drain && err != nil && !store.Transient(err):
			return err
		case err == nil && w.drain:
			return notDrained(got)
		case err != nil:
			w.failed(ctx, "claim", err)
			try++
		default:
			w.failing.over(ctx, "claim")
			w.waits(ctx, got)
			if try++; w.poll != nil && pause(try) >= longestPause {
				w.poll.wait(ctx, w.source.Sleeper(0))
				continue
			}
		}
		sleep(ctx, pause(try))
	}
	return nil
}

// claim asks for the lease. The end of ctx does not take a question back: the database may have said yes already, and a
// lease that was got must be given back, or another instance waits for its end.
func claim(ctx context.Context, c claimer) (store.Claim, error) {
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Lease())
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWord, cancel) })()
	return c.Claim(asked)
}

// notDrained is why a worker that drains could not take the cursor.
func notDrained(got store.Claim) error {
	return &tidemark.Error{
		Code: "TM009", Message: fmt.Sprintf("nothing was handled: %s: %s", got.Status, got.Detail),
		Hint: "What is closed: tidemark status; a route's switches: tidemark route go-live ROUTE.",
	}
}

// tenure is the time from a claim to its release. It reports whether it ended because there was nothing to do.
func (w *Worker) tenure(ctx context.Context, began time.Time) (drained bool) {
	l := hold(ctx, w.hard, w.last, w.source, began, w.outside)
	// Also in the middle of a pass: handlers in the transaction of a settle are under way there.
	defer context.AfterFunc(w.hard, func() { l.cancel(context.Canceled) })()
	w.failing.begun()
	w.observe.claimed(w.source.Epoch())
	w.once(ctx, slog.LevelInfo, "running", "epoch", w.source.Epoch())

	err := w.release(ctx, l, w.passes(ctx, l))
	w.observe.lost(err)
	switch {
	case ctx.Err() != nil:
		w.log.InfoContext(ctx, "stopped")
	case errors.Is(err, errDrained):
		return true
	case errors.Is(err, errFenced):
		w.once(ctx, slog.LevelWarn, "lost the lease", "error", err)
	case errors.As(err, &gateError{}):
		w.once(ctx, slog.LevelInfo, "closed", "error", err)
	case errors.As(err, &reclaimError{}):
		w.log.WarnContext(ctx, "claims the cursor anew", "error", err)
	default:
		w.once(ctx, slog.LevelWarn, "lost the lease", "error", err)
		sleep(ctx, longestPause)
	}
	return false
}

// passes makes pass after pass until ctx is done or the lease is over, and returns why it stopped.
func (w *Worker) passes(ctx context.Context, l *lease) error {
	if w.outside != nil {
		if err := w.outside.begin(ctx, l); err != nil {
			return err
		}
	}
	for try := 0; ; {
		n, err := w.source.pass(ctx, l)
		var again retryError
		switch {
		case err == nil:
			try = 0
			err = w.rest(ctx, l, n)
		case errors.As(err, &again):
			w.failed(ctx, again.step, again.error)
			d := time.Duration(0)
			if !again.atOnce {
				d = pause(try)
				try++
			}
			err = l.wait(ctx, d)
		}
		if err != nil {
			return err
		}
	}
}

// release ends what is under way, settles it and gives the lease back. What had not begun is pending, or was not read.
func (w *Worker) release(ctx context.Context, l *lease, why error) error {
	l.stop()
	first := why // end may find a better reason at the same time
	switch {
	case ctx.Err() != nil: // w.hard is the end
	case errors.Is(why, gateError{store.GateShare}):
		// Another instance waits for the shard: what is under way is not sent twice for that.
		defer time.AfterFunc(w.stop, func() { l.cancel(first) }).Stop()
	default:
		l.cancel(why) // a gate closed, or the lease is lost: at once
	}
	w.wakeUp.awake()
	if w.outside != nil {
		why = w.outside.end(ctx, l, why)
	}
	l.cancel(why)
	<-l.over
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	if errors.Is(why, errFenced) {
		if err := w.source.Conflict(last); err != nil {
			w.log.WarnContext(ctx, "cannot report the lost lease", "error", err)
		}
		return errFenced
	}
	if err := w.source.Release(last); err != nil {
		w.log.WarnContext(ctx, "cannot release the lease; it ends by itself", "error", err)
	}
	return why
}
