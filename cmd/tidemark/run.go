package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/systemd"
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
secrets, oauth2, webhook, connections and log.level apply without a restart.

Where systemd runs the daemon (Type=notify), it is told when the daemon is ready, reloads and stops; with WatchdogSec, also
that its supervisor loop runs.`,
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
			var now atomic.Pointer[config.Config]
			now.Store(&c)
			stopConsole, ofConsole, err := beside(ctx, &now, s.Err, log)
			if err != nil {
				return err
			}
			defer stopConsole()
			manager, err := systemd.Find(os.Getenv)
			if err != nil {
				return err
			}
			d, err := daemon.New(ctx, c, daemon.Options{
				Log: log, Stdout: s.Out, Version: s.App.Build.Version, File: cli.ConfigFile(file), Systemd: manager,
				Metrics: ofConsole,
			})
			if err != nil {
				return err
			}
			go func() {
				for range hangup.c {
					c, err := s.App.ReadConfig(file)
					reload(ctx, d, &now, c, err, log, level)
				}
			}()
			if err := d.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
}

func consoleCommand() cli.Command {
	var file, listen string
	var readOnly, hash bool
	return cli.Command{
		Use: "console", Short: "Serve the web console and the JSON API", Role: "tidemark_admin", Needs: cli.Nothing,
		Long: `Serve the web console, and the JSON API below /api/v1: what is wrong, why, and the acts that fix it. The daemon
serves them too, where its configuration has console.listen.

By default it listens at 127.0.0.1:9322, and everyone on this host may do everything there. People and programs sign in
once the configuration (--config) has console.users, console.tokens, console.oidc or console.proxy; without one of these
it refuses an address that other hosts can reach. The audit (tidemark.audit) names the person of each act.`,
		Example: "  tidemark console\n  tidemark console --config /etc/tidemark.yaml --listen :9322",
		Flags: func(flags *pflag.FlagSet) {
			cli.ConfigFlag(flags, &file)
			flags.StringVar(&listen, "listen", "", "where to listen, as HOST:PORT (default: console.listen, else 127.0.0.1:9322)")
			flags.BoolVar(&readOnly, "read-only", false, "refuse all acts")
			flags.BoolVar(&hash, "hash-password", false, "read a password, print its hash for console.users, and do nothing else")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if hash {
				return hashPassword(s)
			}
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			c.Console.Listen = cmp.Or(listen, c.Console.Listen, "127.0.0.1:9322")
			c.Console.ReadOnly = c.Console.ReadOnly || readOnly
			if s.App.DatabaseURL != "" {
				c.Database.URL, c.Console.DatabaseURL = config.NewSecret(s.App.DatabaseURL), config.Secret{}
			}
			log, _ := newLogger(s.Err, cli.IsTerminal(os.Stderr), c.Log)
			return serveConsole(ctx, s, c, log)
		},
	}
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
func reload(ctx context.Context, d *daemon.Daemon, now *atomic.Pointer[config.Config], c config.Config, err error, log *slog.Logger, level *slog.LevelVar) {
	if err != nil {
		problems := strings.ReplaceAll(err.Error(), "\n", "; ")
		log.ErrorContext(ctx, "not reloaded: the configuration is not valid, the old one stays", "problems", problems)
		return
	}
	for _, w := range c.Warnings {
		log.WarnContext(ctx, w)
	}
	restart, err := d.Reload(c)
	if err != nil {
		log.ErrorContext(ctx, "not reloaded: the configuration cannot be applied, the old one stays", "error", err)
		return
	}
	setLevel(level, c.Log)
	now.Store(&c)
	if len(restart) > 0 {
		log.WarnContext(ctx, "not everything is reloaded: these keys have changed and need a restart", "keys",
			strings.Join(restart, ", "))
	}
	log.InfoContext(ctx, "reloaded", "applied", "secrets, oauth2, webhook, connections, log.level")
}
