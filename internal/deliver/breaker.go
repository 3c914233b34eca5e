package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/sink"
)

const (
	breakerTrips = 5                // failures in a row
	breakerRests = 10 * time.Second // then one delivery may try again
)

// A breaker leaves a target alone that takes nothing. It has two circuits: a target may refuse old events, time and again,
// and take every live one, so replays that fail hold back replays and no live event. Where live events fail, replays wait
// with them.
type breaker struct {
	live, replays *gobreaker.TwoStepCircuitBreaker[any]
}

func newBreaker(name string) *breaker {
	circuit := func(name string) *gobreaker.TwoStepCircuitBreaker[any] {
		return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
			Name: name, MaxRequests: 1, Timeout: breakerRests,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerTrips },
		})
	}
	return &breaker{live: circuit(name), replays: circuit(name + " replays")}
}

// state is that of live deliveries.
func (b *breaker) state() gobreaker.State { return b.live.State() }

// allow asks for a delivery of live events, or of replays. What came of it is for done.
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
		// A target that takes a replay is well. It is told afterwards: a replay under way must not be the one delivery that
		// a live event waits for.
		if told, err := b.live.Allow(); err == nil {
			told(nil)
		}
	}, nil
}

// verdict is the error that the breaker gets: the target failed if it took no delivery at all. A delivery that the worker
// cut off itself is no failure of the target.
func verdict(ctx context.Context, results []sink.Result) error {
	for _, r := range results {
		if r.Outcome == sink.Delivered || r.Outcome == sink.Permanent {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("nothing was delivered")
}
