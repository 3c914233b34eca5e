package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A pool of any size leaves a slot for what runs code of users, and one of some size connections beside them.
func TestSlots(t *testing.T) {
	t.Parallel()
	for connections, want := range map[int]int{2: 1, 3: 1, 4: 1, 5: 2, 10: 7} {
		if got := NewSlots(connections).Most(); got != want {
			t.Errorf("%d connections have %d slots, want %d", connections, got, want)
		}
	}
	s := NewSlots(2)
	free, err := s.Take(t.Context(), time.Minute)
	if err != nil || s.Taken() != 1 {
		t.Fatalf("%d taken, %v", s.Taken(), err)
	}
	// What waited in vain is tried again: no command and no row is at fault.
	if _, err := s.Take(t.Context(), time.Nanosecond); !store.Transient(err) || store.TimedOut(err) {
		t.Errorf("no slot: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("no slot until the end: %v", err)
	}
	free()
	if free, err = s.Take(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	free()
}
