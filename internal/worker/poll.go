package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A Poller polls for a whole process: one statement about once a second, however many workers are asleep. It wakes those that
// have work, and sends the heartbeats of the others. The parts of Besides travel in the same statement when they are due.
//
// A statement fails as a whole. After a failure each part is a transaction of its own; where one fails in that too, for a minute:
// a part that cannot work (a locked table, a missing right) does not silence the others.
type Poller struct {
	db     store.Pool
	owner  string
	lease  time.Duration
	every  time.Duration
	log    *slog.Logger
	parts  []*part
	apart  time.Time    // until then each part is a transaction of its own
	turned atomic.Int64 // when Run last came round

	mu     sync.Mutex
	asleep map[*sleeper]struct{}
	turn   int // of the last one that fell asleep
}

// Besides is what the polls of a process do besides its workers' work. No function is called twice at the same time, and none
// after Run. A part whose field is empty is left out.
type Besides struct {
	Registry func(store.Registry)  // hears every 5 seconds what there is to run
	Daemon   string                // beats every 10 seconds under this name
	Facts    func() map[string]any // of its beats
	Silence  bool                  // checks every 10 seconds for silent executors
}

// A part is one subject of a poll.
type part struct {
	every time.Duration // 0: it is due with each poll
	next  time.Time
	ask   func(*store.Due) answered
	fails string // what the log says before the error
	said  string // the error that was logged last; empty: the last poll succeeded
}

// answered hears what came of the one poll that a part asked in. The error is logged already.
type answered func(store.Seen, error)

// A sleeper is out of Poller.sleep, and goes back by Poller.leave.
type sleeper struct {
	store.Sleeper
	woken  chan struct{}
	rested func(began time.Time) // called when a poll sent at began has renewed the lease; may be nil

	polls   int    // since the server last counted something new of its table
	turn    int    // at which of several polls a quiet table is read
	counted *int64 // what the server had counted when the table was last read; nil: not known
}

// asked is what the next poll asks for a sleeper. A table that is quiet is read with each fifth poll, or when the server counts rows
// that were written. What it counts comes late, is lost in a crash, and can be switched off: it only brings a look forward.
func (s *sleeper) asked() store.Sleeper {
	ask := s.Sleeper
	if s.polls > quietAfter && s.polls%quietEvery != s.turn {
		ask.Counted = s.counted
	}
	s.polls++
	return ask
}

// looked takes what the server had counted of its table when a poll read it.
func (s *sleeper) looked(counted int64) {
	if s.counted == nil || *s.counted != counted {
		s.polls = 0 // rows that are not complete yet are read soon
	}
	s.counted = &counted
}

const (
	// pollAtLeast is the longest pause between two polls, however long Config.Poll.Max is.
	pollAtLeast   = time.Second
	pollTime      = 3 * time.Second
	apartFor      = time.Minute
	registryEvery = 5 * time.Second
	beatEvery     = 10 * time.Second // as tidemark.heartbeat_daemon registers it
	silenceEvery  = 10 * time.Second
	quietAfter    = 10 // polls without a new row: the table is quiet
	quietEvery    = 5  // polls: how often a quiet table is read
)

// NewPoller returns a Poller for the workers of owner, whose leases last that long. pause is how long each of them would wait
// before it polls for itself. db has a connection for each part. It does nothing before Run.
func NewPoller(db store.Pool, owner string, lease, pause time.Duration, log *slog.Logger, besides Besides) *Poller {
	every := min(pause, pollAtLeast)
	p := &Poller{
		// Less than once a second: with what else a process asks, the watch, upkeep and the
		// life of its sessions, it stays below one a second.
		db: db, owner: owner, lease: lease, every: min(every+every/5, lease/4), log: log,
		asleep: map[*sleeper]struct{}{},
	}
	p.parts = append(p.parts, p.sleepers())
	if besides.Registry != nil {
		p.parts = append(p.parts, &part{
			every: registryEvery, fails: "cannot list the workers",
			ask: func(a *store.Due) answered {
				a.Registry = true
				return func(s store.Seen, err error) {
					if err == nil {
						besides.Registry(s.Registry)
					}
				}
			},
		})
	}
	if besides.Daemon != "" {
		p.parts = append(p.parts, &part{
			every: beatEvery, fails: "cannot beat",
			ask: func(a *store.Due) answered {
				a.Beat, a.Facts = besides.Daemon, besides.Facts()
				return func(store.Seen, error) {}
			},
		})
	}
	if besides.Silence {
		p.parts = append(p.parts, &part{
			// The first check waits, so that after an outage all executors have had time to beat.
			every: silenceEvery, next: time.Now().Add(silenceEvery), fails: "cannot check for silent executors",
			ask: func(a *store.Due) answered {
				a.Silence = true
				return func(store.Seen, error) {}
			},
		})
	}
	return p
}

