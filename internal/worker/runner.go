// Package worker is the loop that everything runs in: claim, read, act, settle, again. It
// owns lease, gates, budget and wake-up, and knows no target by name.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Handler acts on what was read, outside of any transaction. It is used from one
// goroutine.
type Handler interface {
	// Begin is called with every claim: keys are those with events pending.
	Begin(keys []store.Waiting)
	// Crowded: there were too many keys to know, and they may be counted again.
	Crowded() bool
	// Recount is Begin for those routes alone, in mid-lease.
	Recount(keys []store.Waiting)
	// Act does something with the page's items, until ctx is done, and returns a result
	// for each fresh item and route, and whatever else has ended since it last returned.
	Act(ctx context.Context, page *store.Page) []store.Result
	// Collect returns what has ended since.
	Collect() []store.Result
	// Rooms says how many pending items each route takes; those it does not name take 100.
	Rooms() map[int32]int
	// Ready is signalled when there is something to collect.
	Ready() <-chan struct{}
	// Busy: something is under way, or to be collected.
	Busy() bool
	// Behind: targets that take events have some waiting in the database.
	Behind() bool
	// Quiesce returns when nothing is under way any more.
	Quiesce()
	// Report says what is for operators, after each settle.
	Report(ctx context.Context, c *store.Cursor)
}

// Transactional is a handler whose effects commit with the cursor.
type Transactional interface {
	// Apply does something with the page's items in tx and returns a result for each
	// item and route. An error takes the page back; it is read again.
	Apply(ctx context.Context, tx pgx.Tx, c *store.Cursor, page *store.Page) ([]store.Result, error)
}

// Observer is told what a worker does. It must not block.
type Observer interface {
	Claimed(epoch int64)
	Lost(why error)
	Read(events int, took time.Duration)
	Settled(results int, took time.Duration)
}

// Pool is a *pgxpool.Pool.
type Pool interface {
	store.Querier
	Begin(ctx context.Context) (pgx.Tx, error)
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Options are what a worker needs. All are required but InTx, Wake and Look.
type Options struct {
	Worker   string
	Owner    string // names this instance of this process, and no other ever
	Lease    time.Duration
	MaxBatch int
	PollMin  time.Duration
	PollMax  time.Duration
	StopTime time.Duration // for what is under way when the worker is told to stop

	Handler Handler
	InTx    Transactional // nil: the handler has no effects in the database
	Permit  *Permit
	Wake    Waker   // nil: by polling alone
	Look    *Looker // nil: it looks for itself, also asleep
	Observe Observer
	Log     *slog.Logger
}

// Waker wakes a worker that sleeps.
type Waker interface {
	// Sleep says that the worker has nothing to do: from when it returns, every event
	// whose number is taken wakes it through C. It returns at once where wake-up is off.
	Sleep(ctx context.Context)
	// Awake says that it works.
	Awake()
	// C is signalled when there may be something to read.
	C() <-chan struct{}
}

// Worker runs passes under a lease, and waits for the lease while another instance has it.
type Worker struct {
	cursor  *store.Cursor
	begin   Pool
	budget  *budget
	handler Handler
	inTx    Transactional
	permit  *Permit
	wake    Waker
	look    *Looker
	observe Observer
	voice
	stop    time.Duration
	failing failing

	hard context.Context //nolint:containedctx // done when even settling has to end

	unread   unreads
	looked   time.Time // for what is pending
	recount  time.Time // not before then
	inARow   int       // passes that found something
	lastBusy time.Time // the last of many
	asleep   bool      // writers are to wake us
	tenured  bool      // from a claim to the release
}

// New returns a worker that does nothing yet.
func New(pool Pool, o Options) *Worker {
	w := &Worker{
		cursor: store.NewCursor(pool, o.Worker, o.Owner, o.Lease), begin: pool,
		budget: newBudget(o.MaxBatch, o.PollMin, o.PollMax), handler: o.Handler, inTx: o.InTx, permit: o.Permit,
		wake: o.Wake, look: o.Look, observe: o.Observe, voice: voice{log: o.Log.With("worker", o.Worker)}, stop: o.StopTime,
		unread: unreads{},
	}
	w.failing.report = func(ctx context.Context, detail, message string) error {
		if w.tenured { // then its word ends with the lease
			return w.cursor.HeldFinding(ctx, "worker_failing", w.cursor.Name(), detail, message)
		}
		return w.cursor.Finding(ctx, "worker_failing", w.cursor.Name(), detail, message)
	}
	return w
}

// Failing is what fails again and again; nil: nothing does.
func (w *Worker) Failing() error { return w.failing.Why() }

// Run works until ctx is done, then ends what is under way, settles and gives the lease
// back. It returns an error only where going on makes no sense.
func (w *Worker) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w.hard = hard
	context.AfterFunc(ctx, func() {
		time.AfterFunc(w.stop, cancel)
	})

	for try := 0; ctx.Err() == nil; {
		began := time.Now()
		claim, err := claim(ctx, w.cursor)
		switch {
		case ctx.Err() != nil && claim.Status != "claimed":
			return nil
		case store.Is(err, store.NotFound):
			return err
		case err != nil:
			w.say(ctx, slog.LevelWarn, "cannot claim", "error", err)
			w.failing.failed(ctx, "claim", err)
			try++
		case claim.Status != "claimed":
			level := slog.LevelInfo
			if claim.Status == "held" {
				level = slog.LevelWarn
			}
			w.failing.over(ctx, "claim")
			w.say(ctx, level, "waiting", "status", claim.Status, "detail", claim.Detail)
			if try++; w.look != nil && pause(try) >= longestPause {
				w.look.wait(ctx, w.sleeper(0))
				continue
			}
		default:
			try = 0
			w.tenure(ctx, began)
			continue
		}
		sleep(ctx, pause(try))
	}
	return nil
}

