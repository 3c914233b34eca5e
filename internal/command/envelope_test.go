package command_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/command"
)

const envelope = `{
  "event_id": "0199A3C5-7a01-7cc0-9b7e-2f1c5d3a9e10", "service": "billing", "command": "charge.capture", "command_version": 1,
  "schema_version": 2, "payload": {"invoice": 7, "cents": 1200}, "idempotency_key": "inv-7",
  "occurred_at": "2026-01-31T12:00:00+01:00", "trace_id": "0af7651916cd43dd8448eb211c80319c",
  "metadata": {"producer": "web-shop", "tenant": "acme", "context": {"page": null}}
}`

const event = `{
  "specversion": "1.0", "id": "0199A3C5-7a01-7cc0-9b7e-2f1c5d3a9e10", "type": "billing.charge.capture", "source": "web-shop",
  "commandversion": 1, "schemaversion": 2, "data": {"invoice": 7, "cents": 1200}, "idempotencykey": "inv-7", "tenant": "acme",
  "time": "2026-01-31T12:00:00+01:00", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "datacontenttype": "application/json", "partitionkey": "customer-9"
}`

func TestParse(t *testing.T) {
	t.Parallel()
	want := command.Envelope{
		EventID: "0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10", Service: "billing", Command: "charge.capture", CommandVersion: 1, SchemaVersion: 2,
		Payload: json.RawMessage(`{"invoice": 7, "cents": 1200}`), IdempotencyKey: "inv-7",
		OccurredAt: time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC), TraceID: "0af7651916cd43dd8448eb211c80319c",
		Producer: "web-shop", Tenant: "acme", Context: json.RawMessage(`{"page": null}`),
	}
	got, err := command.Parse([]byte(envelope))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	want.Context, want.TraceID = nil, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got, err = command.Parse([]byte(event))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// CM1: each of the ten members missing, null, of a wrong type and doubled, and one that is unknown.
