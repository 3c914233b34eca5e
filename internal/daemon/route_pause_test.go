package daemon_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Of each kind of target outside the database: the events of a paused route wait, also over a restart of the daemon, while a route
// beside it goes on. When it is resumed, each arrives once, in the order of keys.
func TestRoutePauseOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(t *testing.T) pausedTarget{"webhook": pausedWebhook, "kafka": pausedKafka, "nats": pausedNATS} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db, other, target := tidemarktest.NewDB(t), newReceiver(t), open(t)
			live(t, db, other.URL)
			execSQL(t, db, `select tidemark.route_set('paused', '{"domain": "test", "ordering": "key", "enabled": true, "dry_run": false}'::jsonb || $1::jsonb)`, target.route)
			emitted := 0
			emit := func(n int) {
				t.Helper()
				execSQL(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => 'k' || n % 10) from generate_series($1::int, $2::int) n`, emitted+1, emitted+n)
				emitted += n
			}
			wait := func(what, n string) {
				t.Helper()
				eventually(t, what, func() bool {
					return query(t, db, `select concat_ws(' ', count(*), sum(error_count)) from tidemark.pending`) == n
				})
			}
			c := settings(db)
			c.Connections = target.connections
			first := run(t, c)
			emit(1)
			target.arrived(1)
			execSQL(t, db, `select tidemark.route_pause('paused', 'test')`)
			beats := query(t, db, `select ticks_total from tidemark.heartbeat where executor_id = 'default/outbox/0'`)
			eventually(t, "the daemon knows", func() bool {
				return query(t, db, `select ticks_total >= `+beats+` + 2 from tidemark.heartbeat where executor_id = 'default/outbox/0'`) == "true"
			})
			emit(20)
			eventually(t, "the other route goes on", func() bool { return other.count() == 21 })
			wait("its events wait", "20 0")
			first.stop()
			run(t, c)
			emit(10)
			wait("more of them wait", "30 0")
			execSQL(t, db, `select tidemark.route_resume('paused', 'test')`)
			last := map[int]int{}
			for _, n := range target.arrived(31) {
				if n <= last[n%10] {
					t.Errorf("%d came after %d", n, last[n%10])
				}
				last[n%10] = n
			}
			wait("nothing waits", "0")
			if got := query(t, db, `select concat_ws(' ', count(*), count(distinct seq)) from tidemark.route_attempt where route_code = 'paused' and outcome = 'sent'`); got != "31 31" {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// A pausedTarget is a target outside the database.
type pausedTarget struct {
	route       string // its kind and reference
	connections map[string]config.Connection
	arrived     func(n int) []int // the numbers of its events, once there are so many
}

// numberOf is the number in a payload.
func numberOf(t *testing.T, payload string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(payload, `{"n": %d}`, &n); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return n
}

func pausedWebhook(t *testing.T) pausedTarget {
	t.Helper()
	r := newReceiver(t)
	return pausedTarget{
		route: fmt.Sprintf(`{"target_kind": "webhook", "target_ref": %q, "options": {"secret": "app"}}`, r.URL),
		arrived: func(n int) (numbers []int) {
			t.Helper()
			eventually(t, "they arrive", func() bool { return r.count() >= n })
			for _, payload := range r.payloads(t) {
				numbers = append(numbers, numberOf(t, payload))
			}
			return numbers
		},
	}
}

func pausedKafka(t *testing.T) pausedTarget {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "ticks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	reader, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("ticks"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	var numbers []int
	return pausedTarget{
		route:       `{"target_kind": "kafka", "target_ref": "ticks", "options": {"format": "payload"}}`,
		connections: map[string]config.Connection{"main": {Kind: "kafka", Brokers: cluster.ListenAddrs()}},
		arrived: func(n int) []int {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			for len(numbers) < n {
				fetches := reader.PollFetches(ctx)
				if ctx.Err() != nil {
					t.Fatalf("%d records arrive, want %d", len(numbers), n)
				}
				for _, record := range fetches.Records() {
					numbers = append(numbers, numberOf(t, string(record.Value)))
				}
			}
			return numbers
		},
	}
}

func pausedNATS(t *testing.T) pausedTarget {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(3 * time.Minute) {
		t.Fatal("the server is not ready")
	}
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "TICKS", Subjects: []string{"ticks"}, Storage: jetstream.MemoryStorage})
	}
	if err != nil {
		t.Fatal(err)
	}
	heard, err := conn.SubscribeSync("ticks")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	return pausedTarget{
		route:       `{"target_kind": "nats", "target_ref": "ticks"}`,
		connections: map[string]config.Connection{"main": {Kind: "nats", URL: s.ClientURL()}},
		arrived: func(n int) []int {
			t.Helper()
			for len(numbers) < n {
				message, err := heard.NextMsg(3 * time.Minute)
				if err != nil {
					t.Fatalf("%d messages arrive, want %d: %v", len(numbers), n, err)
				}
				numbers = append(numbers, numberOf(t, payloadOf(t, string(message.Data))))
			}
			return numbers
		},
	}
}