// tenure is from a claim to the release.
func (w *Worker) tenure(ctx context.Context, began time.Time) {
	l := hold(ctx, w.cursor, began, w.handler.Busy)
	w.permit.set(l)
	w.tenured = true
	defer func() { w.tenured = false }()
	w.failing.begun()
	w.observe.Claimed(w.cursor.Epoch())
	w.say(ctx, slog.LevelInfo, "running", "epoch", w.cursor.Epoch())

	keys, err := w.waiting(ctx)
	if err == nil {
		w.handler.Begin(keys)
		err = w.work(ctx, l)
	}
	err = w.close(ctx, l, err)
	w.observe.Lost(err)
	switch {
	case ctx.Err() != nil:
		w.log.InfoContext(ctx, "stopped")
	case errors.Is(err, errFenced):
		w.say(ctx, slog.LevelWarn, "lost the lease", "error", err)
		told, cancel := context.WithTimeout(w.hard, lastWord)
		defer cancel()
		if err := w.cursor.Finding(told, "cursor_lease_conflict", w.cursor.Name(), "an instance was fenced: two own the cursor, or one was paused past its lease", ""); err != nil {
			w.log.WarnContext(ctx, "cannot report", "error", err)
		}
	case errors.As(err, &closedError{}):
		w.say(ctx, slog.LevelInfo, "closed", "error", err)
	case errors.As(err, &anewError{}):
		w.log.WarnContext(ctx, "begins anew", "error", err)
	default:
		w.say(ctx, slog.LevelWarn, "lost the lease", "error", err)
		sleep(ctx, time.Second)
	}
}

func (w *Worker) waiting(ctx context.Context) ([]store.Waiting, error) {
	ctx, cancel := context.WithTimeout(ctx, w.cursor.Lease())
	defer cancel()
	return w.cursor.Waiting(ctx)
}

// recountKeys lets the handler know keys one by one again where there were too many. A count
// takes at most a twentieth of the time.
func (w *Worker) recountKeys(ctx context.Context) {
	began := time.Now()
	if began.Before(w.recount) || !w.handler.Crowded() {
		return
	}
	if keys, err := w.waiting(ctx); err == nil {
		w.handler.Recount(keys)
	}
	w.recount = time.Now().Add(max(time.Second, 19*time.Since(began)))
}

