package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/consoleserver"
	"github.com/tidemarkhq/tidemark/internal/daemon"
)

func runCommand() cli.Command {
	var file string
	return cli.Command{
		Use: "run", Short: "Run the daemon: deliver events until it is told to stop", Role: "tidemark_executor", Needs: cli.Nothing,
		Long: `Run all workers of the database that need no Go program: those that deliver events by routes, and those of
tables whose handler is SQL or emits. Several daemons may run side by side: one works for each worker, the others stand
by.

The first SIGTERM or SIGINT stops the daemon cleanly: deliveries in flight may finish within stop_timeout and are
recorded, and the leases are released. A second signal ends the process at once. SIGHUP reads the configuration again:
secrets, oauth2, webhook, connections and log.level apply without a restart.`,
		Example: "  tidemark run --config /etc/tidemark.yaml",
		Flags:   func(flags *pflag.FlagSet) { cli.ConfigFlag(flags, &file) },
		Run: func(ctx context.Context, s *cli.Session) error {
			ctx, hangup := hangups(ctx)
			defer hangup.stop()
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			log, level := newLogger(s.Err, cli.IsTerminal(os.Stderr), c.Log)
			stopConsole, err := beside(ctx, c, log)
			if err != nil {
				return err
			}
			defer stopConsole()
			d, err := daemon.New(ctx, c, daemon.Options{Log: log, Stdout: s.Out, Version: s.App.Build.Version, File: cli.ConfigFile(file)})
			if err != nil {
				return err
			}
			go func() {
				for range hangup.c {
					c, err := s.App.ReadConfig(file)
					reload(ctx, d, c, err, log, level)
				}
			}()
			if err := d.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
}

// beside serves the console, where the configuration has one, until stop is called. A console that ends early is logged:
// deliveries go on.
func beside(ctx context.Context, c config.Config, log *slog.Logger) (stop func(), err error) {
	if c.Console.Listen == "" {
		return func() {}, nil
	}
	server, err := consoleserver.New(ctx, c, log)
	if err != nil {
		return nil, err
	}
	log.InfoContext(ctx, "the console listens", "url", server.URL(c.Console))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it shows how the daemon stops
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			log.ErrorContext(ctx, "the console ended", "error", err)
		}
	})
	return func() { cancel(); running.Wait() }, nil
}

// hangup receives SIGHUP.
type hangup struct {
	c    chan os.Signal
	stop func()
}

// hangups announces SIGHUP on a channel. On a terminal it means that the terminal was closed, and cancels ctx.
func hangups(ctx context.Context) (context.Context, hangup) {
	h := hangup{c: make(chan os.Signal, 1)}
	if cli.IsTerminal(os.Stderr) {
		ctx, cancel := signal.NotifyContext(ctx, syscall.SIGHUP)
		h.stop = func() { cancel(); close(h.c) }
		return ctx, h
	}
	signal.Notify(h.c, syscall.SIGHUP)
	h.stop = func() { signal.Stop(h.c); close(h.c) }
	return ctx, h
}

// reload applies a configuration that was read again. An invalid one changes nothing.
func reload(ctx context.Context, d *daemon.Daemon, c config.Config, err error, log *slog.Logger, level *slog.LevelVar) {
	if err != nil {
		problems := strings.ReplaceAll(err.Error(), "\n", "; ")
		log.ErrorContext(ctx, "not reloaded: the configuration is not valid, the old one stays", "problems", problems)
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
		log.WarnContext(ctx, "not everything is reloaded: these keys have changed and need a restart", "keys",
			strings.Join(restart, ", "))
	}
	log.InfoContext(ctx, "reloaded", "applied", "secrets, oauth2, webhook, connections, log.level")
}
