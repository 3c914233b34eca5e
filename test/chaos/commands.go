package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

//go:embed commands.sql
var commands string

const commandsGate = "commands.enabled"

// services have so many partitions of commands each.
var services = map[string]int32{"till": 4, "depot": 3, mirror: 2}

const (
	// mirror is in dry run from time to time; what was run dry is replayed. So its commands have no order.
	mirror = "mirror"
	// shared is a topic of all services, whose records have to be signed.
	shared           = "db-events"
	sharedPartitions = 3
)

// Prefixes of the topics of a service.
const (
	asks    = "db-events."
	answers = "db-results."
	letters = "db-dlq."
)

// Asked is a record of a topic of commands, as it is in the end.
type Asked struct {
	Service   string // of the topic, or shared
	Partition int32
	Offset    int64
	Key       string
	Value     string
	Signature string // empty: none
}

// Answered is a record of a topic of results.
type Answered struct {
	Name           string // of the result: the same for each copy of it
	Service        string
	EventID        string `json:"event_id"`
	IdempotencyKey string `json:"idempotency_key"`
	Status         string `json:"status"`
}

// Refused is a record of a topic of dead letters.
type Refused struct {
	Service   string
	Partition int32 // of the record that was refused
	Offset    int64
	Key       string
	Value     string
}

// Taken is an effect of a command.
type Taken struct {
	At      time.Time
	Service string
	ID      int64
	Key     string
}

// Chained is the chain of a key.
type Chained struct{ Service, Key, State string }

// Placed is where the cursor of a partition was at a moment.
type Placed struct {
	At        time.Time
	Partition string
	Next      int64
	Epoch     int64
}

// commandEvidence is what the checker looks at of the commands.
type commandEvidence struct {
	Asked    []Asked // in the order of their offsets, partition by partition
	Answered []Answered
	Refused  []Refused
	Taken    []Taken // in the order in which they were made
	Chains   []Chained
	Placed   []Placed
	Signers  map[string]ed25519.PublicKey // by kid
}

// commanding is the part of a run that has to do with commands.
type commanding struct {
	broker *broker
	sent   atomic.Int64
	ended  atomic.Int64 // records that the cursors have passed, and that are not parked
	asked  trial.Journal[*kgo.Record]
	placed trial.Journal[Placed]
	keys   map[string]ed25519.PrivateKey // of producers, by kid
}

// withCommands: every run has commands, but mutants of something else.
func (o *options) withCommands() bool {
	switch o.commands {
	case "on":
		return true
	case "off":
		return false
	}
	return o.mutant.name == "" || o.mutant.commands
}

// installCommands starts the broker and registers the services.
func (h *harness) installCommands(ctx context.Context, conn *pgx.Conn) (err error) {
	if h.commanding.broker, err = h.startBroker(ctx); err != nil {
		return err
	}
	h.cleanup = append(h.cleanup, h.commanding.broker.close)
	client, err := h.kafka(nil)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for service, partitions := range services {
		for prefix, n := range map[string]int32{asks: partitions, answers: 2, letters: 1} {
			if _, err := admin.CreateTopic(ctx, n, 1, nil, prefix+service); err != nil {
				return err
			}
		}
	}
	if _, err := admin.CreateTopic(ctx, sharedPartitions, 1, nil, shared); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, commands); err != nil {
		return fmt.Errorf("commands.sql: %w", err)
	}
	h.commanding.keys = map[string]ed25519.PrivateKey{}
	for service := range services {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		h.commanding.keys[kidOf(service)] = private
		if _, err := conn.Exec(ctx, `select tidemark.producer_key_add($1, $2, 'shop', jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', $3::text))`,
			kidOf(service), service, base64.RawURLEncoding.EncodeToString(public)); err != nil {
			return err
		}
	}
	return nil
}

// topics are those with this prefix; with that of commands also the shared one.
func topics(prefix string) (all []string) {
	if prefix == asks {
		all = append(all, shared)
	}
	for service := range services {
		all = append(all, prefix+service)
	}
	return all
}

// kafka is a client of the broker.
func (h *harness) kafka(more []kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(h.commanding.broker.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DialTimeout(2 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.RetryTimeout(10 * time.Second),
	}, more...)...)
}

// configuration of a daemon that takes commands.
func (h *harness) commandsConfiguration() string {
	if !h.withCommands() {
		return ""
	}
	return fmt.Sprintf("connections: {main: {kind: kafka, brokers: [%q]}}\ncommands: {connection: main, cluster: main}\n", h.commanding.broker.addr)
}

