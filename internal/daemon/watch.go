package daemon

import (
	"context"
	"os"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	lookEvery = 10 * time.Second
	// lookTime is how long a look may take. With the next one, which then follows at once, it is less than the 20 seconds for which the
	// database believes that this daemon watches, and leaves time for an answer before the last one is not fresh any more.
	lookTime = 9 * time.Second
	// The first look waits, as the check for silence does, so that after an outage all executors have had time to beat. It is a little
	// later than that check, and so is each one after it: the watch tells of what the check found.
	firstLook = lookEvery + 2*time.Second
)

// looks lets the daemon watch. A look has a statement of its own, since it may take long: it must hold up no poll, and fail none.
func (d *Daemon) looks(ctx context.Context) {
	wait := time.NewTimer(firstLook)
	defer wait.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		wait.Reset(lookEvery)
		limited, cancel := context.WithTimeout(ctx, lookTime)
		saw, err := store.Look(limited, d.watch, d.owner)
		cancel()
		if err == nil {
			d.watched.hear(ctx, saw)
		}
		now := ""
		if err != nil && ctx.Err() == nil {
			if now = err.Error(); now != said {
				d.options.Log.WarnContext(ctx, "cannot watch", "error", err)
			}
		}
		said = now
	}
}

func (d *Daemon) facts() map[string]any {
	host, _ := os.Hostname()
	facts := map[string]any{
		"instance": d.owner, "version": d.options.Version, "host": host, "pid": os.Getpid(),
		// By a clock that only goes forward: the database compares its own with it.
		"uptime": time.Since(d.made).Seconds(),
	}
	if d.config.Commands.Connection != "" {
		facts["commands"] = true
	}
	if d.options.File != "" {
		facts["config"] = d.options.File
	}
	if slow := d.metrics.slow(time.Now()); len(slow) > 0 {
		facts["slow"] = slow
	}
	return facts
}

// farewell records that the daemon stopped on purpose, so that its silence raises no alarm.
func (d *Daemon) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.New(d.watch).HeartbeatDaemon(ctx, d.config.Name, "stopped", d.facts()); err != nil {
		d.options.Log.WarnContext(ctx, "cannot record the stop: this daemon will be reported as silent", "error", err)
	}
}
