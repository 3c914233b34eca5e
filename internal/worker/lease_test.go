package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// far is a database behind a network: a question takes a while to arrive, and its answer to come
// back. From some question on nothing comes back any more.
type far struct {
	store.Pool
	there, back time.Duration
	answers     int // then there are none
	lease       time.Duration
	until       time.Time // the lease, as the database has it
}

func (f *far) QueryRow(ctx context.Context, _ string, _ ...any) pgx.Row {
	if f.answers--; f.answers < 0 {
		<-ctx.Done()
		return answerRow(ctx.Err())
	}
	time.Sleep(f.there)
	f.until = time.Now().Add(f.lease)
	time.Sleep(f.back)
	return answerRow(ctx.Err())
}

type busyCursor struct{ *store.Cursor }

func (busyCursor) busy() bool { return true }

type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

// answerRow is that of tidemark.beat: no gate is closed, route 1 is live.
func answerRow(err error) pgx.Row {
	return rowFunc(func(dest ...any) error {
		if err == nil {
			*dest[1].(*[]int32) = []int32{1}
		}
		return err
	})
}

// Whatever the network does, deliveries are cut off before the database gives the lease to another,
// and none begins in the last moment.
func TestLeaseEndsBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for _, f := range []far{
		{lease: time.Second},
		{lease: time.Second, answers: 7},
		{lease: 5 * time.Second, answers: 3},
		{lease: 5 * time.Second, answers: 9, there: 300 * time.Millisecond},
		{lease: 5 * time.Second, answers: 9, back: 900 * time.Millisecond},
		{lease: 10 * time.Minute, answers: 1, back: 500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f.until = began.Add(f.lease) // of the claim
				c := busyCursor{store.NewCursor(&f, "w", 0, "o", f.lease)}
				l := hold(t.Context(), t.Context(), t.Context(), c, began, c)
				<-l.ctx.Done()
				if left := time.Until(f.until); left < margin/2 || left > margin+2*beatTime {
					t.Errorf("deliveries are cut off %s before the end of the lease, want about %s", left, margin)
				}
				if !errors.Is(context.Cause(l.ctx), errLeaseOver) {
					t.Error(context.Cause(l.ctx))
				}
				<-l.over
			})
		})
	}
}

// The last delivery may begin before the margin: by the clock, however fresh the news of the gates are.
func TestNothingBeginsInTheMargin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lease{ctx: t.Context(), run: t.Context(), until: time.Now().Add(5 * time.Second), fresh: time.Now().Add(time.Hour), live: map[int32]time.Time{1: time.Now().Add(time.Hour)}}
		time.Sleep(5*time.Second - margin - time.Nanosecond)
		if !l.allows(1) || l.allows(2) {
			t.Error("before the margin: route 1 may deliver, and no other")
		}
		time.Sleep(time.Nanosecond)
		if l.allows(1) {
			t.Error("a delivery may begin in the margin")
		}
	})
}

// held is a lease of it that nobody watches over: the test beats.
func (f *far) held(t *testing.T) *lease {
	c := busyCursor{store.NewCursor(f, "w", 0, "o", f.lease)}
	return &lease{
		lasts: f.lease, ctx: t.Context(), run: t.Context(), until: time.Now().Add(f.lease), beater: c, changed: make(chan struct{}),
		live: map[int32]time.Time{}, paused: map[int32]bool{},
	}
}

// A slow read does not switch a route on again that a beat, asked later, has found off or paused.
func TestSlowReadSwitchesNothingOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &far{lease: time.Hour, answers: 100}
		l := f.held(t)
		page := &store.Page{Items: []store.Item{{Routes: []int32{1, 2}}}}
		began := time.Now()
		time.Sleep(time.Millisecond)
		if err := l.beat(); err != nil {
			t.Fatal(err)
		}
		l.read(began, page)
		if !l.allows(1) || l.allows(2) {
			t.Error("the beat knew route 1 alone, and the read is from before it")
		}
		l.read(time.Now(), page)
		if !l.allows(2) {
			t.Error("a read that began later has found route 2 live")
		}
	})
}

// A read keeps only the routes of its page going: of another one, which is off since the last beat, it says nothing.
func TestReadSaysNothingOfOtherRoutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &far{lease: time.Hour, answers: 1}
		l := f.held(t)
		if err := l.beat(); err != nil {
			t.Fatal(err)
		}
		for range 5 { // beats get no answer any more
			time.Sleep(freshFor / 4)
			l.read(time.Now(), &store.Page{Items: []store.Item{{Routes: []int32{2}}}})
		}
		if l.allows(1) || !l.allows(2) {
			t.Error("the last news of route 1 are old, and those of route 2 are not")
		}
	})
}
