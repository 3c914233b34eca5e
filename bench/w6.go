package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

//go:embed sql/commands.sql
var commandsSQL string

const (
	setCommands  = "limit: set-based, 50 a transaction"
	handCommands = "by hand, one a transaction"
	sinkCommands = "upsert as a JDBC sink, 500 a transaction"
	ourCommands  = "tidemark, 50 a transaction"
	fewCommands  = "tidemark, 8 a transaction"
	oneCommands  = "tidemark, one a transaction"
)

// across names a contestant with so many partitions.
func across(name string, partitions int) string {
	if partitions == 1 {
		return name + ", 1 partition"
	}
	return fmt.Sprintf("%s, %d partitions", name, partitions)
}

var w6 = workload{
	number:    "6",
	title:     "commands from Kafka: effect, claim, result and offset in one transaction",
	unit:      "command",
	baselines: []string{across(setCommands, 8), across(handCommands, 8)},
	columns:   []string{p50Figure, p95Figure, p99Figure, maxFigure, dueFigure, lostFigure, twiceFigure, disorderFigure},
	contestants: func(e *env) []contestant {
		b := &commandBroker{env: e}
		e.atEnd = append(e.atEnd, b.stop)
		many, few := e.scaled(50_000), e.scaled(10_000)
		one := func(name string, partitions, items, batch int, passes func(*commandRun, context.Context) error) *commandRun {
			return &commandRun{env: e, broker: b, name: across(name, partitions), partitions: partitions, items: items, batch: batch, passes: passes}
		}
		return []contestant{
			one(setCommands, 1, many, 50, (*commandRun).byHand), one(setCommands, 8, many, 50, (*commandRun).byHand),
			one(handCommands, 1, few, 1, (*commandRun).byHand), one(handCommands, 8, few, 1, (*commandRun).byHand),
			one(sinkCommands, 8, many, 500, (*commandRun).byHand),
			one(ourCommands, 1, many, 50, (*commandRun).byDaemon), one(ourCommands, 8, many, 50, (*commandRun).byDaemon),
			one(fewCommands, 8, many, 8, (*commandRun).byDaemon),
			one(oneCommands, 1, few, 1, (*commandRun).byDaemon), one(oneCommands, 8, few, 1, (*commandRun).byDaemon),
			&latency{env: e, name: at(answered, answerRate), rate: answerRate, strict: true, stream: &commandStream{env: e, broker: b}},
		}
	},
	reach: func(rs results) []goal {
		ours := across(ourCommands, 8)
		speed, ok := rs.of(ours, sample.rate)
		cpu, measured := rs.of(ours, sample.cpuPerItem)
		return []goal{
			atLeast(15_000, figure{"commands a second, " + ours, speed, ok}),
			atLeast(0.6, rs.quotient(ours, across(setCommands, 8))),
			atMost(170, figure{"CPU µs a command, " + ours, cpu, measured}),
			note(rs.quotient(ours, across(handCommands, 8))),
			note(rs.quotient(across(ourCommands, 1), across(setCommands, 1))),
			note(rs.quotient(ours, across(ourCommands, 1))),
			note(rs.quotient(across(oneCommands, 8), across(handCommands, 8))),
			note(rs.quotient(ours, across(sinkCommands, 8))),
			atMost(10, rs.figure(p50Figure, at(answered, answerRate))),
			atMost(40, rs.figure(p99Figure, at(answered, answerRate))),
		}
	},
}

// commandBroker is Apache Kafka where its jars are at hand, else a broker in this process. Each run has topics of its own.
type commandBroker struct {
	*env
	node      *testkafka.Node
	cluster   *kfake.Cluster
	installed bool
	topics    int
}

func (b *commandBroker) stop() {
	if b.node != nil {
		_ = b.node.Stop()
	}
	if b.cluster != nil {
		b.cluster.Close()
	}
}

func (b *commandBroker) address() string {
	if b.node != nil {
		return b.node.Address()
	}
	return b.cluster.ListenAddrs()[0]
}

func (b *commandBroker) start(ctx context.Context) (err error) {
	switch jars := os.Getenv(testkafka.JarsVariable); {
	case b.node != nil || b.cluster != nil:
	case jars != "" && !b.check:
		b.node, err = testkafka.Start(ctx, jars)
	default:
		b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1))
	}
	if err != nil || b.installed {
		return err
	}
	b.installed = true
	return b.exec(ctx, commandsSQL)
}

