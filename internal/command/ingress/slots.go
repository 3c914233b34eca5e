package ingress

import (
	"context"
	"sync"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	mostRunning = 8 // commands at a time; each has a connection to the database
	mostOfOne   = 4 // of these of one name: one whose function waits or loops leaves room for the others
)

// slots limits how many commands are under way.
type slots struct {
	all chan struct{}

	mu sync.Mutex
	of map[store.CommandName]*share // names that have a slot, or wait for one
}

// A share is what one name has of the slots.
type share struct {
	taken chan struct{}
	users int
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, mostRunning), of: map[store.CommandName]*share{}}
}

// take waits for a slot until ctx is done; false: there was none. The slot is free again when release is called.
func (s *slots) take(ctx context.Context, name store.CommandName) (release func(), ok bool) {
	own := s.enter(name)
	// Its own first: one that waits for its share has no slot of the others.
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		s.leave(name, own)
		return nil, false
	}
	select {
	case s.all <- struct{}{}:
		return func() {
			<-s.all
			<-own.taken
			s.leave(name, own)
		}, true
	case <-ctx.Done():
		<-own.taken
		s.leave(name, own)
		return nil, false
	}
}

func (s *slots) enter(name store.CommandName) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[name]
	if own == nil {
		own = &share{taken: make(chan struct{}, mostOfOne)}
		s.of[name] = own
	}
	own.users++
	return own
}

func (s *slots) leave(name store.CommandName, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.of, name)
	}
}
