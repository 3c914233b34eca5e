package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Another process may have told that the worker fails, and died: that all is well is told again now and then, not once.
func TestWellIsToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		f := failing{report: func(_ context.Context, detail string) error {
			told = append(told, detail)
			if len(told) == 1 {
				return errors.New("no connection")
			}
			return nil
		}}
		f.well(t.Context()) // cannot be told
		f.well(t.Context())
		f.well(t.Context())
		if len(told) != 2 {
			t.Fatalf("told %d times, want 2", len(told))
		}
		time.Sleep(sayWellAfter)
		f.well(t.Context())
		f.well(t.Context())
		if len(told) != 3 {
			t.Errorf("told %d times, want 3", len(told))
		}
	})
}
