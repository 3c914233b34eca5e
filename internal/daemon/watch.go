package daemon

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// What notices silence must not fall silent with what it looks at: the two loops here
// share nothing with the workers and with upkeep, not even connections to the database.
// While all is well what they ask goes along with the look of the process; whatever keeps
// that from an answer for three seconds, they ask for themselves.

const (
	beatEvery  = 10 * time.Second // as tidemark.heartbeat_daemon registers it
	checkEvery = 10 * time.Second
)

// beats tells that this daemon lives, as daemon/NAME, while its supervisor goes round.
func (d *Daemon) beats(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for said := ""; ; {
		if d.stuck() == 0 {
			limited, cancel := context.WithTimeout(ctx, beatEvery)
			err := d.look.Beat(limited, d.config.Name, d.facts())
			if err != nil {
				err = d.say(limited, "running")
			}
			cancel()
			said = d.complain(ctx, said, "cannot beat", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Daemon) say(ctx context.Context, status string) error {
	return store.New(d.watch).HeartbeatDaemon(ctx, d.config.Name, status, d.facts())
}

func (d *Daemon) facts() map[string]any {
	host, _ := os.Hostname()
	return map[string]any{"instance": d.owner, "version": d.options.Version, "host": host, "pid": os.Getpid()}
}

// farewell makes the silence that follows no alarm.
func (d *Daemon) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := d.say(ctx, "stopped"); err != nil {
		d.options.Log.WarnContext(ctx, "cannot say goodbye: this daemon will be reported as silent", "error", err)
	}
}

// stuck is for how long the supervisor has not gone round; 0: it does.
func (d *Daemon) stuck() time.Duration {
	last := d.beat.Load()
	if silent := time.Since(time.Unix(0, last)); last != 0 && silent > 12*lookForWorkers {
		return silent
	}
	return 0
}

// lookForSilence runs the check, as every daemon does: the database sees to it that each
// silence is told once.
func (d *Daemon) lookForSilence(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	// Not at once: after an outage everybody else shall have had the time to beat.
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		silent, err := d.staleCheck(ctx)
		said = d.complain(ctx, said, "cannot look for silence", err)
		for _, s := range silent {
			switch {
			case s.State == "silent" && s.EventID != nil:
				d.options.Log.WarnContext(ctx, "silent", "executor", s.ExecutorID, "severity", s.Severity, "age_seconds", *s.AgeSeconds)
			case s.State != "silent":
				d.options.Log.InfoContext(ctx, "no longer silent", "executor", s.ExecutorID, "state", s.State)
			}
		}
	}
}

func (d *Daemon) staleCheck(ctx context.Context) (silent []store.Silence, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	if told, err := d.look.Silence(ctx); err == nil {
		return silent, json.Unmarshal(told, &silent)
	}
	return silent, pgx.BeginTxFunc(ctx, d.watch, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		silent, err = store.New(tx).StaleCheck(ctx)
		return err
	})
}

// complain logs an error when it is another than the last one.
func (d *Daemon) complain(ctx context.Context, said, what string, err error) string {
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if err.Error() != said {
		d.options.Log.WarnContext(ctx, what, "error", err)
	}
	return err.Error()
}
