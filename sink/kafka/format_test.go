package kafka_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// sent delivers d in the format and returns the record that the broker stored, or the result if it is another.
func sent(t *testing.T, format sink.Format, d sink.Delivery) (*kgo.Record, sink.Result) {
	t.Helper()
	cluster := broker(t, 1)
	s, err := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()}).Sink(topic, format)
	if err != nil {
		t.Fatal(err)
	}
	result := s.Deliver(t.Context(), []sink.Delivery{d})[0]
	if result.Status != sink.Delivered {
		return nil, result
	}
	return stored(t, cluster.ListenAddrs())[0], result
}

// CM5: a result travels as the document alone.
func TestPayload(t *testing.T) {
	t.Parallel()
	d := delivery(1, "k", 10)
	d.Event.Trace = traceparent
	r, result := sent(t, kafka.Payload, d)
	if r == nil {
		t.Fatal(result)
	}
	if string(r.Value) != string(d.Event.Payload) || string(r.Key) != "k" {
		t.Errorf("key %q, value %s", r.Key, r.Value)
	}
	want := map[string]string{
		"content-type": "application/json", "traceparent": traceparent,
		"tidemark-event-id": id(1), "tidemark-route": "r", "tidemark-epoch": "7", "tidemark-attempt": "1",
	}
	got := map[string]string{}
	for _, h := range r.Headers {
		got[h.Key] += string(h.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// CM6: a dead letter goes back to Kafka byte for byte, also what JSON cannot hold: NUL, invalid UTF-8, doubled headers.
func TestRaw(t *testing.T) {
	t.Parallel()
	type header struct {
		Name  string `json:"name"`
		Value []byte `json:"value"`
	}
	type record struct {
		Key     []byte   `json:"key"`
		Value   []byte   `json:"value"`
		Headers []header `json:"headers,omitempty"`
	}
	for name, want := range map[string]record{
		"bytes": {
			Key: []byte("k\x00\xff"), Value: []byte("{\"a\":1,\"a\":2}\x00\xfe"),
			Headers: []header{{"x-dlq-reason", []byte("sql.data")}, {"twice", []byte("1")}, {"twice", []byte("\xff")}, {"", []byte{}}},
		},
		"no key":    {Value: []byte("v")},
		"tombstone": {Key: []byte("k")},
		"empty":     {Key: []byte{}, Value: []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := delivery(1, "another", 10)
			var err error
			if d.Event.Payload, err = json.Marshal(want); err != nil {
				t.Fatal(err)
			}
			r, result := sent(t, kafka.Raw, d)
			if r == nil {
				t.Fatal(result)
			}
			got := record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				got.Headers = append(got.Headers, header{h.Key, h.Value})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRawRefuses(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"value": "?"}`:                   "does not name a record's key, value and headers: illegal base64",
		`{"valeu": "eA=="}`:                `unknown field "valeu"`,
		`[]`:                               "does not name a record",
		`{"headers": [{"value": "eA=="}]}`: "has a header without a name",
		`{"headers": [{"name": "a", "valu": null}]}`: `unknown field "valu"`,
	} {
		d := delivery(1, "k", 10)
		d.Event.Payload = []byte(payload)
		r, result := sent(t, kafka.Raw, d)
		if r != nil || result.Status != sink.Permanent || result.Code != kafka.InvalidEvent || !strings.Contains(result.Detail, want) {
			t.Errorf("%s: record %v, %+v", payload, r, result)
		}
	}
}

// The payload of a test delivery names no record.
func TestRawTestDelivery(t *testing.T) {
	t.Parallel()
	d := delivery(1, "k", 10)
	d.Test = true
	r, result := sent(t, kafka.Raw, d)
	if r == nil {
		t.Fatal(result)
	}
	if string(r.Value) != string(d.Event.Payload) || header(r, "tidemark-test") != "true" {
		t.Errorf("value %s, headers %v", r.Value, r.Headers)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	c := dial(t, kafka.Options{Brokers: []string{"127.0.0.1:1"}})
	for _, format := range []sink.Format{"", sink.CloudEvents, sink.CloudEventsBinary, sink.JSON, kafka.Payload, kafka.Raw} {
		if _, err := c.Sink(topic, format); err != nil {
			t.Errorf("%q: %v", format, err)
		}
	}
	const want = `format is "RAW", must be cloudevents, cloudevents-binary, json, payload or raw`
	if _, err := c.Sink(topic, "RAW"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func FuzzRaw(f *testing.F) {
	for _, seed := range []string{`{"key": "eA==", "value": null, "headers": [{"name": "a", "value": "/w=="}]}`, `{}`, `[]`, `null`, `{"key": "?"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := kafka.RawRecord(payload)
		if err != nil {
			return
		}
		again, err := json.Marshal(map[string]any{"key": r.Key, "value": r.Value})
		if err != nil {
			t.Fatal(err)
		}
		same, err := kafka.RawRecord(again)
		if err != nil || cmp.Diff([][]byte{r.Key, r.Value}, [][]byte{same.Key, same.Value}) != "" {
			t.Errorf("%q became %v, %v", payload, same, err)
		}
	})
}
