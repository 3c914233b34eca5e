package demo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/internal/trial"
)

// CommandsOptions are those of the demo of commands.
type CommandsOptions struct {
	Invoices int    // of the resend storm; each is asked for one to four times
	Binary   string // the command tidemark
}

const (
	commandsPatience = time.Minute
	sharedTopic      = "db-events"
	producerName     = "shop"
	producerKey      = "shop-1"
)

// Commands shows the pack commands-demo on out: what becomes of a command, of the same command again, of a forger's, and of one that
// fails; and a storm of resends while the daemon, PostgreSQL and the broker are stopped. It returns an error unless the
// services' own tables are what they must be.
func Commands(ctx context.Context, out io.Writer, o CommandsOptions) (err error) {
	c := &commands{out: out, options: o, asked: map[int]int{}}
	began := time.Now()
	defer func() { err = errors.Join(err, c.close(context.WithoutCancel(ctx))) }()
	for _, part := range []func(context.Context) error{c.start, c.install, c.goLive, c.once, c.forge, c.failAndReplay, c.storm, c.report} {
		if err := part(ctx); err != nil {
			if log := c.daemon.log.String(); log != "" && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%w\nThe daemon's log:\n%s", err, log)
			}
			return err
		}
	}
	c.say("\nDone in %.0f s.", time.Since(began).Seconds())
	return nil
}

// commands is that demo under way.
type commands struct {
	options CommandsOptions
	out     io.Writer
	server  *devpg.Server
	conn    *pgx.Conn // for the checks; a new one after PostgreSQL was killed
	daemon  process
	dir     string

	broker    *kfake.Cluster
	address   string
	producers *kgo.Client
	sign      func(command.Record) (string, error)

	asked map[int]int // how often each invoice of the storm was asked for
	cents int64       // what all of them charge
}

func (c *commands) say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

func (c *commands) start(ctx context.Context) (err error) {
	if c.server, err = devpg.Start(ctx, devpg.Options{Durable: true, Fetch: download.Postgres}); err != nil {
		return err
	}
	if c.conn, err = pgx.Connect(ctx, c.server.URL("postgres")); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "tidemark-demo-commands-"); err != nil {
		return err
	}
	if err := c.startBroker(); err != nil {
		return err
	}
	if c.producers, err = kgo.NewClient(kgo.SeedBrokers(c.address)); err != nil {
		return err
	}
	config := filepath.Join(c.dir, "tidemark.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `connections:
  main: {kind: kafka, brokers: ["%s"]}
commands: {connection: main}
admin: {listen: ""}
lease: 3s
log: {level: warn}
`, c.address), 0o600); err != nil {
		return err
	}
	c.daemon = process{binary: c.options.Binary, env: []string{"TIDEMARK_DATABASE_URL=" + c.server.URL("postgres"), "TIDEMARK_CONFIG=" + config}}
	return nil
}

// startBroker starts the broker, again on the same data and port.
func (c *commands) startBroker() (err error) {
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.DataDir(filepath.Join(c.dir, "kafka")), kfake.SyncWrites()}
	if c.address == "" {
		options = append(options, kfake.SeedTopics(2, "db-events.billing", "db-events.user"),
			kfake.SeedTopics(1, sharedTopic, "db-results.billing", "db-results.user", "db-dlq.billing", "db-dlq.user"))
	} else {
		var port int
		if _, err := fmt.Sscanf(c.address, "127.0.0.1:%d", &port); err != nil {
			return err
		}
		options = append(options, kfake.Ports(port))
	}
	if c.broker, err = kfake.NewCluster(options...); err != nil {
		return fmt.Errorf("the broker: %w", err)
	}
	c.address = c.broker.ListenAddrs()[0]
	return nil
}

func (c *commands) close(ctx context.Context) error {
	c.daemon.kill()
	if c.producers != nil {
		c.producers.Close()
	}
	if c.broker != nil {
		c.broker.Close()
	}
	if c.conn != nil {
		_ = c.conn.Close(ctx)
	}
	var errs []error
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.server != nil {
		errs = append(errs, c.server.Stop())
	}
	return errors.Join(errs...)
}

// tidemark runs the command, and shows it with what it prints. It may end with the statuses 0 and 1: a command that failed.
func (c *commands) tidemark(ctx context.Context, args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		if shown[i] = arg; strings.ContainsAny(arg, ` "{`) {
			shown[i] = "'" + arg + "'"
		}
	}
	c.say("   $ tidemark %s", strings.Join(shown, " "))
	text, err := c.quietly(ctx, args...)
	for line := range strings.Lines(text) {
		c.say("     %s", strings.TrimRight(line, " \n"))
	}
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 1 {
		err = nil
	}
	return err
}

