package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

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

// A Bridge wakes the workers of a process by PostgreSQL's notifications, where the gate
// notify.bridge_enabled is open. Commits that notify are made one after the other, so
// writers do it only while a worker sleeps: the bridge holds an advisory lock meanwhile,
// which they look at (tidemark.emit). It needs sessions of its own: with PgBouncer in
// between, a direct address.
type Bridge struct {
	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger

	mu      sync.Mutex
	told    *store.Registry // the last that it was told; nil: nothing yet
	heard   func()          // ends a wait when told is new
	lock    *pgx.Conn       // nil: wake-up is off, or not connected
	asleep  map[*waker]struct{}
	holding bool
}

// NewBridge returns a bridge that does nothing before Run. It hears of the gate and of new
// domains by Tell; while it hears nothing, it asks for itself.
func NewBridge(connect func(context.Context) (*pgx.Conn, error), log *slog.Logger) *Bridge {
	return &Bridge{connect: connect, log: log, heard: func() {}, asleep: map[*waker]struct{}{}}
}

// Tell takes what a poll has read.
func (b *Bridge) Tell(r store.Registry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = &r
	b.heard()
}

// Waker returns one for a worker.
func (b *Bridge) Waker() Waker {
	return &waker{bridge: b, c: make(chan struct{}, 1)}
}

type waker struct {
	bridge *Bridge
	c      chan struct{}
}

func (w *waker) C() <-chan struct{} { return w.c }

func (w *waker) Sleep(ctx context.Context) {
	b := w.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asleep[w] = struct{}{}
	b.hold(ctx)
}

func (w *waker) Awake() {
	b := w.bridge
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asleep, w)
	b.hold(context.Background())
}

// hold takes the lock or gives it back, as the sleepers want it. The caller holds mu.
func (b *Bridge) hold(ctx context.Context) {
	want := len(b.asleep) > 0
	if b.lock == nil || want == b.holding {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	if want {
		want, err = store.HoldWake(ctx, b.lock)
	} else {
		err = store.DropWake(ctx, b.lock)
	}
	if err != nil {
		_ = b.lock.Close(context.Background()) // Run makes another
		b.lock = nil
		want = false
	}
	b.holding = want
}

const (
	bridgeRetry = 2 * time.Second
	bridgePoll  = 5 * time.Second   // of a statement on the session that listens
	bridgeAsks  = 2 * registryEvery // after so long without news the bridge asks for itself
	bridgeAlive = time.Minute       // whether the session that listens is still there
)

// Run keeps the bridge up until ctx is done.
func (b *Bridge) Run(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		open := b.told == nil || b.told.Bridge
		b.mu.Unlock()
		if open {
			if err := b.up(ctx); err != nil && ctx.Err() == nil {
				b.log.DebugContext(ctx, "no wake-up, polling", "error", err)
			}
			b.down()
		}
		sleep(ctx, bridgeRetry)
	}
}

// up listens while the gate is open.
func (b *Bridge) up(ctx context.Context) error {
	listen, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listen.Close(context.WithoutCancel(ctx)) }()
	var told *store.Registry // nil: to be asked on the session itself
	var asked time.Time
	for listening := map[string]bool{}; ; {
		if time.Since(asked) > bridgeAlive {
			told = nil
		}
		if told == nil {
			asked = time.Now()
		}
		open, err := b.listen(ctx, listen, listening, told)
		if err != nil || !open {
			return err
		}
		if err := b.ready(ctx); err != nil {
			return err
		}
		if told, err = b.wait(ctx, listen); err != nil {
			return err
		}
	}
}

// listen reads the gate, and listens to domains that are new.
func (b *Bridge) listen(ctx context.Context, listen *pgx.Conn, listening map[string]bool, told *store.Registry) (open bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bridgePoll)
	defer cancel()
	if told == nil {
		told = &store.Registry{}
		if told.Bridge, told.Domains, err = store.Bridge(ctx, listen); err != nil {
			return false, err
		}
	}
	if !told.Bridge {
		return false, nil
	}
	for _, d := range told.Domains {
		if !listening[d] {
			if err := store.Listen(ctx, listen, d); err != nil {
				return false, err
			}
			listening[d] = true
		}
	}
	return true, nil
}

// ready connects the session that holds the lock, if it is not, and tries again for a lock that another one had.
func (b *Bridge) ready(ctx context.Context) error {
	b.mu.Lock()
	b.hold(ctx)
	connected := b.lock != nil
	b.mu.Unlock()
	if connected {
		return nil
	}
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lock = conn
	b.hold(ctx)
	b.signal()
	return nil
}

// wait passes notifications on until the bridge is told of the gate. It returns nil if that takes too long.
func (b *Bridge) wait(ctx context.Context, conn *pgx.Conn) (*store.Registry, error) {
	waiting, heard := context.WithTimeout(ctx, bridgeAsks)
	defer heard()
	b.mu.Lock()
	b.heard = heard
	b.mu.Unlock()
	for {
		_, err := conn.WaitForNotification(waiting)
		b.mu.Lock()
		if err == nil {
			b.signal()
		}
		told := b.told
		b.mu.Unlock()
		switch {
		case err == nil:
		case waiting.Err() == nil || ctx.Err() != nil || conn.IsClosed():
			return nil, err
		case errors.Is(waiting.Err(), context.DeadlineExceeded):
			return nil, nil //nolint:nilnil // no news
		default:
			return told, nil
		}
	}
}

// signal wakes all workers that sleep. The caller holds mu.
func (b *Bridge) signal() {
	for w := range b.asleep {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

func (b *Bridge) down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil {
		_ = b.lock.Close(context.Background())
		b.lock = nil
	}
	b.holding = false
}
