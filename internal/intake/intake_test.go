package intake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/intake"
)

const full = `{"domain":"shop","type":"order.paid","payload":{"id":7},"key":"7","stream":"s","lane":"batch",
	"severity":"high","subject_table":"public.orders","subject_ref":"7","idempotency_key":"paid-7",
	"trace":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","actor":"ann","occurred_at":"2026-01-31T12:00:00.5+01:00"}`

func TestParseEvent(t *testing.T) {
	t.Parallel()
	got, err := intake.ParseEvent([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := tidemark.Event{
		Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"id":7}`), Key: "7", Stream: "s",
		Lane: tidemark.LaneBatch, Severity: tidemark.SeverityHigh, SubjectTable: "public.orders", SubjectRef: "7",
		IdempotencyKey: "paid-7", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "ann",
		OccurredAt: time.Date(2026, 1, 31, 11, 0, 0, 5e8, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseEventTakesNullAsAbsent(t *testing.T) {
	t.Parallel()
	got, err := intake.ParseEvent([]byte(`{"domain":"d","type":"t","payload":null,"key":null,"occurred_at":null}`))
	if diff := cmp.Diff(tidemark.Event{Domain: "d", Type: "t"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestParseEventRefuses(t *testing.T) {
	t.Parallel()
	event := func(more string) string { return `{"domain":"d","type":"t",` + more + `}` }
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	for name, test := range map[string]struct{ text, want string }{
		"no JSON":             {`hello`, `is not JSON: invalid character 'h' looking for beginning of value (at byte 1)`},
		"cut short":           {`{"domain":"d"`, `is not JSON: unexpected end of JSON input (at byte 13)`},
		"trailing garbage":    {event(`"key":"k"`) + ` x`, `is not JSON: invalid character 'x' after top-level value (at byte 37)`},
		"two objects":         {`{} {}`, `is not JSON: invalid character '{' after top-level value (at byte 4)`},
		"array":               {`[{"domain":"d","type":"t"}]`, `is an array, must be an object`},
		"null":                {`null`, `is null, must be an object`},
		"number":              {`7`, `is a number, must be an object`},
		"invalid UTF-8":       {event("\"key\":\"\xff\""), `is not UTF-8`},
		"byte order mark":     {"\ufeff" + event(`"key":"k"`), `begins with a byte order mark; save the text without it`},
		"duplicate key":       {event(`"key":"a","key":"b"`), `has the key "key" twice`},
		"escaped duplicate":   {event(`"key":"a","\u006bey":"b"`), `has the key "key" twice`},
		"duplicate deep down": {event(`"payload":{"a":[{"b":1,"b":{}}]}`), `has the key "payload.a.b" twice`},
		"duplicate after one": {event(`"payload":{"a":{"b":1},"c":[],"a":2}`), `has the key "payload.a" twice`},
		"NUL":                 {event(`"payload":{"a":"\u0000"}`), `holds \u0000, which PostgreSQL cannot store`},
		"NUL in a key":        {event(`"payload":{"\u0000":1}`), `holds \u0000, which PostgreSQL cannot store`},
		"lone high surrogate": {event(`"key":"\ud800"`), `holds \ud800, half of a surrogate pair`},
		"two high surrogates": {event(`"key":"\ud800\ud800"`), `holds \ud800, half of a surrogate pair`},
		"lone low surrogate":  {event(`"key":"\uDC00"`), `holds \uDC00, half of a surrogate pair`},
		"too deep":            {event(`"payload":{"a":` + deep + `}`), `is nested deeper than 501 levels`},
		"unknown field":       {event(`"colour":"red"`), `has the unknown field "colour"`},
		"other letter case":   {event(`"Key":"k"`), `has the unknown field "Key"`},
		"domain missing":      {`{"type":"t"}`, `domain is missing`},
		"type missing":        {`{"domain":"d"}`, `type is missing`},
		"type null":           {`{"domain":"d","type":null}`, `type is missing`},
		"domain empty":        {`{"domain":"","type":"t"}`, `domain is empty; leave it out`},
		"key a number":        {event(`"key":7`), `key is a number, must be a string`},
		"key an object":       {event(`"key":{}`), `key is an object, must be a string`},
		"payload an array":    {event(`"payload":[]`), `payload is an array, must be an object`},
		"payload a string":    {event(`"payload":"{}"`), `payload is a string, must be an object`},
		"lane":                {event(`"lane":"fast"`), `lane is "fast", must be one of immediate, batch`},
		"severity":            {event(`"severity":"HIGH"`), `severity is "HIGH", must be one of info, warning, high, critical`},
		"trace":               {event(`"trace":"abc"`), `trace is "abc", must be a W3C traceparent (00-<32 hex>-<16 hex>-<2 hex>)`},
		"time":                {event(`"occurred_at":"yesterday"`), `occurred_at is "yesterday", must be a time such as 2026-01-31T12:00:00Z (RFC 3339)`},
		"time without a zone": {event(`"occurred_at":"2026-01-31T12:00:00"`), `occurred_at is "2026-01-31T12:00:00", must be a time such as 2026-01-31T12:00:00Z (RFC 3339)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := intake.ParseEvent([]byte(test.text))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if diff := cmp.Diff(tidemark.Event{}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseEventKeepsEscapes(t *testing.T) {
	t.Parallel()
	got, err := intake.ParseEvent([]byte(`{"domain":"d","type":"t","key":"\\u0000 \ud83d\ude00 \"\\","payload":{"a":"\\ud800"}}`))
	if want := `\u0000 😀 "\`; got.Key != want || err != nil {
		t.Errorf("got %q, %v, want %q", got.Key, err, want)
	}
}

func TestReaderNumbersLinesAndGoesOn(t *testing.T) {
	t.Parallel()
	long := `{"domain":"d","type":"t","key":"` + strings.Repeat("x", intake.MaxLine) + `"}`
	input := strings.Join([]string{
		`{"domain":"d","type":"one"}`,
		``,
		"  \t\r",
		`{"domain":"d","type":"four"}` + "\r",
		`{"domain":"d"`,
		long,
		long + long,
		`{"domain":"d","type":"eight"}`,
	}, "\n")
	want := []string{
		"1 one", "4 four", "line 5: is not JSON: unexpected end of JSON input (at byte 13)",
		"line 6: is longer than 1048576 bytes", "line 7: is longer than 1048576 bytes", "8 eight",
	}
	for name, ending := range map[string]string{"with a final newline": "\n", "without": ""} {
		got := readAll(t, intake.NewReader(strings.NewReader(input+ending)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
	}
}

func TestReaderTakesTheLongestLine(t *testing.T) {
	t.Parallel()
	event := `{"domain":"d","type":"t","key":""}`
	event = event[:len(event)-2] + strings.Repeat("x", intake.MaxLine-len(event)) + `"}`
	for _, test := range []struct{ text, want string }{
		{event, "1 t"},
		{event + " ", "line 1: is longer than 1048576 bytes"},
	} {
		if diff := cmp.Diff([]string{test.want, "2 u"}, readAll(t, intake.NewReader(strings.NewReader(test.text+"\n"+`{"domain":"d","type":"u"}`)))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReaderTellsAnErrorOfItsInput(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk failed")
	reader := intake.NewReader(io.MultiReader(strings.NewReader(`{"domain":"d","type":"t"}`+"\n{"), iotest.ErrReader(broken)))
	if _, err := reader.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := reader.Next()
	var line *intake.LineError
	if !errors.Is(err, broken) || errors.As(err, &line) || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("got %v", err)
	}
}

// readAll returns the line and type of each event, and the error of each refused line.
func readAll(t *testing.T, r *intake.Reader) (got []string) {
	t.Helper()
	for {
		item, err := r.Next()
		var refused *intake.LineError
		switch {
		case errors.Is(err, io.EOF):
			return got
		case errors.As(err, &refused):
			got = append(got, err.Error())
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprint(item.Line, " ", item.Event.Type))
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(full, "\n", " ")))
	f.Add([]byte("{\"domain\":\"d\",\"type\":\"t\"}\n\n{\"domain\":\"d\",\"type\":\"t\",\"payload\":{\"a\":[1e5,{}]}}\r\n"))
	f.Add([]byte(`{"domain":"d","type":"t","key":"\ud83d\ude00\\u0000"}`))
	f.Add([]byte(`{"domain":"d","type":"t","a":{"b":1,"b":2}}`))
	f.Add([]byte("\ufeff{}\n\xff\n[[[[\n{}{}\nnull"))
	f.Fuzz(func(t *testing.T, input []byte) {
		checkReader(t, input, intake.NewReader(bytes.NewReader(input)))
	})
}

// checkReader checks that a reader ends and counts lines, that each event reads back as
// the same event, and that each error is one line.
func checkReader(t *testing.T, input []byte, r *intake.Reader) {
	t.Helper()
	most, last := bytes.Count(input, []byte("\n"))+1, 0
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		line := item.Line
		if err != nil {
			var refused *intake.LineError
			if !errors.As(err, &refused) {
				t.Fatalf("not a refused line: %v", err)
			}
			if line = refused.Line; strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("not one line of text: %q", err)
			}
		}
		if line <= last || line > most {
			t.Fatalf("line %d after line %d of %d", line, last, most)
		}
		last = line
		if err == nil {
			checkRoundTrip(t, item.Event)
		}
	}
}

func checkRoundTrip(t *testing.T, event tidemark.Event) {
	t.Helper()
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatalf("%+v: %v", event, err)
	}
	again, err := intake.ParseEvent(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	payloads := cmp.Transformer("payload", func(m json.RawMessage) string {
		var compact bytes.Buffer
		if len(m) > 0 {
			if err := json.Compact(&compact, m); err != nil {
				t.Error(err)
			}
		}
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, compact.Bytes())
		return escaped.String()
	})
	if diff := cmp.Diff(event, again, payloads); diff != "" {
		t.Error(diff)
	}
}
