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

// of returns what is wrong. One request finds it, and those that come meanwhile wait for that, for as long as they have.
func (c *causes) of(ctx context.Context, db *store.DB) ([]store.Cause, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	person, _ := PersonOf(ctx)
	viewer := person.Role == Viewer
	known, changes := c.recent(viewer)
	if known != nil {
		return slices.Clone(known), nil
	}
	at := time.Now()
	all, err := db.Causes(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == changes { // else they may be from before
		c.known[viewer] = found{at, all}
	}
	return slices.Clone(all), nil
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
