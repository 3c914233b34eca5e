package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemarkhq/tidemark/internal/systemd"
)

// alive returns an error if the process must be restarted: its supervisor loop no longer runs.
func (d *Daemon) alive(context.Context) error {
	if stuck := d.poll.Stuck(); stuck > 0 {
		return fmt.Errorf("its loop has not run for %s", stuck.Round(time.Second))
	}
	return nil
}

// tell tells systemd a state, if systemd started the daemon.
func (d *Daemon) tell(ctx context.Context, state string) {
	if err := d.options.Systemd.Tell(state); err != nil {
		d.options.Log.WarnContext(ctx, "cannot notify systemd", "state", state, "error", err)
	}
}

// watchdog tells systemd that the daemon is alive, for as long as it is.
func (d *Daemon) watchdog(ctx context.Context) {
	tick := time.NewTicker(d.options.Systemd.Watchdog / 3)
	defer tick.Stop()
	for {
		if err := d.alive(ctx); err != nil {
			d.options.Log.ErrorContext(ctx, "stuck: systemd is not told that the daemon is alive, and will restart it", "error", err)
		} else {
			d.tell(ctx, systemd.Alive)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
