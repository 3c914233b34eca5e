package daemon

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// The check for silent executors must not stop together with the workers that it checks. So
// the two loops here share nothing with the workers and with upkeep, not even connections to
// the database. Normally their statements are part of the process's poll; if that gives no
// answer within three seconds, the loops send them on connections of their own.

const (
	beatEvery  = 10 * time.Second // as tidemark.heartbeat_daemon registers it
	checkEvery = 10 * time.Second
)

// beats writes the heartbeat daemon/NAME while the supervisor's loop runs.
func (d *Daemon) beats(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for said := ""; ; {
		if d.stuck() == 0 {
			limited, cancel := context.WithTimeout(ctx, beatEvery)
			err := d.poll.Beat(limited, d.config.Name, d.facts())
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

// farewell records that the daemon stopped on purpose, so that its silence raises no alarm.
func (d *Daemon) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := d.say(ctx, "stopped"); err != nil {
		d.options.Log.WarnContext(ctx, "cannot record the stop: this daemon will be reported as silent", "error", err)
	}
}

// stuck returns how long the supervisor's loop has not run, or 0 if that is less than a minute.
func (d *Daemon) stuck() time.Duration {
	last := d.beat.Load()
	if silent := time.Since(time.Unix(0, last)); last != 0 && silent > 12*registryEvery {
		return silent
	}
	return 0
}

// checkSilence runs the check for silent executors. Every daemon does so; the database
// reports each silence once.
func (d *Daemon) checkSilence(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	// The first check waits for a tick, so that after an outage all executors have had time to beat.
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		silent, err := d.staleCheck(ctx)
		said = d.complain(ctx, said, "cannot check for silent executors", err)
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
	if told, err := d.poll.Silence(ctx); err == nil {
		return silent, json.Unmarshal(told, &silent)
	}
	return silent, pgx.BeginTxFunc(ctx, d.watch, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		silent, err = store.New(tx).StaleCheck(ctx)
		return err
	})
}

// complain logs an error if it differs from the last one.
func (d *Daemon) complain(ctx context.Context, said, what string, err error) string {
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if err.Error() != said {
		d.options.Log.WarnContext(ctx, what, "error", err)
	}
	return err.Error()
}
