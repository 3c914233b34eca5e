package sink_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func paid() sink.Delivery {
	at := time.Date(2026, 1, 31, 13, 0, 0, 120000, time.FixedZone("", 3600))
	return sink.Delivery{
		Event: tidemark.Event{
			ID: "0199f3a2-7c1e-7d4a-9b1f-000000000042", Seq: 42, CreatedAt: at.Add(time.Second), OccurredAt: at,
			Domain: "shop", Type: "invoice.paid", Payload: json.RawMessage(`{"total": 12.50}`), Key: "customer-9",
			Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo, SubjectTable: "shop.invoice",
			SubjectRef: "7", IdempotencyKey: "i-7", Trace: traceparent, Actor: "clerk",
		},
		Route: "billing", Attempt: 1, Epoch: 3,
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	got, err := sink.Encode(sink.CloudEvents, paid())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"specversion":"1.0","id":"0199f3a2-7c1e-7d4a-9b1f-000000000042","source":"/tidemark/shop",` +
		`"type":"invoice.paid","subject":"shop.invoice/7","time":"2026-01-31T12:00:00.000120Z",` +
		`"partitionkey":"customer-9","sequence":"0000000000000000042","domain":"shop","lane":"immediate",` +
		`"severity":"info","actor":"clerk","subjecttable":"shop.invoice","subjectref":"7",` +
		`"traceparent":"` + traceparent + `","datacontenttype":"application/json","data":{"total": 12.50}}`
	if diff := cmp.Diff(want, string(got.Body)); diff != "" {
		t.Error(diff)
	}
	if got.ContentType != "application/cloudevents+json" {
		t.Errorf("content type %s", got.ContentType)
	}
	if diff := cmp.Diff([]sink.Header{{Name: "traceparent", Value: traceparent}}, got.Headers); diff != "" {
		t.Error(diff)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	got, err := sink.Encode(sink.JSON, paid())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"event_id":"0199f3a2-7c1e-7d4a-9b1f-000000000042","seq":42,"created_at":"2026-01-31T12:00:01.000120Z",` +
		`"occurred_at":"2026-01-31T12:00:00.000120Z","lane":"immediate","severity":"info","domain":"shop",` +
		`"type":"invoice.paid","stream":null,"key":"customer-9","subject_table":"shop.invoice","subject_ref":"7",` +
		`"idempotency_key":"i-7","trace":"` + traceparent + `","actor":"clerk","payload":{"total": 12.50}}`
	if diff := cmp.Diff(want, string(got.Body)); diff != "" {
		t.Error(diff)
	}
	if got.ContentType != "application/json" || len(got.Headers) != 1 || got.Headers[0].Value != traceparent {
		t.Errorf("got %s %v", got.ContentType, got.Headers)
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	if got, _ := parsed(t, sink.CloudEvents, sink.Delivery{Event: tidemark.Event{ID: "1", Domain: "d", Type: "t", Key: " \u00a0"}}); got["subject"] != "" {
		t.Errorf("got %q of blanks", got["subject"])
	}
	for want, event := range map[string]tidemark.Event{
		"shop.invoice/7": {SubjectTable: "shop.invoice", SubjectRef: "7", Key: "k"},
		"shop.invoice":   {SubjectTable: "shop.invoice", Key: "k"},
		"7":              {SubjectRef: "7", Key: "k"},
		"k":              {Key: "k"},
		" k":             {Key: " k"},
		"":               {},
	} {
		event.ID, event.Domain, event.Type = "1", "d", "t"
		got, _ := parsed(t, sink.CloudEvents, sink.Delivery{Event: event})
		if got["subject"] != want {
			t.Errorf("got %q, want %q", got["subject"], want)
		}
	}
}

// PostgreSQL allows years beyond 9999, RFC 3339 does not; and a time may be missing.
func TestTimes(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		`"occurred_at":"9999-12-31T23:59:59.999999Z"`:  time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		`"occurred_at":"10000-01-01T00:00:00.000000Z"`: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		`"occurred_at":"-0001-01-01T00:00:00.000000Z"`: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		`"occurred_at":null`:                           {},
	} {
		d := paid()
		d.Event.OccurredAt = at
		columns, err := sink.Encode(sink.JSON, d)
		if err != nil || !strings.Contains(string(columns.Body), want) {
			t.Errorf("got %s, %v, want %s", columns.Body, err, want)
		}
		attributes, _ := parsed(t, sink.CloudEvents, d)
		if (attributes["time"] != "") != strings.Contains(want, `"9999`) {
			t.Errorf("%s: attribute %q", at, attributes["time"])
		}
	}
}

