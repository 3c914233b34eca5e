package daemon

import (
	"context"
	"time"
)

const (
	upkeepEvery = time.Minute
	// upkeepLimit is for a connection that is dead, not for much work. After a long pause of upkeep PostgreSQL reads all that
	// has come meanwhile, while emits wait. If the call were cut short, they would have waited in vain, and at each call again.
	upkeepLimit = time.Hour
)

// upkeep creates partitions ahead of time, drops old ones, and closes findings whose cause is gone.
func (d *Daemon) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, upkeepLimit)
		done, err := d.db.Maintain(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			d.options.Log.WarnContext(ctx, "upkeep failed", "error", err)
		}
		more := false
		for _, m := range done {
			d.options.Log.InfoContext(ctx, "upkeep", "action", m.Action, "object", m.Object, "detail", m.Detail)
			more = more || m.Action == "erased"
		}
		// A call of maintain erases the payloads of some thousands of events: here as many as there are, if there is time.
		for began := time.Now(); more && err == nil && time.Since(began) < upkeepEvery/2; {
			limited, cancel := context.WithTimeout(ctx, upkeepEvery)
			more, err = d.db.PayloadsExpire(limited)
			cancel()
			if err != nil && ctx.Err() == nil {
				d.options.Log.WarnContext(ctx, "cannot erase payloads past their retention", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
