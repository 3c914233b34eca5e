package daemon_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// CM6, CM7: the brokers go away while results wait. Commands from elsewhere take effect meanwhile. When the brokers are back, each result is
// delivered once, and the commands that come then have theirs.
func TestCommandsWhileResultsWait(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	data := t.TempDir()
	start := func() *kfake.Cluster {
		t.Helper()
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(data), kfake.SeedTopics(1, "db-events."+s.name, "results"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		return cluster
	}
	brokers := start()
	s.config.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: []string{address}}}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(address)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	execSQL(t, s.db, `select tidemark.route_set('results', '{"target_kind": "kafka", "target_ref": "results", "options": {"connection": "main", "format": "payload"}}')`)
	execSQL(t, s.db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	run(t, s.config)
	s.open()
	effects := func(want int) {
		t.Helper()
		s.eventually("effects", `select count(*)::text from app.effect`, strconv.Itoa(want))
	}
	admin := kadm.NewClient(s.client)
	delivered := func(want int64) {
		t.Helper()
		eventually(t, "results in Kafka", func() bool {
			ends, _ := admin.ListEndOffsets(t.Context(), "results")
			end, _ := ends.Lookup("results", 0)
			if end.Offset > want {
				t.Fatalf("%d results are in Kafka", end.Offset)
			}
			return end.Offset == want
		})
	}
	s.send("a", "make", `{"id": 1}`)
	delivered(1)
	brokers.Close()
	for n := 2; n <= 21; n++ {
		execSQL(t, s.db, `select tidemark.command_run(jsonb_build_object('event_id', gen_random_uuid(), 'service', $1::text, 'command', 'make', 'command_version', 1, 'schema_version', 1, 'payload', jsonb_build_object('id', $2::int),
			'idempotency_key', 'key-' || $2::int, 'occurred_at', '2026-01-31T12:00:00Z', 'trace_id', repeat('1', 32), 'metadata', '{"producer": "shop"}'::jsonb))`, s.name, n)
	}
	effects(21)
	s.eventually("it is known that they wait", `select count(*)::text from tidemark.finding where kind = 'target_down' and closed_at is null`, "1")
	start()
	s.send("b", "make", `{"id": 22}`)
	effects(22)
	delivered(22)
	s.eventually("nothing waits", `select count(*)::text from tidemark.pending`, "0")
	delivered(22)
	reader, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("results"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	var keys []string
	for len(keys) < 22 {
		fetched := reader.PollFetches(t.Context())
		if err := fetched.Err0(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetched.Records() {
			keys = append(keys, string(r.Key))
		}
	}
	want := []string{"a", "b"}
	for n := 2; n <= 21; n++ {
		want = append(want, fmt.Sprint("key-", n))
	}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Error(keys)
	}
}