// quietly runs the command tidemark.
func (c *commands) quietly(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.options.Binary, args...)
	cmd.Env = append(os.Environ(), c.daemon.env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("tidemark %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return string(text), err
}

func (c *commands) install(ctx context.Context) error {
	var version string
	if err := c.conn.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	c.say("Tidemark on a private PostgreSQL %s, and a broker that speaks Kafka's protocol: one node, not replicated.\nBoth are gone when this ends.\n", version)
	if _, err := c.quietly(ctx, "migrate", "up"); err != nil {
		return err
	}
	c.say("1. Two services, with a command each: user.create and billing.charge.capture. All is off and in dry run.")
	if _, err := c.quietly(ctx, "pack", "install", "commands-demo"); err != nil {
		return err
	}
	c.say("   $ tidemark pack install commands-demo\n   psql> select name, enabled, dry_run from tidemark.command;")
	rows, err := c.conn.Query(ctx, `select format('%s  enabled %s  dry_run %s', rpad(name, 25), enabled, dry_run) from tidemark.command order by name desc`)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, row := range all {
		c.say("     %s", row)
	}
	return err
}

func (c *commands) goLive(ctx context.Context) error {
	for _, args := range []string{
		"stage live --reason demo",
		"route set results.billing --enabled --dry-run=false", "route set dlq.billing --enabled --dry-run=false",
		"route set results.user --enabled --dry-run=false", "route set dlq.user --enabled --dry-run=false",
		"gate open commands.enabled", "gate open commands.billing.enabled", "gate open commands.user.enabled",
		"gate open routes.enabled", "gate open worker.default.enabled",
		"command enable user.create --live --reason demo", "command enable billing.charge.capture --live --reason demo",
	} {
		if _, err := c.quietly(ctx, strings.Fields(args)...); err != nil {
			return err
		}
	}
	if err := c.registerKey(ctx); err != nil {
		return err
	}
	c.say("   Switched on, with the routes that take results and dead letters to Kafka. A daemon (tidemark run) takes commands.")
	return c.daemon.start(ctx)
}

// registerKey makes a key of the producer, with which it signs on the shared topic.
func (c *commands) registerKey(ctx context.Context) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, "shop-1.jwk")
	jwk, err := json.Marshal(map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public)})
	if err == nil {
		err = os.WriteFile(file, jwk, 0o600)
	}
	if err != nil {
		return err
	}
	c.sign = func(r command.Record) (string, error) { return command.Sign(r, producerKey, private) }
	_, err = c.quietly(ctx, "command", "key", "add", producerKey, "--service", "billing", "--producer", producerName, "--public-key", file)
	return err
}

// number asks the database for one number.
func (c *commands) number(ctx context.Context, sql string, args ...any) (n int64, err error) {
	return n, c.conn.QueryRow(ctx, sql, args...).Scan(&n)
}

// expect returns an error unless the database answers so.
func (c *commands) expect(ctx context.Context, want int64, what, sql string, args ...any) error {
	got, err := c.number(ctx, sql, args...)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %d, must be %d: please report it", what, got, want)
	}
	return err
}

