package worker

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An idleFeed has no records, though it may be signalled.
type idleFeed chan struct{}

func (idleFeed) Place(string, int64) error { return nil }
func (idleFeed) Peek(int) store.Records    { return store.Records{} }
func (idleFeed) Settled(int64)             {}
func (f idleFeed) C() <-chan struct{}      { return f }

// idlePartitions are two without records, claimed, and the lease of their process.
func idlePartitions(t *testing.T) (first, second *kafkaPass, l *lease) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`select tidemark.stage_set('live', 'test'), tidemark.gate_set('commands.enabled', true)`,
		`select tidemark.command_partition('events', n, 'T', 0, 100) from generate_series(0, 1) n`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	sharing := NewSharing(50, nil)
	open := func(n int) *kafkaPass {
		o := Kafka{
			Topic: "events", Partition: n, TopicID: "T", Batch: 50, Feed: make(idleFeed, 1), Sharing: sharing,
			Passed: func(context.Context, []store.Call, []store.CommandOutcome) {},
		}
		r := &reporter{}
		k := o.open(db.Pool, &Options{Owner: "me", Lease: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, r).(*kafkaPass)
		r.failing.report = k.Failing
		if got, err := k.Claim(t.Context()); err != nil || got.Status != "claimed" {
			t.Fatal(got, err)
		}
		return k
	}
	return open(0), open(1), &lease{ctx: t.Context(), hard: t.Context()}
}

func (k *kafkaPass) idle(from int64) store.Records {
	return store.Records{TopicID: k.o.TopicID, From: from, Next: from}
}

// renews is a seat of a partition that renews its lease.
func (k *kafkaPass) renews() *seat {
	return k.o.Sharing.seat(store.PartitionPage{Partition: k.Partition, Records: k.idle(0)})
}

// A shared pass that fails takes effect for none of its partitions, tells each, and none is shared for a while.
func TestSharedPassFails(t *testing.T) {
	t.Parallel()
	first, second, l := idlePartitions(t)
	g := first.o.Sharing
	seats := []*seat{first.renews(), second.renews()}
	seats[0].From = 7
	g.running++
	if got := g.pass(l, seats); !store.Is(got.err, tidemark.ErrRegression) {
		t.Errorf("%+v", got)
	}
	if got := <-seats[1].turn; !store.Is(got.err, tidemark.ErrRegression) {
		t.Errorf("%+v", got)
	}
	if second.renews() != nil || g.running != 0 {
		t.Error("passes are shared at once, or it is waited for")
	}
}

// A partition whose own pass fails goes by itself, also without records, until one succeeds. A shared pass counts as any other: it ends a row
// of lost sessions, and the time that a page waited for it is not of the time that it took.
func TestPartitionApart(t *testing.T) {
	t.Parallel()
	k, other, l := idlePartitions(t)
	g := k.o.Sharing
	if _, _, err := k.together(t.Context(), l, k.idle(7)); !store.Is(err, tidemark.ErrRegression) {
		t.Fatal(err)
	}
	waits := other.renews()
	g.enter(waits)
	if _, ok, err := k.together(t.Context(), l, k.idle(0)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	wantWaiting(t, waits)

	k.ended = 1
	var took time.Duration
	k.observe.Read = func(_ int, d time.Duration) { took = d }
	began := time.Now()
	if _, ok, err := k.together(t.Context(), l, k.idle(0)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if all := time.Since(began); all-took < renewWait {
		t.Errorf("took %v of %v", took, all)
	}
	if got := <-waits.turn; got.err != nil || got.got.Status != "ran" {
		t.Errorf("%+v", got)
	}
	if k.ended != 0 {
		t.Error("a session that was lost before it counts")
	}
}

// Records that come for a page without records, while the pass of another has it, are read at once: the pass is followed by the next one.
func TestPartitionIsWokenInAPassOfAnother(t *testing.T) {
	t.Parallel()
	k, other, l := idlePartitions(t)
	g, feed := k.o.Sharing, make(idleFeed, 1)
	k.o.Feed, k.placed = feed, l.epoch
	type passed struct {
		next
		error
	}
	ended := make(chan passed)
	go func() {
		n, err := k.pass(t.Context(), l)
		ended <- passed{n, err}
	}()
	for waiting := 0; waiting == 0; runtime.Gosched() {
		g.mu.Lock()
		waiting = len(g.waiting)
		g.mu.Unlock()
	}
	leads := other.renews()
	g.mu.Lock()
	g.waiting = slices.Insert(g.waiting, 0, leads)
	g.next()
	g.mu.Unlock()
	feed <- struct{}{}
	for len(feed) > 0 {
		runtime.Gosched()
	}
	if got := g.pass(l, (<-leads.turn).seats); got.err != nil {
		t.Fatal(got.err)
	}
	if got := <-ended; got.error != nil || !got.again {
		t.Errorf("%+v", got)
	}
}
