package worker

import (
	"context"
	"time"
)

// next says what a pass leaves to the one that follows it.
type next struct {
	again    bool // there is more to do: the next pass follows at once
	ended    bool // but for what is committed from now on, which wakes a worker that sleeps
	found    bool // there was something to do: the worker polls again soon
	open     bool // numbers of the log are open: a writer is about to commit
	idle     bool // there is nothing to do for as long as a worker waits
	pollSelf bool // the poll of the process cannot tell when there is something to do
}

// A backoff says how long an idle worker waits before it polls again: longer each time, up to a limit.
type backoff struct {
	min, max time.Duration
	next     time.Duration
	openFor  time.Duration // for how long it has waited while numbers were open and nothing was found
}

func newBackoff(shortest, longest time.Duration) *backoff {
	return &backoff{min: shortest, max: longest, next: shortest}
}

// openShare bounds what polling adds to the latency of a late commit: a tenth of the time its number was open.
const openShare = 10

// wait is how long to wait after a pass. While numbers are open, a writer is about to commit an event that may wake no
// worker: it polls again soon, and less often as they age, since the number of an emit that was rolled back stays open until
// another event follows it.
func (b *backoff) wait(n next) time.Duration {
	if n.again || n.found {
		b.next, b.openFor = b.min, 0
	}
	switch {
	case n.again:
		return 0
	case n.idle:
		b.next = b.max
	}
	wait := b.next
	b.next = min(2*wait, b.max)
	if !n.open {
		b.openFor = 0
		return wait
	}
	wait = min(wait, max(2*b.min, b.openFor/openShare))
	b.openFor += wait
	return wait
}

// wakeUp is whether writers are to wake the worker.
type wakeUp struct {
	waker    Waker // nil: they never do
	inARow   int   // passes that found something
	lastBusy time.Time
	asleep   bool
}

const (
	// busyPasses is after how many passes in a row that found something a worker is awake: writers need not wake it.
	busyPasses = 4
	// awakeFor is how long it then polls by itself: a writer that wakes others commits while no other writer does.
	awakeFor = 5 * time.Millisecond
)

// before is how long to wait, instead of d. An idle worker announces that it sleeps, then polls once more: from then on every
// event wakes it.
func (u *wakeUp) before(ctx context.Context, again bool, d time.Duration) time.Duration {
	switch {
	case u.waker == nil:
	case again:
		if u.inARow++; u.inARow >= busyPasses {
			u.lastBusy = time.Now()
			u.awake()
		}
	case u.asleep:
		u.inARow = 0
	case time.Since(u.lastBusy) < awakeFor:
		return min(d, time.Millisecond)
	default:
		u.inARow = 0
		u.waker.Sleep(ctx)
		u.asleep = true
		return 0
	}
	return d
}

// quiet: a writer will wake the worker, and none has since it was woken last.
func (u *wakeUp) quiet() bool { return u.asleep && len(u.waker.C()) == 0 }

func (u *wakeUp) awake() {
	if u.asleep {
		u.waker.Awake()
		u.asleep = false
	}
}

// rest waits until there may be something to do: for a while, until a writer wakes the worker, or asleep, while the process
// polls for all its sleepers and renews their leases. It returns an error when the lease is over, when ctx is done, and when
// a worker that drains has nothing to do.
func (w *Worker) rest(ctx context.Context, l *lease, n next) error {
	if w.drain && !n.again && !n.found && (w.outside == nil || !w.outside.busy()) {
		return errDrained
	}
	if n.ended && w.wakeUp.quiet() {
		n.again, n.found = false, true
	}
	d := w.wakeUp.before(ctx, n.again, w.backoff.wait(n))
	if w.poll != nil && d >= w.backoff.max && !n.pollSelf && (w.outside == nil || !w.outside.busy()) {
		s := w.poll.sleep(w.source.Sleeper(w.source.Epoch()), l.renewed)
		defer w.poll.leave(s)
		l.trustPoll(3 * w.poll.every)
		defer l.trustPoll(0)
		return until(ctx, w, l, s.woken)
	}
	if d == 0 {
		return l.wait(ctx, 0)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return until(ctx, w, l, timer.C)
}

// until waits for one of the things that end a rest.
func until[T any](ctx context.Context, w *Worker, l *lease, over <-chan T) error {
	var woken, ready <-chan struct{}
	if w.wakeUp.waker != nil {
		woken = w.wakeUp.waker.C()
	}
	if w.outside != nil {
		ready = w.outside.ready()
	}
	select {
	case <-over:
	case <-woken:
	case <-ready:
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
