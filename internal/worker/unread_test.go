package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// A question is one for a payload that did not come: how it ended, under which lease, when it was asked and answered.
type question struct {
	epoch           int64
	asked, answered time.Time
	why             error
}

var (
	errTooLate = fmt.Errorf("timeout: %w", context.DeadlineExceeded)
	errCutOff  = fmt.Errorf("%w: %w", context.DeadlineExceeded, errLeaseOver)
	canceled   = &pgconn.PgError{Code: store.Timeout} // by a statement_timeout, or an operator
	noRoom     = &pgconn.PgError{Code: "53200"}
	elsewhere  = &pgconn.PgError{Code: "57P01"} // the session was ended
)

// givenUp is the rule of docs/daemon.md ("Large payloads"), said of all that was asked.
func givenUp(history []question, bytes int64, lease time.Duration) bool {
	if bytes <= smallPayload || len(history) == 0 {
		return false
	}
	leases, tries := 0, 0
	var first time.Time
	last := history[len(history)-1]
	for _, q := range history {
		if q.epoch == last.epoch && first.IsZero() {
			first = q.asked
		}
		switch {
		case errors.Is(q.why, errLeaseOver):
			leases++
		case q.epoch == last.epoch && store.TooMuch(q.why):
			tries++
		}
	}
	return leases >= cutOffs || !errors.Is(last.why, errLeaseOver) && store.TooMuch(last.why) && tries >= readTries && last.answered.Sub(first) >= lease
}

// An event is given up when its payload is large and has not come, twice, for as long as a lease takes, under one lease; or
// while five leases ran out. Not for another reason, and not later.
func TestUnreadRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const lease = 10 * time.Second
		bytes := rapid.SampledFrom([]int64{1, smallPayload, smallPayload + 1, 1 << 30}).Draw(t, "bytes")
		all := unreads{}
		item := &store.Item{Event: tidemark.Event{ID: "a", Seq: 7}, Withheld: bytes}
		now, epoch := time.Unix(0, 0), int64(1)
		var history []question
		for range rapid.IntRange(1, 40).Draw(t, "questions") {
			if rapid.IntRange(0, 4).Draw(t, "lease") == 0 {
				epoch++
			}
			u := all.of(item)
			u.under(epoch, now)
			if u.hopeless(bytes) {
				t.Fatalf("after %+v it is not asked for", history)
			}
			q := question{epoch: epoch, asked: now}
			now = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
			q.answered, q.why = now, rapid.SampledFrom([]error{errTooLate, errCutOff, canceled, noRoom, elsewhere}).Draw(t, "why")
			history = append(history, q)
			over := all.of(item).failed(q.why, bytes, now, lease)
			if errors.Is(q.why, errLeaseOver) {
				epoch++ // it is given up under the next one
				over = all.of(item).hopeless(bytes)
			}
			if want := givenUp(history, bytes, lease); over != want {
				t.Fatalf("given up %t, want %t, after %+v", over, want, history)
			}
			if over {
				break
			}
			if rapid.IntRange(0, 9).Draw(t, "comes") == 0 {
				all.forget(item)
				history = nil
			}
		}
		if len(all) > 1 {
			t.Fatalf("%d items are known", len(all))
		}
	})
}

// Given up and not settled, since the lease was lost: it is not asked for again. Settled, it is forgotten: a replay is asked for.
func TestGivenUpIsForgotten(t *testing.T) {
	t.Parallel()
	all := unreads{}
	item := &store.Item{Event: tidemark.Event{ID: "a", Seq: 7}, Routes: []int32{1, 2}, Withheld: 1 << 20}
	other := &store.Item{Event: tidemark.Event{ID: "b", Seq: 8}, Routes: []int32{1}, Withheld: 1 << 20}
	all.of(item).given = true
	all.of(other).leases = 3
	all.of(item).under(9, time.Unix(0, 0))
	if !all.of(item).hopeless(item.Withheld) {
		t.Error("given up, and asked for once more")
	}
	all.forgetGivenUp()
	if len(all) != 1 || all.of(other).leases != 3 {
		t.Errorf("left is %v", all)
	}
}

// What one item came to says nothing of others: a replay on a route, on another one, and an event that got the number of another
// one after a failover.
func TestItemsAreToldApart(t *testing.T) {
	t.Parallel()
	event := tidemark.Event{ID: "a", Seq: 7}
	items := []*store.Item{
		{Event: event, Routes: []int32{1, 2}, Fresh: true},
		{Event: event, Routes: []int32{1}, Replay: true},
		{Event: event, Routes: []int32{2}, Replay: true},
		{Event: tidemark.Event{ID: "b", Seq: 7}, Routes: []int32{1, 2}, Fresh: true},
	}
	all := unreads{}
	for i, item := range items {
		all.of(item).leases = i + 1
	}
	for i, item := range items {
		if all.of(item).leases != i+1 {
			t.Errorf("%+v is taken for another one", item)
		}
	}
	if pending := (&store.Item{Event: event, Routes: []int32{2}}); all.of(pending).leases != 1 {
		t.Error("a live event is the same when it is pending")
	}
}
