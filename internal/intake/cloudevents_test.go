package intake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/intake"
)

const cloudEvent = `{
  "specversion": "1.0", "id": "A234", "source": "/billing", "type": "invoice.paid", "subject": "7",
  "time": "2026-01-31T12:00:00Z", "datacontenttype": "application/json; charset=utf-8",
  "partitionkey": "customer-9", "tidemarkdomain": "shop",
  "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "data": {"total": 12.50}
}`

func TestCloudEvent(t *testing.T) {
	t.Parallel()
	got, err := intake.CloudEvents{Domain: "other"}.Parse([]byte(cloudEvent))
	if err != nil {
		t.Fatal(err)
	}
	want := tidemark.Event{
		Domain: "shop", Type: "invoice.paid", Payload: json.RawMessage(`{"total": 12.50}`), Key: "customer-9",
		SubjectRef: "7", IdempotencyKey: "/billing A234", Actor: "/billing",
		Trace:      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		OccurredAt: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Events of two sources with the same id are two events.
func TestCloudEventsOfTwoSourcesAreTwo(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, names := range [][2]string{{"/a", "1"}, {"/b", "1"}, {"/a", "2"}, {"/a/1", "2"}} {
		event, err := intake.CloudEvents{Domain: "d"}.Parse([]byte(
			`{"specversion":"1.0","id":"` + names[1] + `","source":"` + names[0] + `","type":"t"}`))
		if err != nil {
			t.Fatal(err)
		}
		keys[event.IdempotencyKey] = true
	}
	if len(keys) != 4 {
		t.Errorf("got %v", keys)
	}
}

func TestCloudEventRefuses(t *testing.T) {
	t.Parallel()
	with := func(more string) string {
		return `{"specversion":"1.0","id":"1","source":"/s","type":"t","tidemarkdomain":"d"` + more + `}`
	}
	for name, test := range map[string]struct{ text, want string }{
		"no id":              {`{"specversion":"1.0","source":"/s","type":"t"}`, `id is missing`},
		"no version":         {`{"id":"1","source":"/s","type":"t"}`, `specversion is missing`},
		"null source":        {`{"specversion":"1.0","id":"1","source":null,"type":"t"}`, `source is missing`},
		"empty id":           {`{"specversion":"1.0","id":"","source":"/s","type":"t","tidemarkdomain":"d"}`, `id is empty; leave it out`},
		"version 0.3":        {`{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, `specversion is "0.3", must be 1.0`},
		"no domain":          {`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, `has no domain: the attribute tidemarkdomain is missing, and no default domain is set`},
		"source with blanks": {`{"specversion":"1.0","id":"1","source":"a b","type":"t","tidemarkdomain":"d"}`, `source is "a b", must be a URI reference`},
		"binary data":        {with(`,"data_base64":"AAEC"`), `data_base64: binary data cannot be a payload, which is a JSON object`},
		"text data":          {with(`,"datacontenttype":"text/plain","data":"hi"`), `datacontenttype is "text/plain", must be application/json`},
		"data a string":      {with(`,"data":"hi"`), `data is a string, must be an object`},
		"extension":          {with(`,"knativeerrordest":"x"`), `attribute "knativeerrordest" has no place in an event and would be lost`},
		"dataschema":         {with(`,"dataschema":"https://example.com/s"`), `attribute "dataschema" has no place in an event and would be lost`},
		"bad attribute":      {with(`,"Data":{}`), `has the attribute "Data"; names of attributes must consist of a-z and 0-9`},
		"time":               {with(`,"time":"soon"`), `time is "soon", must be a time such as 2026-01-31T12:00:00Z (RFC 3339)`},
		"duplicate":          {with(`,"id":"2"`), `has the key "id" twice`},
		"batch":              {`[` + with(``) + `]`, `is an array, must be an object`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := intake.CloudEvents{}.Parse([]byte(test.text))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestCloudEventIgnoresAttributes(t *testing.T) {
	t.Parallel()
	text := []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","tracestate":"a=b","myext":7}`)
	if _, err := (intake.CloudEvents{Domain: "d"}).Parse(text); !errors.Is(err, intake.ErrAttribute) {
		t.Errorf("got %v", err)
	}
	event, err := intake.CloudEvents{Domain: "d", IgnoreAttributes: true}.Parse(text)
	if err != nil || event.Type != "t" {
		t.Error(event, err)
	}
}

func TestCloudEventsOnOneLineOrMany(t *testing.T) {
	t.Parallel()
	line := strings.ReplaceAll(cloudEvent, "\n", " ")
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"one event on many lines":  {"\n" + cloudEvent + "\n", []string{"2 invoice.paid"}},
		"one event on one line":    {line, []string{"1 invoice.paid"}},
		"events, one a line":       {line + "\n" + line + "\n", []string{"1 invoice.paid", "2 invoice.paid"}},
		"two events on many lines": {cloudEvent + cloudEvent, nil},
		"the first line is broken": {"{\n" + line + "\n" + line, []string{"line 1: is not JSON: unexpected end of JSON input (at byte 1)", "2 invoice.paid", "3 invoice.paid"}},
		"larger than a line may be": {
			"{\n" + strings.Repeat(" ", 1<<20+1) + cloudEvent[1:],
			[]string{"line 1: is not JSON: unexpected end of JSON input (at byte 1)", "line 2: is longer than 1048576 bytes"},
		},
	} {
		got := readAll(t, intake.NewCloudEvents(strings.NewReader(test.text), intake.CloudEvents{}))
		if test.want == nil {
			if len(got) < 2 || strings.Contains(strings.Join(got, " "), "paid") {
				t.Errorf("%s: got %q", name, got)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got[:min(len(got), len(test.want))]); diff != "" {
			t.Error(name, diff)
		}
	}
}

func FuzzCloudEvents(f *testing.F) {
	f.Add([]byte(cloudEvent), false)
	f.Add([]byte(strings.ReplaceAll(cloudEvent, "\n", " ")+"\n{\n"), true)
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"application/x+json","x":1}`), true)
	f.Add([]byte("{\n}\n{"), false)
	f.Fuzz(func(t *testing.T, input []byte, ignore bool) {
		checkReader(t, input, intake.NewCloudEvents(bytes.NewReader(input), intake.CloudEvents{Domain: "d", IgnoreAttributes: ignore}))
	})
}
