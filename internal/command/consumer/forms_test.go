package consumer_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// binary is a command as a CloudEvent in binary form.
func (w *world) binary(key string, id int, changes ...kgo.RecordHeader) *kgo.Record {
	w.t.Helper()
	w.n++
	r := &kgo.Record{Value: fmt.Appendf(nil, `{"id": %d}`, id), Headers: []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")},
		{Key: "ce_id", Value: fmt.Appendf(nil, "00000000-0000-7000-8000-%012d", w.n)},
		{Key: "ce_type", Value: []byte(w.service + ".make")},
		{Key: "ce_source", Value: []byte("shop")},
		{Key: "ce_commandversion", Value: []byte("1")},
		{Key: "ce_schemaversion", Value: []byte("1")},
		{Key: "ce_idempotencykey", Value: []byte(key)},
		{Key: "ce_time", Value: []byte("2026-01-31T12:00:00Z")},
		{Key: "traceparent", Value: []byte(parent)},
		{Key: "content-type", Value: []byte("application/json")},
	}}
	for _, c := range changes {
		for i := range r.Headers {
			if r.Headers[i].Key == c.Key {
				r.Headers[i].Value = c.Value
			}
		}
	}
	return r
}

// CM1: a CloudEvent in binary form is a command where no signature is required. A forger who swaps its type reaches no other service, and
// where records are signed its headers count for nothing.
func TestConsumerTakesBinaryEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	private := w.addKey("k1")
	signed := w.sign(w.binary("b", 2), "test", "k1", private)
	signed.Headers = append(signed.Headers, w.binary("b", 2).Headers...)
	envelope := w.sign(w.make("c", 3), "test", "k1", private)
	envelope.Headers = append(envelope.Headers, kgo.RecordHeader{Key: "ce_specversion", Value: []byte("1.0")}, kgo.RecordHeader{Key: "ce_type", Value: []byte("other.make")})
	w.send(0, w.binary("a", 1), w.binary("f", 9, kgo.RecordHeader{Key: "ce_type", Value: []byte("other.make")}), signed, envelope)
	w.run()
	w.eventually(`select id::text from app.effect order by id`, "1", "3")
	w.eventually(`select error_code || ' ' || error_detail from tidemark.dead_letter order by 1`,
		"envelope.invalid a CloudEvent in binary form is not taken where records are signed, since no signature covers its headers: send it in structured form",
		"identity.topic_mismatch service is not the service of the topic: send to the topic of the service")
	// The trace of a record goes on with its result; its trace_id is the producer's.
	w.eventually(`select (payload ->> 'trace_id') || ' ' || coalesce(trace, 'none') from tidemark.outbox where type like 'result.%' order by payload ->> 'idempotency_key'`,
		parent+" "+parent, "0123456789abcdef0123456789abcdef none")
	w.eventually(`select trace from tidemark.command_claim order by idempotency_key`, parent, "0123456789abcdef0123456789abcdef")
}

// S3: the trace of the record's header goes on with its claim and its result, a parked command keeps it, and a header that is none counts for nothing.
func TestConsumerGoesOnWithTheTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	traced := func(r *kgo.Record, parent string) *kgo.Record {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "traceparent", Value: []byte(parent)})
		return r
	}
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": false}')`, w.service)
	w.send(0, traced(w.make("a", 1), parent))
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 1")
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": true}')`, w.service)
	w.send(0, traced(w.make("b", 2), "00-"+strings.Repeat("x", 32)+"-b7ad6b7169203331-01"), w.make("c", 3))
	w.eventually(`select concat_ws(' ', payload ->> 'idempotency_key', payload ->> 'status', trace) from tidemark.outbox where type like 'result.%' order by 1`,
		"a failed_retryable "+parent, "a processed "+parent, "b processed", "c processed")
	w.eventually(`select idempotency_key || ' ' || trace from tidemark.command_claim order by 1`, "a "+parent, "b 0123456789abcdef0123456789abcdef", "c 0123456789abcdef0123456789abcdef")
}