// report bounds what is worth knowing and holds nobody up.
func (w *Worker) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	w.handler.Report(ctx, w.cursor)
}

// close ends what is under way, settles it and gives the lease back. What had not begun
// is pending, or was not read.
func (w *Worker) close(ctx context.Context, l *lease, why error) error {
	l.stop()
	if ctx.Err() == nil {
		l.cancel(why) // a gate, a lost lease: at once
	} else {
		defer context.AfterFunc(w.hard, func() { l.cancel(why) })()
	}
	w.awake()
	w.handler.Quiesce()
	if results := w.handler.Collect(); len(results) > 0 && !errors.Is(why, errFenced) {
		if err := w.settle(ctx, l, nil, results); err != nil {
			why = err
		}
	}
	w.report(w.hard)
	l.cancel(why)
	w.permit.set(nil)
	<-l.over
	if errors.Is(why, errFenced) {
		return errFenced
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	if err := w.cursor.Release(release); err != nil {
		w.log.WarnContext(ctx, "cannot release the lease; it ends by itself", "error", err)
	}
	if cause := context.Cause(l.ctx); cause != nil && why == nil {
		return cause
	}
	return why
}

// rest waits until there may be something to read. Whoever has found nothing for a moment
// says that he sleeps and looks once more: from then on nobody's event is missed.
func (w *Worker) rest(ctx context.Context, l *lease, found, open bool) error {
	d := w.budget.wait(found, open)
	switch {
	case w.wake == nil:
	case found:
		w.busy()
	case w.asleep:
		w.inARow = 0
	case time.Since(w.lastBusy) < awakeFor:
		d = min(d, time.Millisecond)
	default:
		w.inARow = 0
		w.wake.Sleep(ctx)
		w.asleep = true
		d = 0
	}
	if w.look != nil && d >= w.budget.pollMax && !w.handler.Busy() {
		return w.doze(ctx, l)
	}
	return w.wait(ctx, l, d)
}

const (
	// busyPasses is after how many passes in a row that found something a worker is no
	// sleeper any more, whom writers have to wake.
	busyPasses = 4
	// awakeFor is how long it then looks by itself: a writer who wakes others commits
	// when no other one does.
	awakeFor = 5 * time.Millisecond
)

// busy takes in a pass that found something.
func (w *Worker) busy() {
	w.inARow++
	if w.inARow >= busyPasses {
		w.lastBusy = time.Now()
		w.awake()
	}
}

func (w *Worker) awake() {
	if w.asleep {
		w.wake.Awake()
		w.asleep = false
	}
}

// wait waits for d, or until something wakes the worker. It returns an error when the
// lease is over or ctx is done.
func (w *Worker) wait(ctx context.Context, l *lease, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.ctx.Err() != nil {
		return l.why()
	}
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return until(ctx, w, l, timer.C)
}

// doze waits until the look of the process, or something else, wakes the worker. The look
// beats meanwhile.
func (w *Worker) doze(ctx context.Context, l *lease) error {
	s := w.look.sleep(w.sleeper(w.cursor.Epoch()), l.rested)
	defer w.look.leave(s)
	l.doze(3 * w.look.every)
	defer l.doze(0)
	return until(ctx, w, l, s.woken)
}

func (w *Worker) sleeper(epoch int64) store.Sleeper {
	return store.Sleeper{Worker: w.cursor.Name(), Source: "outbox", Epoch: epoch}
}

// until waits for one of the many things that end a wait.
func until[T any](ctx context.Context, w *Worker, l *lease, over <-chan T) error {
	var woken <-chan struct{}
	if w.wake != nil {
		woken = w.wake.C()
	}
	select {
	case <-over:
	case <-woken:
	case <-w.handler.Ready():
	case <-l.ctx.Done():
		return l.why()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// pause is how long to wait before the next try.
func pause(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 5), longestPause)
}

const longestPause = time.Second

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
