package trial

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Journal is a list that several write to.
type Journal[T any] struct {
	mu   sync.Mutex
	list []T
}

// Add appends the items.
func (j *Journal[T]) Add(items ...T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, items...)
}

// All is a copy of what was added, in that order.
func (j *Journal[T]) All() []T {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list)
}

// Last is a copy of the last n of what was added, or of all.
func (j *Journal[T]) Last(n int) []T {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list[max(0, len(j.list)-n):])
}

// Percentile is the least of the sorted values that a share of them does not exceed. Zero: there are none.
func Percentile[T any](sorted []T, share float64) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Wait waits for d, or until ctx is done.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
