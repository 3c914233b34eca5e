package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// causesFor is how old causes may be that another request has found: to find them takes longer than all else that is asked for.
const causesFor = 2 * time.Second

// causes are what is wrong, as it was found just now, for viewers and for the others: operators see messages that viewers may not.
type causes struct {
	turn chan struct{} // holds one while a request finds them

	mu      sync.Mutex
	known   map[bool]found // by whether they are for viewers
	changes int            // how often something was changed
}

type found struct {
	at     time.Time
	causes []store.Cause
}

func newCauses() *causes { return &causes{turn: make(chan struct{}, 1), known: map[bool]found{}} }

// wrong is what is wrong. One request finds it, and those that come meanwhile wait for that, for as long as they have, and without a
// connection: the one may be waiting for theirs. begun is told once a connection is there or none is needed.
func (s *server) wrong(ctx context.Context, begun func()) ([]store.Cause, error) {
	c := s.causes
	select {
	case c.turn <- struct{}{}:
	default:
		EndShared(ctx)
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-c.turn }()
	person, _ := PersonOf(ctx)
	viewer := person.Role == Viewer
	known, changes := c.recent(viewer)
	if known != nil {
		return slices.Clone(known), nil
	}
	at := time.Now()
	var all []store.Cause
	err := s.transact(ctx, see, func(db *store.DB) (err error) {
		begun()
		all, err = db.Causes(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.keep(viewer, found{at, all}, changes)
	return slices.Clone(all), nil
}

// keep remembers causes, unless something was changed since they were looked for: they may be from before.
func (c *causes) keep(viewer bool, f found, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == changes {
		c.known[viewer] = f
	}
}

// recent are the causes that were found just now, or nil, and how often something was changed.
func (c *causes) recent(viewer bool) ([]store.Cause, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, has := c.known[viewer]; has && time.Since(k.at) < causesFor {
		return k.causes, c.changes
	}
	return nil, c.changes
}

// forget forgets all: something was changed.
func (c *causes) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
	c.changes++
}
