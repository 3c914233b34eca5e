package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

const (
	relayMover    = "plain relay"
	tidemarkMover = "tidemark, real Kafka"
	debeziumMover = "Debezium 3.2"

	payloadMover = tidemarkMover + ", payload alone" // the same with records like those of the others

	moverCommand = "mover" // the first argument of this program where it is one
	slotName     = "bench_debezium"
)

// A mover takes events from a table of the database to a topic. It is a program of its own, so that its CPU and memory can be
// told apart.
type mover struct {
	*env
	kafka   *realKafka
	kind    string
	format  string // of Tidemark's records; empty: its default, a CloudEvent
	topic   string
	process *process
}

func newMover(e *env, kafka *realKafka, kind string) *mover {
	return &mover{env: e, kafka: kafka, kind: kind}
}

// emitSQL emits an event with payload $1 and key $2.
func (m *mover) emitSQL() string {
	switch m.kind {
	case tidemarkMover:
		return emitOne
	case relayMover:
		return "with e as (insert into bench.gated_outbox (key, payload) values ($2, $1)) select pg_notify('bench_gated', '')"
	default:
		return "insert into bench.debezium_outbox (aggregateid, payload) values ($2, $1)"
	}
}

func (m *mover) table() string {
	return map[string]string{tidemarkMover: "tidemark.outbox", relayMover: "bench.gated_outbox", debeziumMover: "bench.debezium_outbox"}[m.kind]
}

// fill emits events in one transaction, by one statement.
func (m *mover) fill(ctx context.Context, first, last int) error {
	insert := map[string]string{
		tidemarkMover: "select count(tidemark.emit('bench', 'type.' || n % 10, " + payload + ", 'key.' || n % 1000)) from generate_series($1::int8, $2::int8) n",
		relayMover: "with e as (insert into bench.gated_outbox (key, payload) select 'key.' || n % 1000, " + payload +
			" from generate_series($1::int8, $2::int8) n) select pg_notify('bench_gated', '')",
		debeziumMover: "insert into bench.debezium_outbox (aggregateid, payload) select 'key.' || n % 1000, " + payload + " from generate_series($1::int8, $2::int8) n",
	}[m.kind]
	_, err := m.conn.Exec(ctx, insert, first, last)
	return err
}

// begin starts the mover on an empty table and an empty topic.
func (m *mover) begin(ctx context.Context) error {
	if err := m.kafka.start(ctx); err != nil {
		return err
	}
	var err error
	if m.topic, err = m.kafka.newTopic(ctx); err != nil {
		return err
	}
	if err := m.empty(ctx); err != nil {
		return err
	}
	if m.kind == debeziumMover {
		m.process, err = m.startDebezium()
	} else {
		m.process, err = startSelf(m.kind, m.dsn, m.kafka.node.Address(), m.topic)
	}
	if err != nil || m.kind != debeziumMover {
		return err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		n, err := m.count(ctx, "select count(*) from pg_replication_slots where slot_name = $1 and active", slotName)
		if err != nil || n == 1 {
			return err
		}
		if time.Since(began) > 2*time.Minute {
			return m.process.because(errors.New("Debezium does not stream"))
		}
	}
}

func (m *mover) empty(ctx context.Context) error {
	switch m.kind {
	case tidemarkMover:
		if err := m.emptyWorld(ctx); err != nil {
			return err
		}
		if _, err := m.conn.Exec(ctx, `
			insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, options, enabled, dry_run, ordering, concurrency)
			values ('topic', 'bench', 'bench', '*', 'kafka', $1, jsonb_strip_nulls(jsonb_build_object('format', nullif($2, ''))), true, false, 'key', 4)`,
			m.topic, m.format); err != nil {
			return err
		}
		return m.setWakeUp(ctx, true)
	case relayMover:
		s := gatedStream{env: m.env}
		return s.Prepare(ctx)
	default:
		if m.meter.cpu.known() {
			if n, err := m.count(ctx, "select count(*) from pg_settings where name = 'wal_level' and setting = 'logical'"); err != nil || n == 0 {
				return errors.Join(err, skipped("the server's wal_level is not logical"))
			}
		}
		return m.exec(ctx, "truncate bench.debezium_outbox")
	}
}

// settled waits until the mover has recorded what it has moved: so many events.
func (m *mover) settled(ctx context.Context, events int) error {
	switch m.kind {
	case tidemarkMover:
		r := routing{env: m.env}
		return r.settled(ctx, events, "not exists (select from tidemark.pending)")
	case relayMover:
		for {
			n, err := m.count(ctx, "select count(*) from bench.cursor where name = 'gated' and seq >= $1", events)
			if err != nil || n == 1 {
				return err
			}
			time.Sleep(2 * time.Millisecond)
		}
	default: // its offsets are flushed by the clock
		return nil
	}
}

func (m *mover) verify(ctx context.Context) error {
	if m.kind == tidemarkMover {
		return m.verifiedSoon(ctx, "bench")
	}
	return nil
}

func (m *mover) end(ctx context.Context) error {
	if m.process == nil {
		return nil
	}
	m.process.stop()
	m.process = nil
	switch m.kind {
	case tidemarkMover:
		return errors.Join(m.setWakeUp(ctx, false), m.emptyWorld(ctx))
	case relayMover:
		return m.exec(ctx, "truncate bench.gated_outbox")
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // until the server has noticed that the reader is gone
		_, err := m.conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1", slotName)
		var busy *pgconn.PgError
		if !errors.As(err, &busy) || busy.Code != "55006" || time.Since(began) > time.Minute {
			return errors.Join(err, m.exec(ctx, "drop publication if exists "+slotName+"; truncate bench.debezium_outbox"))
		}
	}
}

