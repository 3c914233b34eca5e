package consumer

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Whatever bytes a record has: what is kept of it beside them fits an event, and PostgreSQL.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(""), []byte(`{"event_id": "00000000-0000-7000-8000-000000000001", "idempotency_key": "k", "trace_id": "-`+strings.Repeat(`\u0000`, 400)+`"}`), "", []byte(""), "billing")
	f.Add([]byte("\x00"), []byte(`{"idempotency_key": "`+strings.Repeat(`\ud800`, 400)+`", "command": "`+strings.Repeat("x", 2000)+`"}`), "traceparent", []byte("00-\xff"), "")
	f.Add([]byte("key"), []byte("\xff{"), "ce_specversion", []byte("1.0"), "billing")
	trace := regexp.MustCompile(`^([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|[0-9a-f]{32})?$`)
	f.Fuzz(func(t *testing.T, key, value []byte, name string, header []byte, service string) {
		r := &kgo.Record{Key: key, Value: value, Headers: []kgo.RecordHeader{{Key: name, Value: header}}}
		got, _ := reader{service: service}.read(r, value, "", policy{CommandPolicy: store.CommandPolicy{SharedTopic: "claimed"}})
		texts := []json.RawMessage{got.JSON}
		if got.Bare != nil {
			texts = append(texts, got.Bare())
		}
		for _, text := range texts {
			var c call
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			for what, s := range map[string]struct {
				text string
				most int // characters
			}{
				"idempotency key": {c.Key, command.MaxKey}, "command": {c.Command, command.MaxCommand}, "ordering key": {c.Lane, mostLane}, "message": {c.Refused.message(), 4 << 10},
				"header": {*c.Raw.Headers[0][0], 1 << 20},
			} {
				if !utf8.ValidString(s.text) || strings.Contains(s.text, "\x00") || utf8.RuneCountInString(s.text) > s.most {
					t.Errorf("%s: %q", what, s.text)
				}
			}
			if !trace.MatchString(c.TraceID) || !trace.MatchString(c.Trace) || c.EventID != command.EventID(c.EventID) {
				t.Errorf("event id %q, trace %q, of the header %q", c.EventID, c.TraceID, c.Trace)
			}
		}
	})
}

func (r *refused) message() string {
	if r == nil {
		return ""
	}
	return r.Message
}
