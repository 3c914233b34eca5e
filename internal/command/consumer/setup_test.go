package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// effects is what the commands of the tests do: each effect is a row, with its place in the order in which they were made.
const effects = `
create schema app;
create table app.effect (n bigint generated always as identity, key text, id int unique);
create function app.make(payload jsonb, context jsonb) returns jsonb language plpgsql as $$
begin
	insert into effect (key, id) values (coalesce(payload ->> 'key', ''), (payload ->> 'id')::int);
	if payload ? 'fatal' then
		set exit_on_error = on;
		raise 'the end';
	end if;
	if payload ? 'sleep' then
		perform pg_sleep((payload ->> 'sleep')::float8);
	end if;
	return jsonb_build_object('id', payload -> 'id');
end $$;`

// world is a live service with a topic.
type world struct {
	t       *testing.T
	db      *tidemarktest.DB
	service string
	topic   string
	seeds   []string
	client  *kgo.Client
	n       int
}

// newWorld has a topic of so many partitions on a broker of the test's own.
func newWorld(t *testing.T, partitions int32) *world {
	t.Helper()
	w := newService(t)
	w.brokers(1, partitions, w.topic, "db-events", "db-events.nowhere")
	return w
}

// brokers connects to so many of the test's own, with topics of so many partitions.
func (w *world) brokers(n int, partitions int32, topics ...string) *kfake.Cluster {
	w.t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(n), kfake.SeedTopics(partitions, topics...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cluster.Close)
	w.connect(cluster.ListenAddrs())
	return cluster
}

func newService(t *testing.T) *world {
	t.Helper()
	db := tidemarktest.NewDB(t)
	w := &world{t: t, db: db, service: "s" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")}
	w.topic = "db-events." + w.service
	role := "tidemark_service_" + w.service
	t.Cleanup(func() { w.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
	w.exec(effects)
	w.exec(`select tidemark.service_set($1)`, w.service)
	w.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"function": "app.make", "payload_schema": {"type": "object", "required": ["id"]}}')`, w.service)
	w.exec(`select tidemark.command_allow($1, 'shop', tenants => '{*}')`, w.service)
	w.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, w.service)
	w.exec(`select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, w.service)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": true, "dry_run": false, "timeout": "1 second"}')`, w.service)
	return w
}

func (w *world) connect(seeds []string) {
	w.t.Helper()
	w.seeds = seeds
	var err error
	if w.client, err = kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.client.Close)
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// envelope is a command; a nil change leaves a member out.
func (w *world) envelope(key, payload string, changes map[string]any) []byte {
	w.t.Helper()
	w.n++
	members := map[string]any{
		"event_id": fmt.Sprintf("00000000-0000-7000-8000-%012d", w.n), "service": w.service, "command": "make", "command_version": 1, "schema_version": 1,
		"payload": json.RawMessage(payload), "idempotency_key": key, "occurred_at": "2026-01-31T12:00:00Z",
		"trace_id": "0123456789abcdef0123456789abcdef", "metadata": map[string]any{"producer": "shop"},
	}
	for name, value := range changes {
		if members[name] = value; value == nil {
			delete(members, name)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// send writes records to a partition, in order.
func (w *world) send(partition int32, records ...*kgo.Record) {
	w.t.Helper()
	for _, r := range records {
		r.Partition = partition
		if r.Topic == "" {
			r.Topic = w.topic
		}
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// make is a record with a command that makes the effect id.
func (w *world) make(key string, id int) *kgo.Record {
	w.t.Helper()
	return &kgo.Record{Value: w.envelope(key, fmt.Sprintf(`{"id": %d}`, id), nil)}
}

// run runs a consumer. kill ends it as a crash does: its sessions with PostgreSQL are cut.
func (w *world) run() (stop, kill func()) { return w.runWith(func(*consumer.Options) {}) }

func (w *world) runWith(change func(*consumer.Options)) (stop, kill func()) {
	w.t.Helper()
	pool, err := pgxpool.New(context.Background(), w.db.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	owner := fmt.Sprintf("test/%d", time.Now().UnixNano())
	o := consumer.Options{
		Client: func() ([]kgo.Opt, error) {
			return []kgo.Opt{kgo.SeedBrokers(w.seeds...), kgo.MetadataMinAge(50 * time.Millisecond)}, nil
		},
		Topics: []string{"db-events.*", "db-events"}, Group: "tidemark", Cluster: "test", Batch: 50, InFlight: 100, Lease: time.Second, Log: log, Observe: func(consumer.Outcome) {},
		Worker: func(string, int) worker.Options {
			return worker.Options{
				Owner: owner, Lease: 5 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 50 * time.Millisecond, StopTime: 5 * time.Second, Log: log,
			}
		},
	}
	change(&o)
	c := consumer.New(store.Pool(pool), o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		c.Run(ctx)
		close(done)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		pool.Close()
	})
	w.t.Cleanup(stop)
	return stop, func() {
		pool.Reset()
		stop()
	}
}

func (w *world) rows(sql string) []string {
	w.t.Helper()
	rows, err := w.db.Pool.Query(context.Background(), sql)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// eventually waits until the query gives what is wanted.
func (w *world) eventually(sql string, want ...string) {
	w.t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-poll.C {
		got := w.rows(sql)
		if cmp.Equal(want, got) || len(want)+len(got) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s\n(-want +got)\n%s", sql, cmp.Diff(want, got))
		}
	}
}

const (
	results = `select concat_ws(' ', payload ->> 'status', payload ->> 'error_code', payload ->> 'idempotency_key') from tidemark.outbox where type like 'result.%' order by seq`
	offsets = `select source || '/' || shard || ' ' || watermark_id from tidemark.worker_cursor where worker = 'commands' and watermark_id <> '0' order by 1`
	made    = `select id::text from app.effect order by n`
)