// Run polls until ctx is done.
func (p *Poller) Run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		p.turned.Store(time.Now().UnixNano())
		p.poll(ctx)
		next.Reset(p.every)
	}
}

// Stuck returns how long Run has not come round, or 0 if that is less than a minute.
func (p *Poller) Stuck() time.Duration {
	last := p.turned.Load()
	if silent := time.Since(time.Unix(0, last)); last != 0 && silent > time.Minute {
		return silent
	}
	return 0
}

// poll sends the parts that are due: in one statement, or each alone where that fails.
func (p *Poller) poll(ctx context.Context) {
	now := time.Now()
	var due []*part
	for _, d := range p.parts {
		if now.Before(d.next) {
			continue
		}
		due = append(due, d)
		if d.next = d.next.Add(d.every); d.next.Before(now) {
			d.next = now.Add(d.every)
		}
	}
	if !now.Before(p.apart) {
		err := p.together(ctx, due)
		if err == nil {
			return
		}
		p.log.DebugContext(ctx, "a poll failed, its parts go alone", "error", err)
	}
	var failed atomic.Bool
	var all sync.WaitGroup
	for _, d := range due {
		all.Go(func() {
			if !p.alone(ctx, d) {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	if failed.Load() {
		p.apart = now.Add(apartFor)
	}
}

// together sends the parts in one statement. None of them hears of its failure.
func (p *Poller) together(ctx context.Context, parts []*part) error {
	limited, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	due := store.Due{Owner: p.owner, Lease: p.lease}
	var told []answered
	for _, d := range parts {
		told = append(told, d.ask(&due))
	}
	seen, err := store.Poll(limited, p.db, due)
	if err != nil {
		return err
	}
	for i, d := range parts {
		d.said = ""
		told[i](seen, nil)
	}
	return nil
}

// alone sends a part in a transaction: the reason for the failure may be that the default of the database is not READ COMMITTED.
func (p *Poller) alone(ctx context.Context, d *part) (ok bool) {
	limited, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	due := store.Due{Owner: p.owner, Lease: p.lease}
	told := d.ask(&due)
	var seen store.Seen
	err := pgx.BeginTxFunc(limited, p.db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		seen, err = store.Poll(limited, tx, due)
		return err
	})
	p.complain(ctx, d, err)
	told(seen, err)
	return err == nil
}

// complain logs the error of a part if it differs from the last one.
func (p *Poller) complain(ctx context.Context, d *part, err error) {
	said := ""
	if err != nil && ctx.Err() == nil {
		if said = err.Error(); said != d.said {
			p.log.WarnContext(ctx, d.fails, "error", err)
		}
	}
	d.said = said
}

// sleepers is the part that asks for the workers asleep.
func (p *Poller) sleepers() *part {
	ask := func(a *store.Due) answered {
		p.mu.Lock()
		polled := slices.Collect(maps.Keys(p.asleep))
		p.mu.Unlock()
		for _, s := range polled {
			a.Sleepers = append(a.Sleepers, s.asked())
		}
		began := time.Now()
		return func(seen store.Seen, err error) {
			for i, s := range polled {
				if _, wake := seen.Wake[i]; err != nil || wake {
					// Where one poll for all fails, each worker polls for itself.
					s.woken <- struct{}{}
					p.leave(s)
					continue
				}
				if counted, looked := seen.Counted[i]; looked {
					s.looked(counted)
				}
				if s.rested != nil {
					s.rested(began)
				}
			}
		}
	}
	return &part{ask: ask, fails: "cannot poll for all workers at once: each polls for itself"}
}

// sleep adds a cursor to those that Poller polls for.
func (p *Poller) sleep(c store.Sleeper, rested func(began time.Time)) *sleeper {
	s := &sleeper{Sleeper: c, woken: make(chan struct{}, 1), rested: rested}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep[s] = struct{}{}
	p.turn = (p.turn + 1) % quietEvery // spread over the polls
	s.turn = p.turn
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