// place writes down the cursors of the partitions until ctx is done.
func (h *harness) place(ctx context.Context) {
	for h.withCommands() && ctx.Err() == nil {
		conn, err := connect(ctx, h.url())
		if err != nil {
			return
		}
		for err == nil {
			rows, _ := conn.Query(ctx, `select clock_timestamp(), c.source || '/' || c.shard, c.watermark_id::bigint, h.lease_epoch
				from tidemark.worker_cursor c join tidemark.heartbeat h on h.executor_id = 'commands/' || c.source || '/' || c.shard
				where c.worker = 'commands' and c.source like 'kafka:%'`)
			var list []Placed
			if list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Placed]); err != nil {
				break
			}
			h.commanding.placed.Add(list...)
			var parked, sum int64
			if err = conn.QueryRow(ctx, `select count(*) from (select from tidemark.command_parked limit $1) p`, 2*commandsAhead).Scan(&parked); err != nil {
				break
			}
			for _, p := range list {
				sum += p.Next
			}
			h.commanding.ended.Store(sum - parked)
			err = trial.Wait(ctx, 100*time.Millisecond)
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// commandsLeft says what is still to be done of the commands.
func (h *harness) commandsLeft(ctx context.Context) (string, error) {
	if !h.withCommands() {
		return "", nil
	}
	if err := h.replay(ctx, mirror); err != nil { // the last dry run may be over since the last replay
		return "", err
	}
	client, err := h.kafka(nil)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ends, err := h.ends(ctx, client, asks)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // the broker is on its way up again
	}
	list, _, err := ask(ctx, h, pgx.RowToStructByPos[struct {
		Partition string
		Next      int64
	}], `select source || '/' || shard, watermark_id::bigint from tidemark.worker_cursor where worker = 'commands' and source like 'kafka:%'`)
	if err != nil {
		return "", err
	}
	for _, p := range list {
		ends[strings.TrimPrefix(p.Partition, "kafka:")] -= p.Next
	}
	left := int64(0)
	for _, n := range ends {
		left += n
	}
	parked, err := h.number(ctx, `select count(*) from tidemark.command_parked`)
	if err != nil || left+parked == 0 {
		return "", err
	}
	return fmt.Sprintf("%d commands are left, %d are parked", left, parked), nil
}

// ends are the end offsets of the topics with this prefix, by topic/partition.
func (h *harness) ends(ctx context.Context, client *kgo.Client, prefix string) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, err := kadm.NewClient(client).ListEndOffsets(ctx, topics(prefix)...)
	if err == nil {
		err = all.Error()
	}
	ends := map[string]int64{}
	all.Each(func(o kadm.ListedOffset) { ends[fmt.Sprintf("%s/%d", o.Topic, o.Partition)] = o.Offset })
	return ends, err
}

// records are all of the topics with this prefix, in the order of their offsets.
func (h *harness) records(ctx context.Context, prefix string) ([]*kgo.Record, error) {
	client, err := h.kafka([]kgo.Opt{kgo.ConsumeTopics(topics(prefix)...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := h.ends(ctx, client, prefix)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(ends, func(_ string, end int64) bool { return end == 0 })
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var all []*kgo.Record
	for len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the records of %s* cannot be read to their ends: %v", prefix, ends)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			all = append(all, r)
			if at := fmt.Sprintf("%s/%d", r.Topic, r.Partition); r.Offset+1 >= ends[at] {
				delete(ends, at)
			}
		})
	}
	slices.SortStableFunc(all, func(a, b *kgo.Record) int {
		return strings.Compare(fmt.Sprintf("%s/%04d", a.Topic, a.Partition), fmt.Sprintf("%s/%04d", b.Topic, b.Partition))
	})
	return all, nil
}

// gatherCommands reads what the checker needs of the commands.
func (h *harness) gatherCommands(ctx context.Context, e *evidence) error {
	if !h.withCommands() {
		return nil
	}
	e.Placed = h.commanding.placed.All()
	list, err := h.records(ctx, asks)
	if err != nil {
		return err
	}
	for _, r := range list {
		e.Asked = append(e.Asked, Asked{strings.TrimPrefix(r.Topic, asks), r.Partition, r.Offset, string(r.Key), string(r.Value), header(r, signatureHeader)})
	}
	e.Signers = map[string]ed25519.PublicKey{}
	for kid, key := range h.commanding.keys {
		e.Signers[kid] = key.Public().(ed25519.PublicKey)
	}
	if list, err = h.records(ctx, answers); err != nil {
		return err
	}
	for _, r := range list {
		a := Answered{Name: header(r, "tidemark-event-id"), Service: strings.TrimPrefix(r.Topic, answers)}
		if err := json.Unmarshal(r.Value, &a); err != nil {
			return fmt.Errorf("a result cannot be read: %s: %w", r.Value, err)
		}
		e.Answered = append(e.Answered, a)
	}
	if list, err = h.records(ctx, letters); err != nil {
		return err
	}
	for _, r := range list {
		partition, _ := strconv.Atoi(header(r, "x-dlq-partition"))
		offset, err := strconv.ParseInt(header(r, "x-dlq-offset"), 10, 64)
		if err != nil {
			return fmt.Errorf("a dead letter names no offset: %v", r.Headers)
		}
		e.Refused = append(e.Refused, Refused{strings.TrimPrefix(header(r, "x-dlq-topic"), asks), int32(partition), offset, string(r.Key), string(r.Value)})
	}
	if e.Taken, _, err = ask(ctx, h, pgx.RowToStructByPos[Taken], `select at, service, id, key from app.taken order by n`); err != nil {
		return err
	}
	e.Chains, _, err = ask(ctx, h, pgx.RowToStructByPos[Chained], `select service, key, state from app.chain`)
	return err
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
