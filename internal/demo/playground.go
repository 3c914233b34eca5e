package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
)

// PlaygroundOptions are those of a playground.
type PlaygroundOptions struct {
	Dir      string   // gets the files env and tidemark.yaml, which go when it ends
	Services []string // whose topics the broker has
	Topics   []string // that the broker has besides
}

// Playground runs a PostgreSQL and a broker until the context is cancelled. Nothing of them is left.
func Playground(ctx context.Context, out io.Writer, o PlaygroundOptions) (err error) {
	server, err := devpg.Start(ctx, devpg.Options{Fetch: download.Postgres})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	address, err := playgroundDatabase(ctx, server)
	if err != nil {
		return err
	}
	topics := append([]string{sharedTopic}, o.Topics...)
	for _, service := range o.Services {
		topics = append(topics, "db-events."+service, "db-results."+service, "db-dlq."+service)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topics...)) // it listens on 127.0.0.1
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	defer broker.Close()

	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// The last one is what others wait for.
	for _, file := range []struct{ name, text string }{
		{"tidemark.yaml", fmt.Sprintf("connections:\n  main: {kind: kafka, brokers: [%q]}\ncommands: {connection: main}\n", broker.ListenAddrs()[0])},
		{"env", fmt.Sprintf("export TIDEMARK_DATABASE_URL='%s'\nexport TIDEMARK_CONFIG='%s'\nexport KAFKA='%s'\n",
			address, filepath.Join(dir, "tidemark.yaml"), broker.ListenAddrs()[0])},
	} {
		name := filepath.Join(dir, file.name)
		part := name + ".part"
		if err := errors.Join(os.WriteFile(part, []byte(file.text), 0o600), os.Rename(part, name)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(name)) }()
	}
	fmt.Fprintf(out, `A private PostgreSQL, and a broker that speaks Kafka's protocol: a single node, not replicated.
Both forget everything when this ends, with Ctrl-C. The login ada owns the database shop and has CREATEROLE; she is no
superuser (that is postgres). In another terminal:

    . %s
`, filepath.Join(o.Dir, "env"))
	<-ctx.Done()
	return nil
}

// playgroundDatabase makes a database and the login that owns it, with the rights that an installer needs and no others, and returns
// its address.
func playgroundDatabase(ctx context.Context, server *devpg.Server) (string, error) {
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return "", err
	}
	for _, statement := range []string{
		"create role ada login createrole", "grant pg_read_all_stats to ada with admin option", "create database shop owner ada",
	} {
		if _, err = conn.Exec(ctx, statement); err != nil {
			break
		}
	}
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return "", fmt.Errorf("the database shop: %w", err)
	}
	address, err := url.Parse(server.URL("shop"))
	if err != nil {
		return "", err
	}
	address.User = url.User("ada")
	return address.String(), nil
}
