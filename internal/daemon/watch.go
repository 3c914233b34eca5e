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

// tellSilence logs what the check for silent executors has found. Every daemon checks; the database reports each silence once.
func (d *Daemon) tellSilence(ctx context.Context, silent []store.Silence) {
	for _, s := range silent {
		switch {
		case s.State == "silent" && s.EventID != nil:
			d.options.Log.WarnContext(ctx, "silent", "executor", s.ExecutorID, "severity", s.Severity, "age_seconds", *s.AgeSeconds)
		case s.State != "silent":
			d.options.Log.InfoContext(ctx, "no longer silent", "executor", s.ExecutorID, "state", s.State)
		}
	}
}

// farewell records that the daemon stopped on purpose, so that its silence raises no alarm.
func (d *Daemon) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := store.New(d.watch).HeartbeatDaemon(ctx, d.config.Name, "stopped", d.facts()); err != nil {
		d.options.Log.WarnContext(ctx, "cannot record the stop: this daemon will be reported as silent", "error", err)
	}
}
