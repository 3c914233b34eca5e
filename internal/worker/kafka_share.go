package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// A Sharing has the partitions of a process make passes together, as a group commit does: a pass has a cost beside that of its
// commands. A page that finds no pass under way goes at once, and takes pages without records along that wait. Pages that come meanwhile wait, and go together, in one
// transaction, when that pass has ended, when the first of them has waited for shareWait, or when they are as many as a pass takes.
// If a shared pass does not succeed, nothing of it took effect, and each of its partitions makes a pass of its own. One that fails in that,
// too, goes by itself until it succeeds: a row that an operator's transaction has locked holds up no other partition again and again.
type Sharing struct {
	most  int // commands of a pass
	slots *Slots

	mu      sync.Mutex
	running int                                 // passes that others wait for
	waiting []*seat                             // in the order in which they came
	apart   time.Time                           // until then no page waits for others
	takes   map[store.CommandName]time.Duration // how long a command has taken, on average of late
}

const (
	shareWait  = 10 * time.Millisecond
	renewWait  = 250 * time.Millisecond // of a page without records, which only renews its lease
	sharedTime = time.Second            // of a shared pass; a command that takes longer has it in a pass of its own
	sharedLong = 50 * time.Millisecond  // that commands of a shared pass take by what is known; those of a page: half of it
	mostShared = 100                    // pages of a shared pass
	mostIdle   = 8                      // pages without records of a shared pass that has records, which waits for each
	mostBytes  = 8 << 20                // of commands of a shared pass
	apartAfter = time.Second            // for so long after a shared pass that failed
	averageOf  = 8
)

// NewSharing returns a Sharing of passes with at most so many commands, which take a slot each.
func NewSharing(most int, slots *Slots) *Sharing {
	return &Sharing{most: most, slots: slots, takes: map[store.CommandName]time.Duration{}}
}

// A seat is a page that waits for others.
type seat struct {
	store.PartitionPage
	takes time.Duration
	bytes int
	woken bool      // records have come meanwhile
	began time.Time // the pass that takes it, from its turn on
	turn  chan turn
}

// A turn ends the waiting of a seat: it makes a pass of these seats, of which it is the first, or else another has made it.
type turn struct {
	seats []*seat
	got   store.CommandPass
	err   error
}

// seat is one for the page. Nil: the page goes by itself. It has more than half of what a pass takes, or a command that is slow or not known
// yet, which others are not to wait for; or there is a failure, which the partitions' own passes isolate.
func (g *Sharing) seat(page store.PartitionPage) *seat {
	g.mu.Lock()
	defer g.mu.Unlock()
	if 2*len(page.Calls) > g.most || time.Now().Before(g.apart) || failpoint.Bug("offsetfirst") {
		return nil
	}
	s := &seat{PartitionPage: page, turn: make(chan turn, 1)}
	for _, c := range page.Calls {
		takes, known := g.takes[c.Name]
		s.bytes += len(c.JSON)
		if s.takes += takes; !known && c.Name != (store.CommandName{}) || s.takes > sharedLong/2 {
			return nil
		}
	}
	return s
}

// learn takes in how long commands took.
func (g *Sharing) learn(calls []store.Call, outcomes []store.CommandOutcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range outcomes {
		if takes, known := g.takes[calls[i].Name]; o.Took > 0 && known {
			g.takes[calls[i].Name] = takes + (o.Took-takes)/averageOf
		} else if o.Took > 0 {
			g.takes[calls[i].Name] = o.Took
		}
	}
}

// await waits for the turn of a seat. Not ok: it has ended its waiting, since it was woken or has to end.
func (g *Sharing) await(ctx context.Context, l *lease, s *seat, woken <-chan struct{}) (_ turn, ok bool) {
	patience := shareWait
	if len(s.Calls) == 0 {
		patience = renewWait
	} else {
		woken = nil
	}
	g.enter(s)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case t := <-s.turn:
		return t, true
	case <-timer.C:
		g.begin(s)
		return <-s.turn, true
	case <-woken:
		s.woken = true
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
	if g.leave(s) {
		return turn{}, false
	}
	return <-s.turn, true
}

func (g *Sharing) enter(s *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, s)
	commands := 0
	for _, w := range g.waiting {
		commands += len(w.Calls)
	}
	if len(s.Calls) > 0 && (g.running == 0 || commands >= g.most) {
		g.next()
	}
}

// leave takes a seat back, unless it has its turn.
func (g *Sharing) leave(s *seat) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := slices.Index(g.waiting, s)
	if n >= 0 {
		g.waiting = slices.Delete(g.waiting, n, n+1)
	}
	return n >= 0
}

