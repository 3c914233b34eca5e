package daemon_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A record that is as large as brokers take has a dead letter in Kafka: what does not fit is left out, and headers say so. The
// tables have all of it.
func TestLargeDeadLetters(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	topic := "db-dlq." + s.name
	if _, err := kadm.NewClient(s.client).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	execSQL(t, s.db, `select tidemark.route_set('dlq', jsonb_build_object('domain', 'commands', 'type', 'dead_letter.' || $1::text, 'target_kind', 'kafka', 'target_ref', $2::text,
		'options', jsonb_build_object('format', 'raw', 'connection', 'main'), 'ordering', 'key', 'enabled', true, 'dry_run', false))`, s.name, topic)
	execSQL(t, s.db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	s.open()
	noise := func(n int) []byte { // which no compression makes smaller
		b := make([]byte, n)
		_, _ = rand.Read(b)
		return b
	}
	large, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...), kgo.ProducerBatchMaxBytes(1_048_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	value, key, mine := noise(1_040_000), noise(990_000), noise(1_040_000)
	sent := []*kgo.Record{
		{Key: []byte("fits"), Value: value[:970_000], Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("1")}}},
		{Key: []byte("value"), Value: value, Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("1")}, {Key: "x-dlq-value-bytes", Value: []byte("forged")}}},
		{Key: []byte("headers"), Value: []byte("no JSON"), Headers: []kgo.RecordHeader{{Key: "mine", Value: mine}}},
		{Key: key, Value: []byte("no JSON"), Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("1")}}},
	}
	for _, r := range sent {
		r.Topic = "db-events." + s.name
		if err := large.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	p := run(t, s.config)
	reader, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]*kgo.Record{} // by the offset of the record
	header := func(r *kgo.Record, name string) (value string, n int) {
		for _, h := range r.Headers {
			if h.Key == name {
				value, n = string(h.Value), n+1
			}
		}
		return value, n
	}
	for len(got) < len(sent) {
		fetches := reader.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d letters arrive", len(got), len(sent))
		}
		for _, r := range fetches.Records() {
			offset, _ := header(r, "x-dlq-offset")
			got[offset] = r
		}
	}
	for n, want := range []struct {
		key, value string
		headers    map[string]string
	}{
		{"fits", string(value[:970_000]), map[string]string{"trace": "1", "x-dlq-reason": "envelope.invalid", "x-dlq-value-bytes": ""}},
		{"value", "", map[string]string{"trace": "1", "x-dlq-reason": "envelope.invalid", "x-dlq-value-bytes": "1040000", "x-dlq-value-sha256": fmt.Sprintf("%x", sha256.Sum256(value))}},
		{"headers", "no JSON", map[string]string{"x-dlq-value-bytes": "", "x-dlq-headers-left-out": "1", "x-dlq-reason": "envelope.invalid", "mine": ""}},
		{"", "no JSON", map[string]string{"trace": "1", "x-dlq-key-bytes": "990000", "x-dlq-value-bytes": "", "x-dlq-reason": "envelope.invalid"}},
	} {
		r := got[fmt.Sprint(n)]
		if string(r.Key) != want.key || string(r.Value) != want.value || r.Value == nil {
			t.Errorf("letter %d has a key of %d bytes and a value of %d", n, len(r.Key), len(r.Value))
		}
		for name, value := range want.headers {
			if has, times := header(r, name); has != value || times > 1 {
				t.Errorf("letter %d: %s is %q, %d times, want %q", n, name, has, times, value)
			}
		}
	}
	var whole int
	if err := s.db.Pool.QueryRow(t.Context(), `select count(*) from tidemark.command_record where length(value) = $1 or length(key) = $2`, len(value), len(key)).Scan(&whole); err != nil || whole != 2 {
		t.Errorf("%d whole records: %v", whole, err)
	}
	p.stop()
}
