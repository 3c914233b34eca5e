package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/consoleserver"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// serveConsole serves the console until it is told to stop.
func serveConsole(ctx context.Context, s *cli.Session, c config.Config, log *slog.Logger) error {
	if problems := c.Validate(); len(problems) > 0 {
		return cli.Usagef("%s: %s", problems[0].Key, problems[0].Text)
	}
	server, err := consoleserver.New(ctx, c, probes(func() config.Config { return c }, s.Err), log)
	if err != nil {
		return err
	}
	s.Line("the console is at %s", server.URL(c.Console))
	if c.Console.Open() {
		s.Note("the console asks for no sign-in: every user of this host can do everything there")
	}
	return server.Run(ctx)
}

// probes sends test deliveries by the configuration of the moment.
func probes(now func() config.Config, out io.Writer) func(context.Context, store.RouteTest) store.RouteTested {
	return func(ctx context.Context, begun store.RouteTest) store.RouteTested {
		return daemon.Probe(ctx, now(), begun, out)
	}
}

// hashPassword reads a password, which a terminal does not show.
func hashPassword(s *cli.Session) error {
	var text string
	if in, ok := s.In.(*os.File); ok && cli.IsTerminal(in) {
		s.Note("type the password:")
		typed, err := term.ReadPassword(int(in.Fd()))
		if err != nil {
			return err
		}
		text = string(typed)
	} else {
		line, err := bufio.NewReader(io.LimitReader(s.In, 1024)).ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		text = strings.TrimRight(line, "\r\n")
	}
	if len(text) < 8 || len(text) > 72 {
		return cli.Usagef("the password has %d bytes; bcrypt takes up to 72, and fewer than 8 are too few", len(text))
	}
	made, err := bcrypt.GenerateFromPassword([]byte(text), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	return s.Result(cli.Fields{"password_hash", string(made)}, "%s", made)
}

// beside serves the console, where the configuration has one, until stop is called. A console that ends early is logged:
// deliveries go on. Test deliveries follow the configuration as it is reloaded.
func beside(ctx context.Context, now *atomic.Pointer[config.Config], out io.Writer, log *slog.Logger) (stop func(), metrics []prometheus.Collector, err error) {
	c := *now.Load()
	if c.Console.Listen == "" {
		return func() {}, nil, nil
	}
	server, err := consoleserver.New(ctx, c, probes(func() config.Config { return *now.Load() }, out), log)
	if err != nil {
		return nil, nil, err
	}
	log.InfoContext(ctx, "the console listens", "url", server.URL(c.Console))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it shows how the daemon stops
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			log.ErrorContext(ctx, "the console ended", "error", err)
		}
	})
	return func() { cancel(); running.Wait() }, server.Metrics(), nil
}