// Records with the frame of a schema registry's serializer are commands if the registry is named, and knows their schema as one of JSON. While
// it does not answer they wait, and others of the partition behind them.
func TestConsumerWithARegistry(t *testing.T) {
	t.Parallel()
	fake := srfake.New(srfake.WithAuth("Basic " + base64.StdEncoding.EncodeToString([]byte("tidemark:secret"))))
	t.Cleanup(fake.Close)
	admin, err := sr.NewClient(sr.URLs(fake.URL()), sr.BasicAuth("tidemark", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	register := func(subject string, schema sr.Schema) int {
		t.Helper()
		registered, err := admin.CreateSchema(t.Context(), subject, schema)
		if err != nil {
			t.Fatal(err)
		}
		return registered.ID
	}
	json := register("commands-value", sr.Schema{Schema: `{"type": "object"}`, Type: sr.TypeJSON})
	avro := register("other-value", sr.Schema{Schema: `{"type": "string"}`, Type: sr.TypeAvro})
	w := newWorld(t, 1)
	framed := func(id int, r *kgo.Record) *kgo.Record {
		r.Value = append([]byte{0, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}, r.Value...)
		return r
	}
	w.send(0, w.make("a", 1), framed(json, w.make("b", 2)), framed(avro, &kgo.Record{Value: []byte{2, 'x'}}), framed(999, w.make("d", 4)), framed(json, w.make("e", 5)), w.make("f", 6))

	for want, wrong := range map[string][]sr.ClientOpt{
		"HTTP status 403: ":                   {sr.URLs(fake.URL()), sr.BasicAuth("tidemark", "wrong")},
		"HTTP status 404: 404 page not found": {sr.URLs(fake.URL() + "/elsewhere"), sr.BasicAuth("tidemark", "secret")},
	} {
		client, err := sr.NewClient(wrong...)
		if err != nil {
			t.Fatal(err)
		}
		stop, _ := w.runWith(func(o *consumer.Options) { o.Registry = client })
		w.wantTrouble("commands.registry does not answer: " + want)
		w.eventually(made, "1")
		stop()
	}
	w.runWith(func(o *consumer.Options) { o.Registry = admin })
	w.eventually(made, "1", "2", "5", "6")
	w.eventually(offsets, "kafka:"+w.topic+"/0 6")
	w.wantNoTrouble()
	w.eventually(`select encode(r.value, 'hex') || ' ' || l.error_detail from tidemark.dead_letter l join tidemark.command_record r on l.idempotency_key = 'tm:commands:' || r.id`,
		"00000000020278 the record is written as AVRO (schema 2), must be JSON: use the serializer for JSON Schema")
	w.eventually(`select payload ->> 'error_message' from tidemark.outbox where payload ->> 'status' = 'rejected'`, "the record names schema 999, which the registry does not have")
}

// A partition asks for the schemas of all records that were fetched before it waits for one that the registry may not have.
func TestConsumerAsksForAllSchemas(t *testing.T) {
	t.Parallel()
	const many = 30
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		asked = append(asked, q.URL.Path)
		mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error_code": 40403, "message": "Schema not found"}`)
	}))
	t.Cleanup(server.Close)
	client, err := sr.NewClient(sr.URLs(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 1)
	var records []*kgo.Record
	for id := range many {
		records = append(records, &kgo.Record{Value: append([]byte{0, 0, 0, 0, byte(id)}, w.envelope("k", `{"id": 1}`, nil)...)})
	}
	w.send(0, records...)
	w.runWith(func(o *consumer.Options) { o.Registry = client })
	w.eventually(offsets, fmt.Sprintf("kafka:%s/0 %d", w.topic, many))
	mu.Lock()
	defer mu.Unlock()
	first := map[string]bool{}
	for _, path := range asked[:many] {
		first[path] = true
	}
	if len(first) != many {
		t.Errorf("the first %d requests are for %d schemas: %q", many, len(first), asked)
	}
}

// KIP-848: the brokers assign the partitions, and what a member does is the same: order, one effect, a partition of a member that was cut off.
func TestConsumerServerSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	serverSide := func(o *consumer.Options) { o.ServerSide = true }
	const each = 8
	_, kill := w.runWith(serverSide)
	w.sendKeyed(each, 0, 3)
	until(t, "a member whose partitions the brokers assign", func() bool {
		groups, err := kadm.NewClient(w.client).DescribeConsumerGroups(t.Context(), "tidemark")
		return err == nil && len(groups["tidemark"].Members) == 1
	})
	stop, _ := w.runWith(serverSide)
	w.sendKeyed(each, 3, 5)
	kill()
	w.sendKeyed(each, 5, 7)
	w.runWith(serverSide)
	stop()
	w.sendKeyed(each, 7, each)
	w.once(each)
}