// until waits until the database answers so.
func (c *commands) until(ctx context.Context, want int64, what, sql string, args ...any) error {
	for began := time.Now(); ; {
		got, err := c.number(ctx, sql, args...)
		switch {
		case err != nil || got == want:
			return err
		case time.Since(began) > commandsPatience:
			return fmt.Errorf("%s: %d after %v, must be %d: please report it", what, got, commandsPatience, want)
		}
		if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func sending(invoice int, customer string, cents int) []string {
	return []string{
		"command", "send", "billing.charge.capture", "--key", fmt.Sprintf("inv-%d", invoice), "--data",
		fmt.Sprintf(`{"invoice": %d, "customer": %q, "cents": %d}`, invoice, customer, cents), "--wait=1m",
	}
}

// once sends a command twice.
func (c *commands) once(ctx context.Context) error {
	c.say("\n2. A producer asks for a charge, and gets a result. It asks again, since it cannot know whether the first one arrived: it gets\n" +
		"   the stored result, and nothing runs.")
	for range 2 {
		if err := c.tidemark(ctx, sending(1, "ada", 1200)...); err != nil {
			return err
		}
	}
	c.say("   In the service's own table (select * from demo_billing.charge) there is one row.")
	return c.expect(ctx, 1, "charges of one command, sent twice", `select count(*) from demo_billing.charge`)
}

// envelope is a command for billing, as a producer writes it.
func envelope(producer, key string, payload any) []byte {
	text, err := json.Marshal(map[string]any{
		"event_id": command.NewEventID(), "service": "billing", "command": "charge.capture", "command_version": 1, "schema_version": 1,
		"payload": payload, "idempotency_key": key, "occurred_at": time.Now().UTC().Format(time.RFC3339Nano), "trace_id": command.NewTraceID(),
		"metadata": map[string]string{"producer": producer},
	})
	if err != nil {
		panic(err) // maps and texts
	}
	return text
}

type charge struct {
	Invoice  int    `json:"invoice"`
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// forge sends what strangers send, and one record of the real producer.
func (c *commands) forge(ctx context.Context) error {
	c.say("\n3. Forgers. A topic of a service belongs to its producers, by the brokers' ACLs; on the shared topic db-events a signature proves\n" +
		"   who asks. None of these runs; each is a dead letter, and gets no result, which would help a stranger to guess:")
	_, stolen, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	byStranger := func(r command.Record) (string, error) { return command.Sign(r, producerKey, stolen) }
	elsewhere := func(r command.Record) (string, error) { r.Topic = "db-events.copy"; return c.sign(r) }
	for i, f := range []struct {
		what, topic, producer string
		sign                  func(command.Record) (string, error)
		reason                string
	}{
		{"claims to be shop, unsigned", sharedTopic, producerName, nil, "identity.signature_missing"},
		{"signs as shop-1, with another key", sharedTopic, producerName, byStranger, "identity.signature_invalid"},
		{"repeats a signature of another topic", sharedTopic, producerName, elsewhere, "identity.signature_invalid"},
		{"asks billing in the topic of user", "db-events.user", producerName, nil, "identity.topic_mismatch"},
		{"is not on the allowlist", "db-events.billing", "stranger", nil, "identity.producer_not_allowed"},
	} {
		record := &kgo.Record{Topic: f.topic, Key: []byte("forged"), Value: envelope(f.producer, fmt.Sprintf("forged-%d", i), charge{666, "ada", 99_999})}
		if err := c.produce(ctx, record, f.sign); err != nil {
			return err
		}
		if err := c.until(ctx, int64(i+1), "dead letters of forgers", `select count(*) from tidemark.dead_letter where error_code like 'identity.%'`); err != nil {
			return err
		}
		if err := c.expect(ctx, 1, f.what+" "+f.reason, `select count(*) from (select error_code from tidemark.dead_letter order by id desc limit 1) l where error_code = $1`, f.reason); err != nil {
			return err
		}
		c.say("   a forger %-38s %s", f.what, f.reason)
	}
	if err := c.produce(ctx, &kgo.Record{Topic: sharedTopic, Key: []byte("inv-2"), Value: envelope(producerName, "inv-2", charge{2, "ada", 300})}, c.sign); err != nil {
		return err
	}
	c.say("   the producer signs with its own key           processed")
	if err := c.until(ctx, 1, "signed command", `select count(*) from tidemark.command_claim where idempotency_key = 'inv-2' and via = 'jws' and state = 'processed'`); err != nil {
		return err
	}
	return c.expect(ctx, 2, "charges after the forgers", `select count(*) from demo_billing.charge`)
}

func (c *commands) produce(ctx context.Context, r *kgo.Record, sign func(command.Record) (string, error)) error {
	if sign != nil {
		signature, err := sign(command.Record{Cluster: "main", Topic: r.Topic, Key: r.Key, Value: r.Value})
		if err != nil {
			return err
		}
		r.Headers = []kgo.RecordHeader{{Key: command.SignatureHeader, Value: []byte(signature)}}
	}
	return c.producers.ProduceSync(ctx, r).FirstErr()
}

// failAndReplay has a command fail, mends why it fails, and replays it; and sends a record that is no command.
func (c *commands) failAndReplay(ctx context.Context) error {
	c.say("\n4. A command fails for good: its effect is rolled back, its producer gets a result, and a dead letter stays.")
	if err := c.tidemark(ctx, sending(3, "dan", 500)...); err != nil {
		return err
	}
	if err := c.tidemark(ctx, "dead-letter", "list", "--source", "commands", "--code", "sql.business_rule"); err != nil {
		return err
	}
	c.say("   The customer gets a card, and an operator replays what failed. What was processed never runs again.\n" +
		"   psql> insert into demo_billing.card values ('dan');")
	if _, err := c.conn.Exec(ctx, `insert into demo_billing.card values ('dan')`); err != nil {
		return err
	}
	if err := c.tidemark(ctx, "command", "replay", "--service", "billing", "--failed", "--code", "sql.business_rule", "--reason", "the customer has a card"); err != nil {
		return err
	}
	if err := c.until(ctx, 1, "charge that was replayed", `select count(*) from demo_billing.charge where customer = 'dan'`); err != nil {
		return err
	}
	if err := c.tidemark(ctx, "command", "show", "inv-3", "--service", "billing"); err != nil {
		return err
	}
	if err := c.produce(ctx, &kgo.Record{Topic: "db-events.billing", Key: []byte("\x00poison"), Value: []byte("{\"event_id\": \xff")}, nil); err != nil {
		return err
	}
	c.say("   A record that is no command at all is a dead letter, byte for byte, in db-dlq.billing. The records behind it go on.")
	return c.until(ctx, 1, "dead letter of a record that is no command", `select count(*) from tidemark.dead_letter where error_code = 'envelope.invalid'`)
}
