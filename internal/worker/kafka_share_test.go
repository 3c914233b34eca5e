package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandsOf(n int, name string) store.PartitionPage {
	var page store.PartitionPage
	for range n {
		page.Calls = append(page.Calls, store.Call{Name: store.CommandName{Service: "s", Command: name, Version: 1}})
	}
	return page
}

// knowing has commands of which it knows how long they take.
func knowing(t *testing.T) *Sharing {
	t.Helper()
	g := NewSharing(50, nil)
	for name, took := range map[string]time.Duration{"quick": time.Millisecond, "slow": 20 * time.Millisecond} {
		g.learn(commandsOf(1, name).Calls, []store.CommandOutcome{{Status: "processed", Took: took}})
	}
	return g
}

// Of these no page waits, and none waits for them: many commands, one that is slow, and one that has not run yet.
func TestSharingApart(t *testing.T) {
	t.Parallel()
	g := knowing(t)
	for _, c := range []struct {
		page store.PartitionPage
		want bool
	}{
		{commandsOf(25, "quick"), true},
		{commandsOf(26, "quick"), false},
		{commandsOf(1, "slow"), true},
		{commandsOf(2, "slow"), false},
		{commandsOf(1, "unknown"), false},
		{commandsOf(0, ""), true},
		{store.PartitionPage{Records: store.Records{Calls: make([]store.Call, 3)}}, true}, // refused records
	} {
		if got := g.seat(c.page) != nil; got != c.want {
			t.Errorf("%d commands %v: shared %t", len(c.page.Calls), c.page.Calls[:min(1, len(c.page.Calls))], got)
		}
	}
	if NewSharing(1, nil).seat(commandsOf(1, "quick")) != nil {
		t.Error("a pass of one command is shared")
	}
	// It was slow once, and is quick again.
	g.learn(commandsOf(1, "quick").Calls, []store.CommandOutcome{{Status: "processed", Took: time.Second}})
	if g.seat(commandsOf(1, "quick")) != nil {
		t.Error("others wait for what was slow")
	}
	for range 20 {
		g.learn(commandsOf(1, "quick").Calls, []store.CommandOutcome{{Status: "processed", Took: time.Millisecond}})
	}
	if g.seat(commandsOf(1, "quick")) == nil {
		t.Error("what was slow once is apart for ever")
	}
	g.apart = time.Now().Add(time.Hour)
	if g.seat(commandsOf(1, "quick")) != nil {
		t.Error("a pass is shared soon after one has failed")
	}
}

// seats enters a seat for each of so many quick commands.
func (g *Sharing) seats(t *testing.T, counts ...int) (all []*seat) {
	t.Helper()
	for _, n := range counts {
		s := g.seat(commandsOf(n, "quick"))
		g.enter(s)
		all = append(all, s)
	}
	return all
}

func wantTurn(t *testing.T, first *seat, want ...*seat) {
	t.Helper()
	select {
	case got := <-first.turn:
		if !slices.Equal(got.seats, want) {
			t.Errorf("a pass of %d pages, want %d", len(got.seats), len(want))
		}
	default:
		t.Error("it has to wait")
	}
}

func wantWaiting(t *testing.T, all ...*seat) {
	t.Helper()
	for n, s := range all {
		if len(s.turn) > 0 {
			t.Errorf("page %d has its turn", n)
		}
	}
}

// The first page goes at once; those that come meanwhile go together when its pass ends, as many as fit, in their order. A page without
// records begins no pass, and goes with others.
func TestSharingTakesTurns(t *testing.T) {
	t.Parallel()
	g := knowing(t)
	idle := g.seats(t, 0)[0]
	wantWaiting(t, idle)
	first := g.seats(t, 1)[0]
	wantTurn(t, idle, idle, first)
	waiting := g.seats(t, 20, 5, 20)
	wantWaiting(t, waiting...)
	if !g.leave(waiting[1]) || g.leave(waiting[1]) || g.leave(first) {
		t.Error("a page leaves once, and not when it has its turn")
	}
	g.end()
	wantTurn(t, waiting[0], waiting[0], waiting[2])

	waiting = g.seats(t, 20, 20, 9)
	wantWaiting(t, waiting...)
	full := g.seats(t, 1)[0]
	wantTurn(t, waiting[0], waiting[0], waiting[1], waiting[2], full)
}

