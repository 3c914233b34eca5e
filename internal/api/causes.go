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
	mu    sync.Mutex
	known map[bool]found // by whether they are for viewers
}

type found struct {
	at     time.Time
	causes []store.Cause
}

// of returns what is wrong. One request finds it, and those that come meanwhile wait for that.
func (c *causes) of(ctx context.Context, db *store.DB) ([]store.Cause, error) {
	person, _ := PersonOf(ctx)
	viewer := person.Role == Viewer
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, has := c.known[viewer]; has && time.Since(k.at) < causesFor {
		return slices.Clone(k.causes), nil
	}
	at := time.Now()
	all, err := db.Causes(ctx)
	if err != nil {
		return nil, err
	}
	if c.known == nil {
		c.known = map[bool]found{}
	}
	c.known[viewer] = found{at, all}
	return slices.Clone(all), nil
}

// forget forgets all: something was changed.
func (c *causes) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = nil
}
