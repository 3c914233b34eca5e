package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/bundletest"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
)

// pingBrokers fails fast: each command would wait for them.
func pingBrokers(ctx context.Context, brokers []string) error {
	if len(brokers) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return cli.Usagef("--brokers: %v", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return cli.ExitWith(cli.StatusUnreachable, cli.Hint(consumer.BrokerError{Err: fmt.Errorf("no broker of --brokers answers: %w", err)},
			"tidemark-demo playground runs one for tests; without --brokers commands are not sent over Kafka."))
	}
	return nil
}

// serveForTest starts daemons between brokers and a database of the server.
func serveForTest(server *pgx.ConnConfig, brokers []string, version string) func(context.Context, string, bundletest.Topics) (func() error, error) {
	return func(ctx context.Context, database string, topics bundletest.Topics) (stop func() error, err error) {
		c := config.Default()
		c.Name, c.Admin.Listen = "command-test", ""
		c.Database.URL = config.NewSecret(addressOf(server, database))
		c.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: brokers}}
		c.Commands.Connection, c.Commands.Group = "main", database
		c.Commands.Topics = []string{topics.Pattern, topics.Shared}
		d, err := daemon.New(ctx, c, daemon.Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard, Version: version})
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		return func() error {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}, nil
	}
}

// addressOf is the server's address with another database.
func addressOf(server *pgx.ConnConfig, database string) string {
	address := server.ConnString()
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		u.Path = "/" + database
		return u.String()
	}
	return address + " dbname=" + database
}
