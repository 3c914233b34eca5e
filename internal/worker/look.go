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

// A Looker looks for work for everybody in a process who sleeps: one statement about once
// a second, however many they are. It wakes those who have something to do, and beats
// for the others. Who wants something else of the database now and then can have it done
// by the same statement.
type Looker struct {
	db    store.Querier
	owner string
	lease time.Duration
	every time.Duration
	log   *slog.Logger
	soon  chan struct{}

	mu      sync.Mutex
	asleep  map[*sleeper]struct{}
	errands store.Errands
	asked   []chan<- answer
	looking bool
	looked  time.Time
	alone   time.Time // until then only the registry comes along
	failing bool
}

type answer struct {
	seen store.Seen
	err  error
}

// A sleeper is out of Looker.sleep, and goes back by Looker.leave.
type sleeper struct {
	store.Sleeper
	woken  chan struct{}
	rested func(began time.Time) // its lease was renewed by a look asked at began; nil: of no interest
}

const (
	// lookAtLeast is how often a process looks, however long its workers are content to wait.
	lookAtLeast = time.Second
	lookTime    = 3 * time.Second
	// aloneFor: what a look was to do besides may be what it failed of.
	aloneFor = time.Minute
)

// NewLooker returns one for the workers of owner, with leases that long, that would else
// look for themselves every poll. It does nothing before Run.
func NewLooker(db store.Querier, owner string, lease, poll time.Duration, log *slog.Logger) *Looker {
	every := min(poll, lookAtLeast)
	return &Looker{
		// A little less than once a second: with what else a process asks, upkeep and the
		// life of its sessions, it comes to one a second.
		db: db, owner: owner, lease: lease, every: min(every+every/16, lease/4), log: log,
		soon: make(chan struct{}, 1), asleep: map[*sleeper]struct{}{},
	}
}

// Run looks until ctx is done.
func (l *Looker) Run(ctx context.Context) {
	next := time.NewTimer(l.every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		case <-l.soon:
		}
		l.look(ctx)
		next.Reset(l.every)
	}
}

// sleep puts a cursor among those that are looked for.
func (l *Looker) sleep(c store.Sleeper, rested func(began time.Time)) *sleeper {
	s := &sleeper{Sleeper: c, woken: make(chan struct{}, 1), rested: rested}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep[s] = struct{}{}
	return s
}

func (l *Looker) leave(s *sleeper) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asleep, s)
}

// wait sleeps until there is something to do for the cursor, or ctx is done.
func (l *Looker) wait(ctx context.Context, c store.Sleeper) {
	s := l.sleep(c, nil)
	defer l.leave(s)
	select {
	case <-s.woken:
	case <-ctx.Done():
	}
}

func (l *Looker) look(ctx context.Context) {
	l.mu.Lock()
	sleepers, errands, asked := slices.Collect(maps.Keys(l.asleep)), l.errands, l.asked
	l.errands, l.asked = store.Errands{}, nil
	l.looking = len(sleepers)+len(asked) > 0
	looking := l.looking
	l.mu.Unlock()
	if !looking {
		return
	}
	cursors := make([]store.Sleeper, len(sleepers))
	for i, s := range sleepers {
		cursors[i] = s.Sleeper
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, lookTime)
	seen, err := store.Look(limited, l.db, l.owner, l.lease, cursors, errands)
	cancel()
	l.ended(ctx, err, errands)
	for _, c := range asked {
		c <- answer{seen, err}
	}
	for i, s := range sleepers {
		if _, wake := seen.Wake[i]; err != nil || wake {
			// Where it cannot be looked for all, each looks for itself.
			s.woken <- struct{}{}
			l.leave(s)
		} else if s.rested != nil {
			s.rested(began)
		}
	}
}

func (l *Looker) ended(ctx context.Context, err error, errands store.Errands) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking, l.looked = false, time.Now()
	if err != nil && (errands.Beat != "" || errands.Silence) {
		l.alone = l.looked.Add(aloneFor)
	}
	if err != nil && !l.failing && ctx.Err() == nil {
		l.log.WarnContext(ctx, "cannot look for all workers at once: each looks for itself", "error", err)
	}
	l.failing = err != nil
}

var errAlone = errors.New("looks go alone")

// carry has something done by the next look.
func (l *Looker) carry(ctx context.Context, guest bool, add func(*store.Errands)) (store.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	l.mu.Lock()
	if guest && time.Now().Before(l.alone) {
		l.mu.Unlock()
		return store.Seen{}, errAlone
	}
	told := make(chan answer, 1)
	add(&l.errands)
	l.asked = append(l.asked, told)
	overdue := !l.looking && time.Since(l.looked) >= l.every
	l.mu.Unlock()
	if overdue {
		select {
		case l.soon <- struct{}{}:
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
func (l *Looker) Registry(ctx context.Context) (store.Registry, error) {
	seen, err := l.carry(ctx, false, func(e *store.Errands) { e.Registry = true })
	if err != nil {
		return store.Registry{}, err
	}
	return *seen.Registry, nil
}

// Beat beats for the daemon of this name. Whoever gets an error should do it by other
// means: this one depends on all that a look does.
func (l *Looker) Beat(ctx context.Context, name string, facts map[string]any) error {
	_, err := l.carry(ctx, true, func(e *store.Errands) { e.Beat, e.Facts = name, facts })
	return err
}

// Silence looks for who has fallen silent and returns rows of tidemark.stale_check. An
// error is as for Beat.
func (l *Looker) Silence(ctx context.Context) (json.RawMessage, error) {
	seen, err := l.carry(ctx, true, func(e *store.Errands) { e.Silence = true })
	return seen.Silence, err
}