// consume hands over the records of the topic as they come.
func (m *mover) consume(ctx context.Context, handle func([]byte)) (stop func(), err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.kafka.node.Address()), kgo.ConsumeTopics(m.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { handle(r.Value) })
		}
	})
	return func() { cancel(); running.Wait(); client.Close() }, nil
}

// process is a mover that runs.
type process struct {
	pid     int
	kill    func() // as a crash ends it
	stop    func()
	because func(error) error // adds what the program said last
}

// startSelf runs this program as a mover, which ends with its input.
func startSelf(args ...string) (*process, error) { return startSelfBy(nil, args...) }

// startSelfBy does so by a command that runs another.
func startSelfBy(command []string, args ...string) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command = append(append(slices.Clip(command), path, moverCommand), args...)
	cmd := exec.Command(command[0], command[1:]...)
	var said strings.Builder
	cmd.Stderr = &said
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{
		pid:     cmd.Process.Pid,
		kill:    func() { _ = cmd.Process.Kill() },
		stop:    func() { _ = cmd.Process.Signal(syscall.SIGCONT); _ = input.Close(); _ = cmd.Wait() },
		because: func(err error) error { return fmt.Errorf("%w %s", err, said.String()) },
	}, nil
}

// until waits for a query to be true, which the process makes so.
func (e *env) until(ctx context.Context, p *process, what, query string, arguments ...any) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		var is bool
		if err := e.conn.QueryRow(ctx, query, arguments...).Scan(&is); err != nil || is {
			return err
		}
		if time.Since(began) > 5*time.Minute {
			return p.because(errors.New("not within five minutes: " + what))
		}
	}
}

// runMover is the program of a mover.
func runMover(args []string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := move(ctx, args[0], args[1], args[2], args[3]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func move(ctx context.Context, kind, dsn, broker, topic string) error {
	switch kind {
	case relayMover:
		return relay(ctx, dsn, broker, topic)
	case shardMover:
		return runShards(ctx, dsn, broker)
	}
	r, err := startRouting(ctx, &env{dsn: dsn}, func(o *config.Config) {
		o.Connections = map[string]config.Connection{"bench": {Kind: "kafka", Brokers: []string{broker}}}
	})
	if err != nil {
		return err
	}
	return <-r.ended
}

// relay is what careful people write by hand: a gated read, the client, a durable cursor; no evidence.
func relay(ctx context.Context, dsn, broker, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	var mu sync.Mutex
	var failed error
	reader := gatedReader{
		notify: true,
		handle: func(key string, payload []byte) {
			client.Produce(ctx, &kgo.Record{Key: []byte(key), Value: append([]byte(nil), payload...)}, func(_ *kgo.Record, err error) {
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			})
		},
		flush: func(ctx context.Context) error {
			err := client.Flush(ctx)
			mu.Lock()
			defer mu.Unlock()
			return errors.Join(err, failed)
		},
	}
	if err := reader.connect(ctx, dsn); err != nil {
		return err
	}
	defer reader.conn.Close(context.Background())
	return reader.consume(ctx)
}

// startDebezium runs Kafka Connect with the connector for PostgreSQL and the outbox router.
func (m *mover) startDebezium() (*process, error) {
	jars := os.Getenv("DEBEZIUM_JARS")
	if jars == "" {
		return nil, skipped("no DEBEZIUM_JARS: run make bench-kafka")
	}
	dir, err := os.MkdirTemp("", "tidemark-debezium-")
	if err != nil {
		return nil, err
	}
	server, err := pgx.ParseConfig(m.dsn)
	if err != nil {
		return nil, err
	}
	host := server.Host
	if strings.HasPrefix(host, "/") { // Java knows no unix sockets
		host = "127.0.0.1"
	}
	worker, connector := filepath.Join(dir, "worker.properties"), filepath.Join(dir, "connector.properties")
	if err := os.WriteFile(worker, fmt.Appendf(nil, `
bootstrap.servers=%s
listeners=http://127.0.0.1:0
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=%s
offset.flush.interval.ms=1000
`, m.kafka.node.Address(), filepath.Join(dir, "offsets")), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(connector, fmt.Appendf(nil, `
name=bench
connector.class=io.debezium.connector.postgresql.PostgresConnector
plugin.name=pgoutput
database.hostname=%s
database.port=%d
database.user=%s
database.password=%s
database.dbname=%s
topic.prefix=bench
slot.name=%[6]s
publication.name=%[6]s
publication.autocreate.mode=filtered
table.include.list=bench.debezium_outbox
snapshot.mode=no_data
transforms=outbox
transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
transforms.outbox.route.topic.replacement=%[7]s
`, host, server.Port, server.User, server.Password, server.Database, slotName, m.topic), 0o600); err != nil {
		return nil, err
	}
	jvm, err := testkafka.Run(jars, filepath.Join(dir, "log"), "-Xmx1g", "org.apache.kafka.connect.cli.ConnectStandalone", worker, connector)
	if err != nil {
		return nil, err
	}
	return &process{pid: jvm.Pid, because: jvm.Err, stop: func() { jvm.Kill(); _ = os.RemoveAll(dir) }}, nil
}
