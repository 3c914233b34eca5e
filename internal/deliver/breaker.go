package deliver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/sink"
)

const (
	breakerTrips = 5                // failures in a row
	breakerPause = 10 * time.Second // then one delivery may try again
)

// A breaker stops deliveries to a target that takes nothing. It has two circuits, since a target may refuse every old
// event and accept every live one: failed replays hold back only replays, failed live events hold back both.
type breaker struct {
	live, replays *gobreaker.TwoStepCircuitBreaker[any]

	tripped atomic.Int64 // Unix nanoseconds at which the circuit for live events opened last
}

// newBreaker returns a closed breaker. paused is told when its circuit for live events opens, and when it closes.
func newBreaker(name string, paused func(name string, paused bool)) *breaker {
	circuit := func(changed func(name string, from, to gobreaker.State)) *gobreaker.TwoStepCircuitBreaker[any] {
		return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
			Name: name, MaxRequests: 1, Timeout: breakerPause, OnStateChange: changed,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerTrips },
		})
	}
	paused(name, false)
	b := &breaker{replays: circuit(nil)}
	b.live = circuit(func(name string, _, to gobreaker.State) {
		if to == gobreaker.StateOpen {
			b.tripped.Store(time.Now().UnixNano())
		}
		if to != gobreaker.StateHalfOpen { // which follows by itself, also when no lease is held any more
			paused(name, to == gobreaker.StateOpen)
		}
	})
	return b
}

// state is the state of the circuit for live events.
func (b *breaker) state() gobreaker.State { return b.live.State() }

// delivered reports whether a live event has been delivered since the circuit closed last.
func (b *breaker) delivered() bool { return b.live.Counts().TotalSuccesses > 0 }

// holdsReplays reports whether replays are put off, or all but one.
func (b *breaker) holdsReplays() bool { return b.replays.State() != gobreaker.StateClosed }

// allow asks for permission to deliver live events, or replays. The caller reports the outcome to done.
func (b *breaker) allow(replays bool) (done func(error), err error) {
	if !replays {
		return b.live.Allow()
	}
	if b.live.State() == gobreaker.StateOpen {
		return nil, gobreaker.ErrOpenState
	}
	replayed, err := b.replays.Allow()
	if err != nil {
		return nil, err
	}
	return func(err error) {
		replayed(err)
		if err != nil {
			return
		}
		// A target that accepts a replay is healthy, so the circuit for live events may close. This happens only after the
		// replay: a replay in flight must not use up the one trial delivery that a live event waits for.
		if told, err := b.live.Allow(); err == nil {
			told(nil)
		}
	}, nil
}

// verdict is the outcome that the breaker counts: the target failed if it answered no delivery with Delivered or
// Permanent. A delivery that the worker itself cut off is not a failure of the target.
func verdict(ctx context.Context, results []sink.Result) error {
	for _, r := range results {
		if r.Status == sink.Delivered || r.Status == sink.Permanent {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("nothing was delivered")
}
