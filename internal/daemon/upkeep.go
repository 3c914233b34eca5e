package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
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
		for _, m := range done {
			d.options.Log.InfoContext(ctx, "upkeep", "action", m.Action, "object", m.Object, "detail", m.Detail)
		}
		// A call of maintain erases the payloads of some thousands of events, and forgets some thousands of keys: here as many as there
		// are, if there is time.
		if slices.ContainsFunc(done, func(m store.Upkeep) bool { return m.Action == "erased" }) {
			d.repeat(ctx, "cannot erase payloads past their retention", d.db.PayloadsExpire)
		}
		if slices.ContainsFunc(done, func(m store.Upkeep) bool { return m.Object == "emit_key" }) {
			d.repeat(ctx, "cannot forget idempotency keys past their retention", d.db.EmitKeysExpire)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// repeat calls expire while that leaves more, for a quarter of the time between two calls of maintain.
func (d *Daemon) repeat(ctx context.Context, trouble string, expire func(context.Context) (more bool, err error)) {
	for began, more := time.Now(), true; more && time.Since(began) < upkeepEvery/4; {
		limited, cancel := context.WithTimeout(ctx, upkeepEvery)
		var err error
		more, err = expire(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			d.options.Log.WarnContext(ctx, trouble, "error", err)
		}
		more = more && err == nil
	}
}