// topic makes a topic of the service bench, and a client that produces to it.
func (b *commandBroker) topic(ctx context.Context, partitions int) (topic string, client *kgo.Client, err error) {
	b.topics++
	topic = fmt.Sprintf("w6-%d.bench", b.topics)
	client, err = kgo.NewClient(kgo.SeedBrokers(b.address()), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return "", nil, err
	}
	if _, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
		client.Close()
		return "", nil, err
	}
	return topic, client, nil
}

// command is the record of a command.
func command(n int, orderingKey, idempotencyKey string, payload json.RawMessage) (*kgo.Record, error) {
	value, err := json.Marshal(map[string]any{
		"event_id": fmt.Sprintf("00000000-0000-7000-8000-%012d", n), "service": "bench", "command": "take", "command_version": 1, "schema_version": 1,
		"payload": payload, "idempotency_key": idempotencyKey,
		"occurred_at": "2026-01-31T12:00:00Z", "trace_id": fmt.Sprintf("%032x", n+1), "metadata": map[string]any{"producer": "bench"},
	})
	return &kgo.Record{Key: []byte(orderingKey), Value: value}, err
}

// fill makes a topic with so many commands, of 1,000 keys. The keys' commands are in the order of their numbers.
func (b *commandBroker) fill(ctx context.Context, partitions, items int) (string, error) {
	topic, client, err := b.topic(ctx, partitions)
	if err != nil {
		return "", err
	}
	defer client.Close()
	run := rand.Text()
	for n := range items {
		payload := fmt.Appendf(nil, `{"n": %d, "pad": "%0180d"}`, n, n)
		r, err := command(n, fmt.Sprint("key.", n%keysInBacklog), fmt.Sprint(run, "-", n), payload)
		if err != nil {
			return "", err
		}
		client.Produce(ctx, r, nil)
	}
	if err := client.Flush(ctx); err != nil {
		return "", err
	}
	end, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return "", err
	}
	var held int64
	end.Each(func(o kadm.ListedOffset) { held += o.Offset })
	if held != int64(items) {
		return "", fmt.Errorf("the topic has %d commands of %d", held, items)
	}
	return topic, nil
}

// commandRun works a topic off.
type commandRun struct {
	*env
	broker                   *commandBroker
	name                     string
	partitions, items, batch int
	passes                   func(*commandRun, context.Context) error

	topic   string
	routing *routing
}

func (c *commandRun) Name() string { return c.name }

func (c *commandRun) Setup(ctx context.Context) (err error) {
	if err := c.broker.start(ctx); err != nil {
		return err
	}
	c.backlog.events = 0 // results take the place of its events
	if err := errors.Join(c.empty(ctx), c.exec(ctx, `insert into bench.place select n, 0 from generate_series(0, 63) n on conflict (partition) do update set next = 0;
		select tidemark.gate_set('worker.bench.enabled', false)`)); err != nil {
		return err
	}
	if c.topic, err = c.broker.fill(ctx, c.partitions, c.items); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.commanded", "bench.inbox", "bench.reply", "bench.place", "bench.upserted", "tidemark.command_claim", "tidemark.worker_cursor", "tidemark.outbox")
}

// empty leaves nothing of the runs before.
func (c *commandRun) empty(ctx context.Context) error {
	return errors.Join(c.emptyLog(ctx), c.exec(ctx, `
		truncate bench.commanded, bench.inbox, bench.reply, bench.upserted restart identity;
		truncate tidemark.command_claim, tidemark.command_parked, tidemark.command_record;
		delete from tidemark.worker_cursor where worker = 'commands'`))
}

func (c *commandRun) Run(ctx context.Context) (int, error) { return c.items, c.passes(c, ctx) }

// daemon runs the commands of the topic.
func (b *commandBroker) daemon(ctx context.Context, topic string, batch, partitions int) (*routing, error) {
	return startRouting(ctx, b.env, func(o *config.Config) {
		o.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: []string{b.address()}}}
		o.Commands.Connection, o.Commands.Batch, o.Commands.Group = "main", batch, topic
		o.Commands.Topics = []string{topic[:len(topic)-len("bench")] + "*"}
		o.Database.MaxConnections = partitions + 4
	})
}