// Few pages without records go beside those that have some; without these, many do.
func TestSharingIdlePages(t *testing.T) {
	t.Parallel()
	g := knowing(t)
	idle := g.seats(t, make([]int, mostShared+1)...)
	g.begin(idle[0])
	wantTurn(t, idle[0], idle[:mostShared]...)
	g.end()
	idle = append(idle[mostShared:], g.seats(t, make([]int, mostIdle)...)...)
	first := g.seats(t, 1)[0]
	wantTurn(t, idle[0], append(idle[:mostIdle:mostIdle], first)...)
	wantWaiting(t, idle[mostIdle])
}

// A pass that hangs is waited for as long as a shared one lasts, and is counted once.
func TestSharingBesideOneThatHangs(t *testing.T) {
	t.Parallel()
	g := knowing(t)
	first := g.seats(t, 1)[0]
	wantTurn(t, first, first)
	g.lasts()()
	hangs := g.seats(t, 1)[0]
	wantTurn(t, hangs, hangs)
	over := g.lasts()
	for running := 1; running > 0; runtime.Gosched() {
		g.mu.Lock()
		running = g.running
		g.mu.Unlock()
	}
	beside := g.seats(t, 1)[0]
	wantTurn(t, beside, beside)
	over()
	if g.running != 1 {
		t.Errorf("%d passes are waited for", g.running)
	}
}

// A shared pass is bounded in the time that its commands would take, and in their size.
func TestSharingIsBounded(t *testing.T) {
	t.Parallel()
	large := commandsOf(1, "quick")
	large.Calls[0].JSON = make([]byte, mostBytes/2)
	for _, page := range []store.PartitionPage{commandsOf(1, "slow"), large} {
		g := knowing(t)
		first := g.seats(t, 1)[0]
		wantTurn(t, first, first)
		var all []*seat
		for range 3 {
			all = append(all, g.seat(page))
			g.enter(all[len(all)-1])
		}
		g.end()
		wantTurn(t, all[0], all[0], all[1])
		wantWaiting(t, all[2])
	}
}

// A page waits for a pass no longer than shareWait. If its lease or the worker ends, it goes nowhere.
func TestSharingWaits(t *testing.T) {
	t.Parallel()
	g := knowing(t)
	first := g.seats(t, 1)[0]
	wantTurn(t, first, first)
	ctx, cancel := context.WithCancelCause(t.Context())
	l := &lease{ctx: ctx}
	s := g.seat(commandsOf(1, "quick"))
	if got, ok := g.await(t.Context(), l, s, nil); !ok || !slices.Equal(got.seats, []*seat{s}) {
		t.Errorf("%+v %t", got, ok)
	}
	woken := make(chan struct{}, 1)
	woken <- struct{}{}
	if got, ok := g.await(t.Context(), l, g.seat(commandsOf(0, "")), woken); ok {
		t.Errorf("a page without records goes though there are some: %+v", got)
	}
	// It is woken when another one has begun the pass that takes it along.
	leader, taken := g.seat(commandsOf(1, "quick")), g.seat(commandsOf(0, ""))
	ended := make(chan bool)
	go func() {
		_, ok := g.await(t.Context(), l, taken, woken)
		ended <- ok
	}()
	for waiting := 0; waiting == 0; runtime.Gosched() {
		g.mu.Lock()
		waiting = len(g.waiting)
		g.mu.Unlock()
	}
	g.mu.Lock()
	g.waiting = slices.Insert(g.waiting, 0, leader)
	g.next()
	g.mu.Unlock()
	wantTurn(t, leader, leader, taken)
	woken <- struct{}{}
	for len(woken) > 0 {
		runtime.Gosched()
	}
	taken.turn <- turn{}
	if !<-ended || !taken.woken {
		t.Error("that records have come is forgotten")
	}
	cancel(errors.New("over"))
	if got, ok := g.await(t.Context(), l, g.seat(commandsOf(0, "")), nil); ok || len(g.waiting) > 0 {
		t.Errorf("%+v, and %d wait", got, len(g.waiting))
	}
}