func TestParseRefusesEachMember(t *testing.T) {
	t.Parallel()
	var whole map[string]json.RawMessage
	if err := json.Unmarshal([]byte(envelope), &whole); err != nil || len(whole) != 10 {
		t.Fatal(err)
	}
	for name, value := range whole {
		kind := "a string"
		switch value[0] {
		case '{':
			kind = "an object"
		case '1', '2':
			kind = "a number"
		}
		with := func(other string) string {
			text := "{"
			for n, v := range whole {
				if n != name {
					text += fmt.Sprintf("%q: %s, ", n, v)
				}
			}
			return strings.TrimSuffix(text+other, ", ") + "}"
		}
		refused(t, with(""), command.EnvelopeInvalid, name+" is missing, must be "+kind)
		refused(t, with(fmt.Sprintf("%q: null", name)), command.EnvelopeInvalid, name+" is null, must be "+kind)
		refused(t, with(fmt.Sprintf("%q: [1]", name)), command.EnvelopeInvalid, name+" is an array, must be "+kind)
		refused(t, with(fmt.Sprintf("%q: true", name)), command.EnvelopeInvalid, name+" is a boolean, must be "+kind)
		refused(t, with(fmt.Sprintf("%q: %s, %[1]q: %[2]s", name, value)), command.EnvelopeInvalid, fmt.Sprintf("has the key %q twice", name))
		refused(t, with(fmt.Sprintf("%q: %s", strings.ToUpper(name), value)), command.EnvelopeInvalid, name+" is missing")
	}
	refused(t, strings.Replace(envelope, "{", `{"sql": "drop table x", `, 1), command.EnvelopeInvalid, `the envelope has the unknown member "sql"`)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	change := func(from, to string) string {
		t.Helper()
		if !strings.Contains(envelope, from) {
			t.Fatal(from)
		}
		return strings.Replace(envelope, from, to, 1)
	}
	payload := func(text string) string { return change(`{"invoice": 7, "cents": 1200}`, text) }
	for _, c := range []struct {
		text   string
		reason command.Reason
		want   string
	}{
		{"", command.EnvelopeInvalid, "the envelope is empty"},
		{"\x00\x00\x00\x00\x07" + envelope, command.EnvelopeInvalid, "begins with the byte 0, as a schema registry's serializer writes it"},
		{"\x01" + envelope, command.EnvelopeInvalid, "begins with the byte 1, as a schema registry"},
		{"[" + envelope + "]", command.EnvelopeInvalid, "the envelope is an array, must be an object"},
		{"null", command.EnvelopeInvalid, "the envelope is null, must be an object"},
		{envelope + "{}", command.EnvelopeInvalid, "after top-level value"},
		{envelope[:40], command.EnvelopeInvalid, "is not JSON"},
		{change("web-shop", "web\xffshop"), command.EnvelopeInvalid, "is not UTF-8"},
		{change("web-shop", `web\u0000shop`), command.EnvelopeInvalid, `holds \u0000`},
		{change("web-shop", `\udc00`), command.EnvelopeInvalid, "surrogate"},
		{payload(`{"a": 1, "a": 1}`), command.EnvelopeInvalid, `has the key "payload.a" twice`},
		{payload(`{"a": [1, -1E309]}`), command.EnvelopeInvalid, "a number that a double cannot hold: \"-1E309\""},
		{payload(`{"a": 1e-400}`), command.EnvelopeInvalid, "a number that a double cannot hold"},
		{payload(`{"a": 1e131072}`), command.EnvelopeInvalid, "PostgreSQL cannot store"},
		{payload(`{"a": ` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + "}"), command.EnvelopeInvalid, "nested deeper than 64"},
		{payload(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`), command.EnvelopeTooLarge, "must have at most 1048576"},
		{change(`{"page": null}`, `{"a": "`+strings.Repeat("x", 8190)+`"}`), command.EnvelopeTooLarge, "metadata.context has 8199 bytes, must have at most 8192"},
		{change(`"command_version": 1`, `"command_version": 0`), command.EnvelopeInvalid, `command_version is "0", must be a whole number from 1`},
		{change(`"command_version": 1`, `"command_version": 1.5`), command.EnvelopeInvalid, "must be a whole number"},
		{change(`"schema_version": 2`, `"schema_version": 2147483648`), command.EnvelopeInvalid, "must be a whole number"},
		{change(`"schema_version": 2`, `"schema_version": 1e300`), command.EnvelopeInvalid, "must be a whole number"},
		{change("0199A3C5-", "0199A3C5"), command.EnvelopeInvalid, "event_id is "},
		{change(`"billing"`, `"billing.eu"`), command.EnvelopeInvalid, `service is "billing.eu", must be a lower-case name`},
		{change(`"charge.capture"`, `"charge..capture"`), command.EnvelopeInvalid, `command is "charge..capture", must be lower-case names`},
		{change(`"charge.capture"`, `""`), command.EnvelopeInvalid, `command is ""`},
		{change(`"charge.capture"`, `"billing.charge.capture"`), command.EnvelopeInvalid, `command is "billing.charge.capture", must be "charge.capture": the service's name stands in service alone`},
		{change(`"inv-7"`, `""`), command.EnvelopeInvalid, "idempotency_key has 0 characters, must have 1 to 200"},
		{change(`"inv-7"`, `"`+strings.Repeat("é", 201)+`"`), command.EnvelopeInvalid, "idempotency_key has 201 characters"},
		{change("2026-01-31T12", "2026-01-31 12"), command.EnvelopeInvalid, "occurred_at is "},
		{change("12:00:00+01:00", "12:00:00,5Z"), command.EnvelopeInvalid, "occurred_at is "},
		{change("+01:00", "+24:00"), command.EnvelopeInvalid, "occurred_at is "},
		{change("2026-01-31", "0000-01-31"), command.EnvelopeInvalid, "occurred_at is "},
		{change("0af7", "0AF7"), command.EnvelopeInvalid, "trace_id is "},
		{change(`"producer": "web-shop", `, ``), command.EnvelopeInvalid, "metadata.producer is missing, must be a string"},
		{change(`"tenant": "acme"`, `"tenant": null`), command.EnvelopeInvalid, "metadata.tenant is null, must be a string"},
		{change(`"tenant": "acme"`, `"tenant": ""`), command.EnvelopeInvalid, "metadata.tenant has 0 characters"},
		{change(`{"page": null}`, `[]`), command.EnvelopeInvalid, "metadata.context is an array, must be an object"},
		{change(`"tenant"`, `"user"`), command.EnvelopeInvalid, `metadata has the unknown member "user", must have producer`},
	} {
		refused(t, c.text, c.reason, c.want)
	}
}

func TestParseTakes(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{
		`"command_version": 1`: `"command_version": 1.0`, `"schema_version": 2`: `"schema_version": 20e-1`,
		`"inv-7"`: `"` + strings.Repeat("😀", 200) + `"`, `{"page": null}`: `{"a": "` + strings.Repeat("x", 8183) + `"}`,
		`{"invoice": 7, "cents": 1200}`: `{"a": ` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + "}",
		`, "tenant": "acme"`:            ``,
		"T12:00:00+01:00":               "t12:00:00.5z",
	} {
		if _, err := command.Parse([]byte(strings.Replace(envelope, from, to, 1))); err != nil {
			t.Error(err)
		}
	}
}

func TestParseRefusesCloudEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		reason   command.Reason
		want     string
	}{
		{`"1.0"`, `"0.3"`, command.EnvelopeUnsupportedVersion, `specversion is "0.3", must be 1.0`},
		{`"1.0"`, `1.0`, command.EnvelopeUnsupportedVersion, `specversion is a number, must be 1.0`},
		{`"acme"`, `null`, command.EnvelopeInvalid, `tenant is null`},
		{`application/json`, `text/xml`, command.EnvelopeInvalid, `datacontenttype is "text/xml"`},
		{`"partitionkey"`, `"subject"`, command.EnvelopeInvalid, `the CloudEvent has the attribute "subject"`},
		{`billing.charge.capture`, `billing`, command.EnvelopeInvalid, `type is "billing", must be a service and its command`},
		{`"billing.charge.capture"`, `7`, command.EnvelopeInvalid, `type is a number, must be a string`},
		{`billing.charge.capture`, `billing.billing.charge`, command.EnvelopeInvalid, `the service's name stands in service alone`},
		{`"commandversion": 1`, `"commandversion": "1"`, command.EnvelopeInvalid, `command_version is a string, must be a number`},
		{`"data"`, `"data_base64"`, command.EnvelopeInvalid, `data_base64`},
		{`"source": "web-shop",`, ``, command.EnvelopeInvalid, `source is missing`},
	} {
		refused(t, strings.Replace(event, c.from, c.to, 1), c.reason, c.want)
	}
}