// begin gives a seat that has waited long enough its turn, if it has not had it.
func (g *Sharing) begin(s *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := slices.Index(g.waiting, s); n >= 0 {
		g.waiting = slices.Insert(slices.Delete(g.waiting, n, n+1), 0, s)
		g.next()
	}
}

// next gives the first seat its turn, with as many of the others as fit. The caller holds mu.
func (g *Sharing) next() {
	var seats []*seat
	var takes time.Duration
	commands, bytes, idle := 0, 0, 0
	mostIdle := mostIdle
	if !g.busy() {
		mostIdle = mostShared
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(s *seat) bool {
		fits := len(seats) == 0 || len(seats) < mostShared && commands+len(s.Calls) <= g.most && takes+s.takes <= sharedLong && bytes+s.bytes <= mostBytes &&
			(len(s.Calls) > 0 || idle < mostIdle)
		if fits {
			seats = append(seats, s)
			takes += s.takes
			commands += len(s.Calls)
			bytes += s.bytes
			if len(s.Calls) == 0 {
				idle++
			}
		}
		return fits
	})
	began := time.Now()
	for _, s := range seats {
		s.began = began
	}
	g.running++
	seats[0].turn <- turn{seats: seats}
}

// end follows each pass that began with next, by lasts.
func (g *Sharing) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.busy() {
		g.next()
	}
}

// busy tells whether a page with records waits. The caller holds mu.
func (g *Sharing) busy() bool {
	return slices.ContainsFunc(g.waiting, func(s *seat) bool { return len(s.Calls) > 0 })
}

// lasts is called when a pass begins, and what it returns when the pass ends. One that lasts longer than sharedLong, because of a lock or
// of a command that hangs, is waited for no longer.
func (g *Sharing) lasts() (over func()) {
	timer := time.AfterFunc(sharedLong, g.end)
	return func() {
		if timer.Stop() {
			g.end()
		}
	}
}

// pass makes the pass of these seats, and tells the others what came of it.
func (g *Sharing) pass(l *lease, seats []*seat) turn {
	over := g.lasts()
	failpoint.Pause("read")
	pages := make([]store.PartitionPage, len(seats))
	for i, s := range seats {
		pages[i] = s.PartitionPage
	}
	var got []store.CommandPass
	free, err := g.take(l.hard, seats)
	if err == nil {
		ctx, cancel := context.WithTimeout(l.hard, sharedTime+networkTime)
		defer cancel()
		got, err = store.PassTogether(ctx, sharedTime, pages, store.Batch)
		free()
	}
	over()
	if err != nil {
		g.mu.Lock()
		g.apart = time.Now().Add(apartAfter)
		g.mu.Unlock()
		got = make([]store.CommandPass, len(seats))
	}
	for i, s := range seats[1:] {
		s.turn <- turn{got: got[i+1], err: err}
	}
	return turn{got: got[0], err: err}
}

// take waits for a slot. What only renews leases runs no command, and needs none.
func (g *Sharing) take(ctx context.Context, seats []*seat) (free func(), err error) {
	if !slices.ContainsFunc(seats, func(s *seat) bool { return len(s.Calls) > 0 }) {
		return func() {}, nil
	}
	return g.slots.Take(ctx, networkTime)
}

// together passes a page beside those of other partitions, or by itself. Not ok: there is something else to do.
func (k *kafkaPass) together(ctx context.Context, l *lease, page store.Records) (_ store.CommandPass, ok bool, _ error) {
	g := k.o.Sharing
	var s *seat
	if !k.apart {
		s = g.seat(store.PartitionPage{Partition: k.Partition, Records: page})
	}
	if s != nil {
		t, ok := g.await(ctx, l, s, k.o.Feed.C())
		if !ok {
			return store.CommandPass{}, false, nil
		}
		switch len(t.seats) {
		case 0:
		case 1:
			defer g.lasts()()
		default:
			t = g.pass(l, t.seats)
		}
		switch {
		case t.seats == nil && t.err == nil:
			k.passed(ctx, page, t.got, s.began)
			return t.got, !s.woken, nil
		case ctx.Err() != nil:
			return store.CommandPass{}, false, nil
		case t.err != nil:
			k.log.DebugContext(ctx, "a shared pass failed, its partitions go by themselves", "error", t.err)
		}
	}
	// Before run, which would take the fault for one of the commands.
	free, err := g.take(ctx, []*seat{{PartitionPage: store.PartitionPage{Records: page}}})
	if err != nil {
		return store.CommandPass{}, false, err
	}
	defer free()
	got, err := k.run(ctx, l, page, store.Batch)
	return got, s == nil || !s.woken, err
}
