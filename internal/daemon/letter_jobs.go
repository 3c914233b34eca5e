package daemon

import (
	"context"
	"time"
)

// A connection that the network has forgotten is given up after this; the server ends a part of a job long before.
const letterJobLimit = 10 * time.Minute

// letterJobs does what operators have asked for with many dead letters, part by part: when a poll tells of a job that is due, and, while
// there are jobs, when the next one is due.
func (d *Daemon) letterJobs(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.jobs:
		case <-again:
		}
		again = nil
		limited, cancel := context.WithTimeout(ctx, letterJobLimit)
		worked, next, err := d.letterJob(limited)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			d.options.Log.WarnContext(ctx, "a job of dead letters failed", "error", err)
		case worked:
			again = time.After(0)
		case next > 0:
			again = time.After(next)
		}
	}
}

// letterJob makes a step. It takes a slot, since letters of targets inside the database run them.
func (d *Daemon) letterJob(ctx context.Context) (worked bool, next time.Duration, err error) {
	free, err := d.slots.Take(ctx, letterJobLimit)
	if err != nil {
		return false, 0, err
	}
	defer free()
	return d.db.LetterJobStep(ctx, nil)
}