// A message is for people: short, and never a payload.
func TestRefusalIsShort(t *testing.T) {
	t.Parallel()
	text := `{"payload": {"card": "4111111111111111"}`
	for i := range 500 {
		text += fmt.Sprintf(`, "x%d": 1`, i)
	}
	_, err := command.Parse([]byte(text + "}"))
	if err == nil || len(err.Error()) > 1024 || !strings.HasSuffix(err.Error(), "; and more") || strings.Contains(err.Error(), "4111") {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

func refused(t *testing.T, text string, reason command.Reason, want string) {
	t.Helper()
	_, err := command.Parse([]byte(text))
	var refusal *command.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != reason || !strings.Contains(err.Error(), want) {
		t.Errorf("%.300s:\ngot  %v\nwant %s: %s", text, err, reason, want)
	}
}

// The schema version and what describes the request do not belong to what is asked for; all else does.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := fingerprint(t, envelope)
	const want = "b897e30d" // also what tidemark.command_fingerprint returns
	if got := hex.EncodeToString(base[:4]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, change := range [][2]string{
		{`"schema_version": 2`, `"schema_version": 1`},
		{"0199", "0200"},
		{"web-shop", "other"},
		{"inv-7", "inv-8"},
		{`{"invoice": 7, "cents": 1200}`, `{"cents":1.2e3,"invoice":7.0}`},
	} {
		if fingerprint(t, strings.Replace(envelope, change[0], change[1], 1)) != base {
			t.Errorf("%s changes the fingerprint", change[0])
		}
	}
	seen := map[[32]byte]string{base: ""}
	for _, change := range [][2]string{
		{`"service": "billing"`, `"service": "billing2"`},
		{"charge.capture", "charge.captured"},
		{`"command_version": 1`, `"command_version": 2`},
		{`"acme"`, `"acme2"`},
		{`"tenant": "acme", `, ``},
		{"1200", "1201"},
		{"1200", "9007199254740992"},
		{"1200", "9007199254740993"},
		{"1200", `"1200"`},
		{"1200", `null`},
	} {
		got := fingerprint(t, strings.Replace(envelope, change[0], change[1], 1))
		if other, twice := seen[got]; twice {
			t.Errorf("%s has the fingerprint of %q", change, other)
		}
		seen[got] = change[1]
	}
}

func fingerprint(t *testing.T, text string) [32]byte {
	t.Helper()
	e, err := command.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := e.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// What is written by the rules is read, with each value.
func TestParseOfAnyEnvelope(t *testing.T) {
	t.Parallel()
	short := rapid.StringOfN(rapid.RuneFrom([]rune("ab \n\"é😀")), 1, 200, -1)
	rapid.Check(t, func(t *rapid.T) {
		payload, err := json.Marshal(anyMember(t))
		if err != nil {
			t.Fatal(err)
		}
		want := command.Envelope{
			EventID: rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "id"),
			Service: rapid.StringMatching(`[a-z][a-z0-9_-]{0,30}`).Draw(t, "service"), Command: rapid.StringMatching(`c[a-z]{0,5}(\.[a-z][a-z0-9_-]{0,5}){0,3}`).Draw(t, "command"),
			CommandVersion: rapid.IntRange(1, 1<<31-1).Draw(t, "version"), SchemaVersion: rapid.IntRange(1, 9).Draw(t, "schema"),
			Payload: payload, IdempotencyKey: short.Draw(t, "key"), Producer: short.Draw(t, "producer"), Tenant: short.Draw(t, "tenant"),
			OccurredAt: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 0).UTC(), TraceID: rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "trace"),
		}
		if strings.HasPrefix(want.Command, want.Service+".") {
			t.Skip()
		}
		text, err := json.Marshal(map[string]any{
			"event_id": want.EventID, "service": want.Service, "command": want.Command, "command_version": want.CommandVersion,
			"schema_version": want.SchemaVersion, "payload": want.Payload, "idempotency_key": want.IdempotencyKey, "occurred_at": want.OccurredAt,
			"trace_id": want.TraceID, "metadata": map[string]string{"producer": want.Producer, "tenant": want.Tenant},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := command.Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func anyMember(t *rapid.T) map[string]any { return map[string]any{"member": anyValue(t, 3)} }

func FuzzParse(f *testing.F) {
	f.Add([]byte(envelope))
	f.Add([]byte(event))
	f.Add([]byte("\x00\x00\x00\x00\x01{}"))
	f.Add([]byte(`{"payload": {"a": 1e131072, "a": "\ud800"}, "metadata": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := command.Parse(text)
		var refusal *command.Refusal
		switch {
		case err != nil && !errors.As(err, &refusal):
			t.Fatal(err)
		case err != nil:
			if len(err.Error()) > 1024 || len(refusal.Problems) == 0 {
				t.Fatal(err)
			}
			return
		}
		if e.CommandVersion < 1 || e.SchemaVersion < 1 || e.Producer == "" || e.IdempotencyKey == "" || e.OccurredAt.IsZero() || !json.Valid(e.Payload) {
			t.Fatalf("%+v", e)
		}
		if _, err := e.Fingerprint(); err != nil {
			t.Fatal(err)
		}
	})
}

// binaryEvent is the event in binary form; changes are headers to replace, add or leave out.
func binaryEvent(changes map[string]string) (headers []command.Header) {
	all := map[string]string{
		"ce_specversion": "1.0", "ce_id": "0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10", "ce_type": "billing.charge.capture", "ce_source": "web-shop", "ce_commandversion": "1",
		"ce_schemaversion": "2", "ce_idempotencykey": "inv-7", "ce_tenant": "acme", "ce_time": "2026-01-31T12:00:00+01:00",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "content-type": "application/json", "another": "\xff",
	}
	for name, value := range changes {
		if all[name] = value; value == "" {
			delete(all, name)
		}
	}
	for name, value := range all {
		headers = append(headers, command.Header{Name: name, Value: []byte(value)})
	}
	return headers
}

func TestParseBinaryCloudEvents(t *testing.T) {
	t.Parallel()
	want, err := command.Parse([]byte(event))
	if err != nil {
		t.Fatal(err)
	}
	const data = `{"invoice": 7, "cents": 1200}`
	got, err := command.ParseBinary(binaryEvent(nil), []byte(data))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for what, is := range map[string]bool{"": true, "ce_specversion": false} {
		if command.IsBinary(binaryEvent(map[string]string{what: ""})) != is {
			t.Errorf("without %q: binary is not %v", what, is)
		}
	}
	if command.IsBinary(binaryEvent(map[string]string{"content-type": "application/cloudevents+json; charset=UTF-8"})) {
		t.Error("a structured event is taken for a binary one")
	}
	for _, c := range []struct {
		header, value, data string
		want                string
	}{
		{"ce_specversion", "0.3", data, `specversion is "0.3", must be 1.0`},
		{"ce_commandversion", "one", data, "command_version is a string, must be a number"},
		{"ce_commandversion", "", data, "command_version is missing"},
		{"ce_data", "{}", data, "ce_data"},
		{"ce_tenant", "\xff", data, `the header "ce_tenant" is not UTF-8`},
		{"ce_subject", "x", data, `the attribute "subject"`},
		{"content-type", "text/xml", data, "datacontenttype is"},
		{"", "", `[]`, "the envelope is an array, must be an object"},
		{"", "", `{"a": 1, "a": 2}`, `the envelope`},
		{"", "", "\x00\x00", "begins with the byte 0"},
	} {
		_, err := command.ParseBinary(binaryEvent(map[string]string{c.header: c.value}), []byte(c.data))
		var refusal *command.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%q %s: got %v, want %s", c.header, c.value, c.data, err, c.want)
		}
	}
	if _, err := command.ParseBinary(append(binaryEvent(nil), command.Header{Name: "ce_type", Value: []byte("billing.refund")}), []byte(data)); err == nil || !strings.Contains(err.Error(), `"ce_type" is there twice`) {
		t.Error(err)
	}
	if trace := command.Trace(binaryEvent(nil)); trace != want.TraceID {
		t.Error(trace)
	}
	if trace := command.Trace(binaryEvent(map[string]string{"traceparent": "no trace"})); trace != "" {
		t.Error(trace)
	}
}