// A signature and a receiver that compares bodies need the same bytes at each attempt.
func TestBodyIsTheSameAtEachAttempt(t *testing.T) {
	t.Parallel()
	for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary, sink.JSON} {
		first := paid()
		later := first
		later.Attempt, later.Epoch = 7, 9
		a, errA := sink.Encode(format, first)
		b, errB := sink.Encode(format, later)
		if errA != nil || errB != nil || cmp.Diff(a, b) != "" {
			t.Error(format, errA, errB, cmp.Diff(a, b))
		}
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	for trace, want := range map[string]bool{
		traceparent: true,
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00": true,
		"": false,
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":   false,
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g":   false,
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n": false,
	} {
		d := paid()
		d.Event.Trace = trace
		for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary, sink.JSON} {
			e, err := sink.Encode(format, d)
			if err != nil {
				t.Fatal(err)
			}
			got := false
			for _, h := range e.Headers {
				got = got || h.Name == "traceparent" && h.Value == trace
			}
			if got != want {
				t.Errorf("%s as %s: got %v", trace, format, got)
			}
		}
		if attributes, _ := parsed(t, sink.CloudEvents, d); (attributes["traceparent"] != "") != want {
			t.Errorf("%s: attribute %q", trace, attributes["traceparent"])
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*sink.Delivery) sink.Format{
		"event has no id":                 func(d *sink.Delivery) sink.Format { d.Event.ID = ""; return sink.JSON },
		"event has no domain or no type":  func(d *sink.Delivery) sink.Format { d.Event.Domain = ""; return sink.CloudEvents },
		`format is "xml", must be ` + all: func(*sink.Delivery) sink.Format { return "xml" },
	} {
		d := paid()
		if _, err := sink.Encode(change(&d), d); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

const all = "cloudevents, cloudevents-binary or json"

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sink.Format{
		"": sink.CloudEvents, "cloudevents": sink.CloudEvents, "cloudevents-binary": sink.CloudEventsBinary, "json": sink.JSON,
	} {
		if got, err := sink.ParseFormat(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := sink.ParseFormat("JSON"); err == nil || err.Error() != `format is "JSON", must be `+all {
		t.Errorf("got %v", err)
	}
}

// Append must not change the earlier contents of the buffer.
func TestAppend(t *testing.T) {
	t.Parallel()
	var buffer []byte
	var bodies []sink.Encoded
	for range 20 {
		d := paid()
		var e sink.Encoded
		var err error
		if buffer, e, err = sink.Append(buffer, sink.JSON, &d); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, e)
	}
	alone, _ := sink.Encode(sink.JSON, paid())
	for i, e := range bodies {
		if !bytes.Equal(e.Body, alone.Body) {
			t.Errorf("body %d is %s", i, e.Body)
		}
		if _ = append(e.Body, "x"...); !bytes.Equal(buffer, bytes.Repeat(alone.Body, len(bodies))) {
			t.Fatal("the buffer is not the bodies, or appending to one writes into the next")
		}
	}
}

// The CloudEvents project's reader returns the event that was encoded.
func TestCloudEventsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := deliveries().Draw(r, "delivery")
		want := expected(d)
		for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary} {
			if format == sink.CloudEventsBinary {
				want["subject"] = strings.TrimSpace(want["subject"]) // the reader trims it
			}
			got, data := parsed(r, format, d)
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("%s: %s", format, diff)
			}
			if !bytes.Equal(data, d.Event.Payload) {
				r.Fatalf("%s: payload %s, want %s", format, data, d.Event.Payload)
			}
		}
	})
}

func TestColumnsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := deliveries().Draw(r, "delivery")
		encoded, err := sink.Encode(sink.JSON, d)
		if err != nil {
			r.Fatal(err)
		}
		var got struct {
			EventID   string    `json:"event_id"`
			Seq       int64     `json:"seq"`
			CreatedAt time.Time `json:"created_at"`
			tidemark.Event
		}
		decoder := json.NewDecoder(bytes.NewReader(encoded.Body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			r.Fatal(err)
		}
		got.Event.ID, got.Event.Seq, got.Event.CreatedAt = got.EventID, got.Seq, got.CreatedAt
		if diff := cmp.Diff(d.Event, got.Event); diff != "" {
			r.Fatal(diff)
		}
	})
}

// FuzzText checks that any text, even one that PostgreSQL would not store, becomes the same
// JSON that encoding/json makes, and an attribute without forbidden characters.
func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("quote \" back \\ tab \t newline \n nul \x00 del \x7f")
	f.Add("ü 😀 \u2028 \u0085 \ufdd0 \U0001ffff \ufffd")
	f.Add("half \xff\xc3( \xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		d := paid()
		d.Event.Key = s
		encoded, err := sink.Encode(sink.JSON, d)
		if err != nil {
			t.Fatal(err)
		}
		var got, want struct {
			Key string `json:"key"`
		}
		if err := json.Unmarshal(encoded.Body, &got); err != nil {
			t.Fatal(err)
		}
		want.Key = s
		document, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(document, &want); err != nil || got != want {
			t.Errorf("%q: got %q, want %q %v", s, got.Key, want.Key, err)
		}
		attributes, _ := parsed(t, sink.CloudEvents, d)
		if attributes["partitionkey"] != disallowed.ReplaceAllString(want.Key, "\ufffd") {
			t.Errorf("%q: attribute %q", s, attributes["partitionkey"])
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary, sink.JSON} {
		b.Run(string(format), func(b *testing.B) {
			d := paid()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sink.Encode(format, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// This test is not parallel: it counts the allocations of the whole process.
func TestEncodeAllocatesLittle(t *testing.T) {
	for format, limit := range map[sink.Format]float64{sink.CloudEvents: 3, sink.CloudEventsBinary: 3, sink.JSON: 2} {
		d := paid()
		if got := testing.AllocsPerRun(100, func() { _, _ = sink.Encode(format, d) }); got > limit {
			t.Errorf("%s: %v allocations, more than %v", format, got, limit)
		}
	}
}