// byDaemon includes the daemon's start, and its entry into the group.
func (c *commandRun) byDaemon(ctx context.Context) (err error) {
	if c.routing, err = c.broker.daemon(ctx, c.topic, c.batch, c.partitions); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		n, err := c.count(ctx, `select coalesce(sum(watermark_id::bigint), 0)::int from tidemark.worker_cursor where worker = 'commands' and source like 'kafka:%'`)
		if err != nil || n == c.items {
			return err
		}
		if time.Since(began) > 10*time.Minute {
			return fmt.Errorf("%d commands of %d after ten minutes", n, c.items)
		}
	}
}

// byHand is a consumer with a session for each partition.
func (c *commandRun) byHand(ctx context.Context) error {
	ends := make(chan error, c.partitions)
	left := map[int32]int64{}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.broker.address()), kgo.ConsumeTopics(c.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).ListEndOffsets(ctx, c.topic)
	if err != nil {
		return err
	}
	queues := map[int32]chan []*kgo.Record{}
	offsets.Each(func(o kadm.ListedOffset) {
		left[o.Partition] = o.Offset
		queues[o.Partition] = make(chan []*kgo.Record, 64)
		go func() { ends <- c.session(ctx, o.Partition, queues[o.Partition]) }()
	})
	for total := int64(c.items); total > 0; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			queues[p.Partition] <- p.Records
			total -= int64(len(p.Records))
		})
	}
	for _, queue := range queues {
		close(queue)
	}
	var errs []error
	for range queues {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

// session works off the records of a partition.
func (c *commandRun) session(ctx context.Context, partition int32, queue <-chan []*kgo.Record) error {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for fetched := range queue {
		for records := range slices.Chunk(fetched, c.batch) {
			var keys []string
			var payloads []json.RawMessage
			for _, r := range records {
				var e struct {
					Key     string          `json:"idempotency_key"`
					Payload json.RawMessage `json:"payload"`
				}
				if err := json.Unmarshal(r.Value, &e); err != nil {
					return err
				}
				keys, payloads = append(keys, e.Key), append(payloads, e.Payload)
			}
			next := records[len(records)-1].Offset + 1
			switch c.name {
			case across(handCommands, c.partitions):
				_, err = conn.Exec(ctx, "select bench.command_one($1, $2, $3, $4)", partition, next, keys[0], payloads[0])
			case across(sinkCommands, c.partitions):
				_, err = conn.Exec(ctx, "select bench.command_upsert($1, $2, $3, $4)", partition, next, keys, payloads)
			default:
				_, err = conn.Exec(ctx, "select bench.command_set($1, $2, $3, $4)", partition, next, keys, payloads)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *commandRun) Check(ctx context.Context) error {
	if c.name == across(sinkCommands, c.partitions) {
		return errors.Join(
			c.expect(ctx, "rows", c.items, "select count(*) from bench.upserted"),
			c.expect(ctx, "offsets", c.items, "select sum(next)::int from bench.place"))
	}
	claims, results, offset := "select count(*) from bench.inbox", "select count(*) from bench.reply where document ->> 'status' = 'processed'", "select sum(next)::int from bench.place"
	if c.routing != nil {
		claims = "select count(*) from tidemark.command_claim where state = 'processed'"
		results = "select count(distinct payload ->> 'idempotency_key') from tidemark.outbox where type = 'result.bench' and payload ->> 'status' = 'processed'"
		offset = "select sum(watermark_id::bigint)::int from tidemark.worker_cursor where worker = 'commands' and source like 'kafka:%'"
	}
	return errors.Join(
		c.expect(ctx, "effects", c.items, "select count(distinct n) from bench.commanded"),
		c.expect(ctx, "effects, with doubles", c.items, "select count(*) from bench.commanded"),
		c.expect(ctx, "claims", c.items, claims), c.expect(ctx, "results", c.items, results), c.expect(ctx, "offsets", c.items, offset),
		c.expect(ctx, "effects out of order", 0, "select count(*) from (select n < lag(n) over (partition by n % $1 order by id) as back from bench.commanded) e where back", keysInBacklog))
}

func (c *commandRun) Clean(ctx context.Context) error {
	err := c.routing.stop()
	c.routing = nil
	return errors.Join(err, c.empty(ctx), c.exec(ctx, `select tidemark.gate_set('worker.bench.enabled', true)`))
}
