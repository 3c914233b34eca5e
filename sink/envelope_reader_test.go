package sink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/types"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

// parsed returns the attributes and the data that the CloudEvents project's reader finds.
func parsed(t rapid.TB, as sink.Format, d sink.Delivery) (map[string]string, []byte) {
	t.Helper()
	encoded, err := sink.Encode(as, d)
	if err != nil {
		t.Fatal(err)
	}
	event, err := binding.ToEvent(context.Background(), message{Encoded: encoded})
	if err != nil {
		t.Fatalf("%s: %v", encoded.Body, err)
	}
	if err := event.Validate(); err != nil {
		t.Fatalf("%s: %v", encoded.Body, err)
	}
	if event.DataContentType() != "application/json" {
		t.Errorf("datacontenttype is %s", event.DataContentType())
	}
	got := map[string]string{
		"specversion": event.SpecVersion(), "id": event.ID(), "source": event.Source(), "type": event.Type(),
		"subject": event.Subject(), "time": "",
	}
	if !event.Time().IsZero() {
		got["time"] = event.Time().Format(time.RFC3339Nano)
	}
	for name, value := range event.Extensions() {
		if got[name], err = types.Format(value); err != nil {
			t.Fatal(err)
		}
		if _, flag := value.(bool); flag != (as == sink.CloudEvents && name == "replay") {
			t.Errorf("%s is a %T", name, value)
		}
	}
	return got, event.Data()
}

// message passes an encoded event to the CloudEvents project's reader, as one of their
// protocol bindings does.
type message struct {
	sink.Encoded
	binding.MessageMetadataReader // the interface requires it; the reader does not call it
}

func (m message) ReadEncoding() binding.Encoding {
	if format.Lookup(m.ContentType) != nil {
		return binding.EncodingStructured
	}
	return binding.EncodingBinary
}

func (m message) ReadStructured(ctx context.Context, w binding.StructuredWriter) error {
	if m.ReadEncoding() != binding.EncodingStructured {
		return binding.ErrNotStructured
	}
	return w.SetStructuredEvent(ctx, format.JSON, bytes.NewReader(m.Body))
}

func (m message) ReadBinary(_ context.Context, w binding.BinaryWriter) error {
	if err := w.SetAttribute(spec.V1.AttributeFromKind(spec.DataContentType), m.ContentType); err != nil {
		return err
	}
	for _, h := range m.Headers {
		var err error
		if attribute := spec.V1.Attribute(h.Name); attribute != nil {
			err = w.SetAttribute(attribute, h.Value)
		} else {
			err = w.SetExtension(h.Name, h.Value)
		}
		if err != nil {
			return err
		}
	}
	return w.SetData(bytes.NewReader(m.Body))
}

func (message) Finish(error) error { return nil }

// disallowed matches the characters that section 3.1 of CloudEvents 1.0 forbids.
var disallowed = regexp.MustCompile(`[\x00-\x1f\x{7f}-\x{9f}\x{fdd0}-\x{fdef}\x{fffe}\x{ffff}\x{1fffe}\x{1ffff}\x{2fffe}\x{2ffff}` +
	`\x{3fffe}\x{3ffff}\x{4fffe}\x{4ffff}\x{5fffe}\x{5ffff}\x{6fffe}\x{6ffff}\x{7fffe}\x{7ffff}\x{8fffe}\x{8ffff}\x{9fffe}\x{9ffff}` +
	`\x{afffe}\x{affff}\x{bfffe}\x{bffff}\x{cfffe}\x{cffff}\x{dfffe}\x{dffff}\x{efffe}\x{effff}\x{ffffe}\x{fffff}\x{10fffe}\x{10ffff}]`)

func expected(d sink.Delivery) map[string]string {
	e := d.Event
	text := func(s string) string { return disallowed.ReplaceAllString(s, "\ufffd") }
	want := map[string]string{
		"specversion": "1.0", "id": text(e.ID), "source": (&url.URL{Path: "/tidemark/" + e.Domain}).String(),
		"type": text(e.Type), "subject": text(e.Key), "time": e.OccurredAt.Format(time.RFC3339Nano),
		"partitionkey": text(e.Key), "sequence": fmt.Sprintf("%019d", e.Seq), "domain": text(e.Domain),
		"stream": text(e.Stream), "lane": string(e.Lane), "severity": string(e.Severity), "actor": text(e.Actor),
		"subjecttable": text(e.SubjectTable), "subjectref": text(e.SubjectRef), "traceparent": e.Trace,
	}
	switch {
	case e.SubjectTable != "" && e.SubjectRef != "":
		want["subject"] = text(e.SubjectTable + "/" + e.SubjectRef)
	case e.SubjectTable+e.SubjectRef != "":
		want["subject"] = text(e.SubjectTable + e.SubjectRef)
	}
	if strings.TrimSpace(want["subject"]) == "" {
		want["subject"] = ""
	}
	if d.Replay {
		want["replay"] = "true"
	}
	for name, value := range want {
		if value == "" && name != "subject" && name != "time" {
			delete(want, name)
		}
	}
	return want
}

func deliveries() *rapid.Generator[sink.Delivery] {
	return rapid.Custom(func(t *rapid.T) sink.Delivery {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z"\\/<>&\t\n]{0,9}`))
		name := rapid.StringMatching(`[^\s*\p{Z}]{1,20}`) // as the registry allows
		instant := func(name string) time.Time {
			return time.UnixMicro(rapid.Int64Range(-62135596800e6+1, 253402300799e6).Draw(t, name)).UTC()
		}
		return sink.Delivery{
			Event: tidemark.Event{
				ID: rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(t, "id"), Seq: rapid.Int64Min(1).Draw(t, "seq"),
				CreatedAt: instant("created"), OccurredAt: instant("occurred"),
				Domain: rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}`).Draw(t, "domain"), Type: name.Draw(t, "type"),
				Payload: json.RawMessage(rapid.SampledFrom([]string{
					`{}`, `{"a": 1.0, "b": 1e400}`, `{"n": 123456789012345678901234567890}`, `{"é": "<\u0001>"}`,
				}).Draw(t, "payload")),
				Key: text.Draw(t, "key"), Stream: text.Draw(t, "stream"), Lane: tidemark.LaneBatch, Severity: tidemark.SeverityHigh,
				SubjectTable: text.Draw(t, "table"), SubjectRef: text.Draw(t, "ref"), IdempotencyKey: text.Draw(t, "once"),
				Trace: rapid.SampledFrom([]string{"", traceparent}).Draw(t, "trace"), Actor: text.Draw(t, "actor"),
			},
			Replay: rapid.Bool().Draw(t, "replay"), Attempt: 1,
		}
	})
}
