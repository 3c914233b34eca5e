package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
)

func newRun(a *app) *cobra.Command {
	var file string
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "run",
		Short: "Run the daemon: deliver what the routes say, until told to stop",
		Long: `Run all workers of the database that need no Go program: those that deliver events by routes, and those of
tables whose handler is SQL or emits. Several daemons may run beside each other: one works for each worker, the
others stand by. The first SIGTERM or SIGINT stops cleanly: what is under
way comes to its end for at most stop_timeout, is recorded, and the leases are given back. A second one
ends the process at once. SIGHUP reads the configuration again: secrets, oauth2, webhook, connections and log.level
apply without a restart.`,
	})
	configFlag(cmd, &file)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, hangup := hangups(cmd.Context())
		defer hangup.stop()
		p, err := a.printer(cmd)
		if err != nil {
			return err
		}
		c, err := a.loadConfig(p, file)
		if err != nil {
			return err
		}
		log, level := newLogger(cmd.ErrOrStderr(), isTerminal(os.Stderr), c.Log)
		d, err := daemon.New(ctx, c, daemon.Options{Log: log, Stdout: cmd.OutOrStdout(), Version: thisBuild().Version})
		if err != nil {
			return err
		}
		go func() {
			for range hangup.c {
				a.reload(ctx, d, file, log, level)
			}
		}()
		if err := d.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return cmd
}

// A hangup is what SIGHUP comes to.
type hangup struct {
	c    chan os.Signal
	stop func()
}

// hangups has SIGHUP announced on a channel. On a terminal it means that the terminal was closed, and ends ctx.
func hangups(ctx context.Context) (context.Context, hangup) {
	h := hangup{c: make(chan os.Signal, 1)}
	if isTerminal(os.Stderr) {
		ctx, cancel := signal.NotifyContext(ctx, syscall.SIGHUP)
		h.stop = func() { cancel(); close(h.c) }
		return ctx, h
	}
	signal.Notify(h.c, syscall.SIGHUP)
	h.stop = func() { signal.Stop(h.c); close(h.c) }
	return ctx, h
}

// reload reads the configuration again. One that is not valid changes nothing.
func (a *app) reload(ctx context.Context, d *daemon.Daemon, file string, log *slog.Logger, level *slog.LevelVar) {
	c, err := a.readConfig(file)
	if err != nil {
		problems := []string{err.Error()}
		var bad *config.Error
		if errors.As(err, &bad) {
			problems = problems[:0]
			for _, problem := range bad.Problems {
				problems = append(problems, problem.String())
			}
		}
		log.ErrorContext(ctx, "not reloaded: the configuration is not valid, the old one stays", "problems", strings.Join(problems, "; "))
		return
	}
	for _, w := range c.Warnings {
		log.WarnContext(ctx, w)
	}
	setLevel(level, c.Log)
	restart, err := d.Reload(c)
	if err != nil {
		log.WarnContext(ctx, "cannot close a connection", "error", err)
	}
	if len(restart) > 0 {
		log.WarnContext(ctx, "not everything is reloaded: these keys have changed and need a restart", "keys", strings.Join(restart, ", "))
	}
	log.InfoContext(ctx, "reloaded", "applied", "secrets, oauth2, webhook, connections, log.level")
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
