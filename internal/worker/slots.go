package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Slots are for what runs code of users in the database, which holds a connection for as long as that code takes: a lock that it waits
// for, or a loop. There are fewer slots than the pool has connections. The others are for what leases live on: beats, reads, and
// settles of what was sent.
type Slots struct {
	taken   chan struct{}
	waiting atomic.Int64
}

// besideSlots are connections of a pool that are left for other work.
const besideSlots = 3

// NewSlots returns those of a pool with so many connections.
func NewSlots(connections int) *Slots {
	return &Slots{taken: make(chan struct{}, max(1, connections-besideSlots))}
}

// Most is how many there are; Taken is how many are not free; Waiting is how many wait for one.
func (s *Slots) Most() int    { return cap(s.taken) }
func (s *Slots) Taken() int   { return len(s.taken) }
func (s *Slots) Waiting() int { return int(s.waiting.Load()) }

// Take waits for a slot, at most for so long. It is free again when free is called. Nil slots have no limit.
func (s *Slots) Take(ctx context.Context, most time.Duration) (free func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s.taken <- struct{}{}:
		return s.free, nil
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return s.free, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("%w: handlers and functions of commands hold all %d connections that they may have (database.max_connections)",
			context.DeadlineExceeded, s.Most())
	}
}

func (s *Slots) free() { <-s.taken }
