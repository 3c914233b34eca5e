package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// RetryWhileBusy tries again if the lock on the table timed out. A longer wait for the lock would hold up every session
// that queues behind it.
func (s *Session) RetryWhileBusy(ctx context.Context, table string, do func() error) error {
	const attempts, pause = 5, time.Second
	for n := 1; ; n++ {
		err := do()
		if !store.HasCode(err, "55P03") {
			return err
		}
		busy := "the table is busy"
		if blame, err := s.LockBlame(ctx, table); err == nil && blame != "" {
			busy += ", held by " + blame
		}
		if n == attempts {
			return Hint(fmt.Errorf("%s: %w", busy, err), "Try again when fewer transactions write it.")
		}
		s.Note("%s; trying again", busy)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
