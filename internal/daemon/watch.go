package daemon

import (
	"context"
	"os"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func (d *Daemon) facts() map[string]any {
	host, _ := os.Hostname()
	facts := map[string]any{
		"instance": d.owner, "version": d.options.Version, "host": host, "pid": os.Getpid(),
		// By a clock that only goes forward: the database compares its own with it.
		"uptime": time.Since(d.made).Seconds(),
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
