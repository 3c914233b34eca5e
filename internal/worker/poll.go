package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A Poller polls for all workers of a process that are asleep: one statement about once a second, however many they are. It
// wakes those that have work, and sends the heartbeats of the others. The registry, the daemon's heartbeat and the check for
// silent executors travel in the same statement.
type Poller struct {
	db    store.Querier
	owner string
	lease time.Duration
	every time.Duration
	log   *slog.Logger
	soon  chan struct{}

	mu      sync.Mutex
	asleep  map[*sleeper]struct{}
	extras  store.Extras
	asked   []chan<- answer
	polling bool
	polled  time.Time
	alone   time.Time // until then only the registry comes along
	failing bool
}

type answer struct {
	seen store.Seen
	err  error
}

// A sleeper is out of Poller.sleep, and goes back by Poller.leave.
type sleeper struct {
	store.Sleeper
	woken  chan struct{}
	rested func(began time.Time) // called when a poll sent at began has renewed the lease; may be nil
}

const (
	// pollAtLeast is the longest pause between two polls, however long Config.Poll.Max is.
	pollAtLeast = time.Second
	pollTime    = 3 * time.Second
	// aloneFor is for how long heartbeat and silence check stay out of polls after one failed: they may be why.
	aloneFor = time.Minute
)

// NewPoller returns a Poller for the workers of owner, whose leases last that long. pause is how long each of them would wait
// before it polls for itself. It does nothing before Run.
func NewPoller(db store.Querier, owner string, lease, pause time.Duration, log *slog.Logger) *Poller {
	every := min(pause, pollAtLeast)
	return &Poller{
		// A little less than once a second: with what else a process asks, upkeep and the
		// life of its sessions, it comes to one a second.
		db: db, owner: owner, lease: lease, every: min(every+every/16, lease/4), log: log,
		soon: make(chan struct{}, 1), asleep: map[*sleeper]struct{}{},
	}
}

// Run polls until ctx is done.
func (p *Poller) Run(ctx context.Context) {
	next := time.NewTimer(p.every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		case <-p.soon:
		}
		p.poll(ctx)
		next.Reset(p.every)
	}
}

// sleep adds a cursor to those that Poller polls for.
func (p *Poller) sleep(c store.Sleeper, rested func(began time.Time)) *sleeper {
	s := &sleeper{Sleeper: c, woken: make(chan struct{}, 1), rested: rested}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep[s] = struct{}{}
	return s
}

func (p *Poller) leave(s *sleeper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asleep, s)
}

// wait sleeps until there is something to do for the cursor, or ctx is done.
func (p *Poller) wait(ctx context.Context, c store.Sleeper) {
	s := p.sleep(c, nil)
	defer p.leave(s)
	select {
	case <-s.woken:
	case <-ctx.Done():
	}
}

func (p *Poller) poll(ctx context.Context) {
	p.mu.Lock()
	sleepers, extras, asked := slices.Collect(maps.Keys(p.asleep)), p.extras, p.asked
	p.extras, p.asked = store.Extras{}, nil
	p.polling = len(sleepers)+len(asked) > 0
	polling := p.polling
	p.mu.Unlock()
	if !polling {
		return
	}
	cursors := make([]store.Sleeper, len(sleepers))
	for i, s := range sleepers {
		cursors[i] = s.Sleeper
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, pollTime)
	seen, err := store.Poll(limited, p.db, p.owner, p.lease, cursors, extras)
	cancel()
	p.ended(ctx, err, extras)
	for _, c := range asked {
		c <- answer{seen, err}
	}
	for i, s := range sleepers {
		if _, wake := seen.Wake[i]; err != nil || wake {
			// Where one poll for all fails, each worker polls for itself.
			s.woken <- struct{}{}
			p.leave(s)
		} else if s.rested != nil {
			s.rested(began)
		}
	}
}

func (p *Poller) ended(ctx context.Context, err error, extras store.Extras) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polling, p.polled = false, time.Now()
	if err != nil && (extras.Beat != "" || extras.Silence) {
		p.alone = p.polled.Add(aloneFor)
	}
	if err != nil && !p.failing && ctx.Err() == nil {
		p.log.WarnContext(ctx, "cannot poll for all workers at once: each polls for itself", "error", err)
	}
	p.failing = err != nil
}

var errAlone = errors.New("polls carry nothing else for a while")

// carry has something done by the next poll. A guest is refused for a while after a poll failed.
func (p *Poller) carry(ctx context.Context, guest bool, add func(*store.Extras)) (store.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	p.mu.Lock()
	if guest && time.Now().Before(p.alone) {
		p.mu.Unlock()
		return store.Seen{}, errAlone
	}
	told := make(chan answer, 1)
	add(&p.extras)
	p.asked = append(p.asked, told)
	overdue := !p.polling && time.Since(p.polled) >= p.every
	p.mu.Unlock()
	if overdue {
		select {
		case p.soon <- struct{}{}:
		default:
		}
	}
	select {
	case a := <-told:
		return a.seen, a.err
	case <-ctx.Done():
		return store.Seen{}, ctx.Err()
	}
}

// Registry returns what there is to run.
func (p *Poller) Registry(ctx context.Context) (store.Registry, error) {
	seen, err := p.carry(ctx, false, func(e *store.Extras) { e.Registry = true })
	if err != nil {
		return store.Registry{}, err
	}
	return *seen.Registry, nil
}

// Beat sends the heartbeat of the daemon of this name with the next poll. On an error the caller sends it by a statement of its
// own, since a poll fails as a whole.
func (p *Poller) Beat(ctx context.Context, name string, facts map[string]any) error {
	_, err := p.carry(ctx, true, func(e *store.Extras) { e.Beat, e.Facts = name, facts })
	return err
}

// Silence checks for silent executors with the next poll, and returns the rows of tidemark.stale_check. On an error the
// caller checks by a statement of its own.
func (p *Poller) Silence(ctx context.Context) (json.RawMessage, error) {
	seen, err := p.carry(ctx, true, func(e *store.Extras) { e.Silence = true })
	return seen.Silence, err
}
