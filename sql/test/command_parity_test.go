package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM1: the envelope has one rule, in Go for records and in SQL for psql: both take the same, refuse with the same code, and find the
// same fingerprint.
func TestCommandEnvelopeAgreesWithGo(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "parity")
	r := rand.New(rand.NewPCG(14, 1))
	taken, refused := 0, 0
	for i := range 3000 {
		text := mutatedEnvelope(r)
		if i < 2 { // the digits of all numbers, just below the limit and above it
			text = `{"event_id": "0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10", "service": "billing", "command": "c", "command_version": 1, "schema_version": 2, "idempotency_key": "k",
				"occurred_at": "2026-01-31T12:00:00Z", "trace_id": "0af7651916cd43dd8448eb211c80319c", "metadata": {"producer": "p"}, "payload": {"a": [` + strings.Repeat("1e300,", 27800+100*i) + `1]}}`
		}
		e, err := command.Parse([]byte(text))
		want, sum := "", ""
		var refusal *command.Refusal
		switch {
		case errors.As(err, &refusal):
			want = string(refusal.Reason)
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			taken++
			fingerprint, err := e.Fingerprint()
			if err != nil {
				t.Fatal(err)
			}
			sum = fmt.Sprintf("%x", fingerprint)
		}
		got := one[string](s, `select coalesce(code, '') from tidemark.command_envelope($1)`, text)
		if got != want {
			t.Errorf("%.600s:\nSQL %q, Go %q (%v)\n%s", text, got, want, err, one[string](s, `select coalesce(message, '') from tidemark.command_envelope($1)`, text))
			continue
		}
		if want == "" {
			if got := one[string](s, `select encode(tidemark.command_fingerprint(c ->> 'service', c ->> 'tenant', c ->> 'command',
				(c ->> 'command_version')::integer, c -> 'payload'), 'hex') from (select call from tidemark.command_envelope($1)) e (c)`, text); got != sum {
				t.Errorf("%.600s: fingerprint of SQL %s, of Go %s", text, got, sum)
			}
		}
	}
	if taken < 100 || refused < 500 {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

// mutatedEnvelope is a good envelope with one or two changes, of which many leave it good.
func mutatedEnvelope(r *rand.Rand) string {
	members := map[string]string{
		"event_id": `"0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10"`, "service": `"billing"`, "command": `"charge.capture"`, "command_version": `1`,
		"schema_version": `2`, "payload": `{"cents": 1200, "b": [1.50, "é", null]}`, "idempotency_key": `"inv-7"`, "occurred_at": `"2026-01-31T12:00:00Z"`,
		"trace_id": `"0af7651916cd43dd8448eb211c80319c"`,
	}
	metadata := map[string]string{"producer": `"web-shop"`, "tenant": `"acme"`, "context": `{"page": 1}`}
	values := []string{
		`null`, `true`, `[]`, `{}`, `""`, `"x"`, `7`, `-1`, `0`, `1.0`, `1e0`, `1.5`, `1e3`, `2147483647`, `2147483648`, `1e400`, `1e131071`, `1e131072`, `"\u0000"`, `"\ud800"`,
		`"\ud83d\ude00"`, `"` + strings.Repeat("é", 200) + `"`, `"` + strings.Repeat("é", 201) + `"`, `"charge..capture"`, `"billing.charge"`, `"billing"`, `"Charge"`, `"charge.capture "`,
		`"a\n"`, `"` + strings.Repeat("a", 40) + `"`, `"` + strings.Repeat("a", 41) + `"`, `"` + strings.Repeat("a", 100) + `"`, `"` + strings.Repeat("a", 101) + `"`,
		`"0199A3C5-7A01-7CC0-9B7E-2F1C5D3A9E10"`, `"0199a3c57a017cc09b7e2f1c5d3a9e10"`, `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"0AF7651916CD43DD8448EB211C80319C"`,
		`"2026-01-31T12:00:00.123456789+01:00"`, `"2026-01-31 12:00:00Z"`, `"2026-02-30T12:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-23:59"`, `"2026-01-31T24:00:00Z"`,
		`"2026-01-31t12:00:00z"`, `"2026-01-31T12:00:60Z"`, `"2026-01-31T12:00:00,5Z"`, `"2026-01-31T12:00:00+24:00"`, `"now"`,
		`{"a": 1, "a": 2}`, `{"a": {"b": 1, "\u0062": 1}}`, `{"a": 9007199254740993}`, `{"a": 1e-16383}`, `{"a": 1e-16384}`,
		`{"a": 1e308}`, `{"a": [1.7976931348623158e308]}`, `{"a": -1.7976931348623159e+308}`, `{"a": 1E309}`, `{"a": 5e-324}`, `{"a": 2.4703282292062328e-324}`, `{"a": 2.4703282292062327e-324}`,
		`{"a": 1e-400}`, `{"a": 0e400}`, `{"a": 0e131071}`, `{"a": 0e131072}`, `{"a": 0.0e-16383}`, `{"a": 0e99999999999}`, `{"a": "\"1e999"}`, `{"1e999\\": 1, "b": "1e999"}`,
		`{"a": 1` + strings.Repeat("0", 308) + `}`, `{"a": 1` + strings.Repeat("0", 309) + `}`, `{"a": 0.` + strings.Repeat("0", 400) + `1}`, `{"a": 0.` + strings.Repeat("0", 400) + `1e400}`,
		`{"a": 1.` + strings.Repeat("0", 16382) + `1}`, `{"a": 1.` + strings.Repeat("0", 16383) + `1}`, `{"a": 1e` + strings.Repeat("0", 300) + `1}`,
		`{"a": ` + strings.Repeat("[", 61) + "1" + strings.Repeat("]", 61) + `}`, `{"a": ` + strings.Repeat("[", 62) + "1" + strings.Repeat("]", 62) + `}`, `{"a": ` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}`,
		`{"a": ` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		`{"a":   "` + strings.Repeat("x", 8182) + `"}`, `{"a":"` + strings.Repeat("x", 8184) + `"}`, `{"a":"` + strings.Repeat("x", 8185) + `"}`, `{"a": "` + strings.Repeat("x", 8184) + `"}`,
	}
	pick := func(from map[string]string) string {
		names := []string{}
		for name := range from {
			names = append(names, name)
		}
		slices.Sort(names)
		return names[r.IntN(len(names))]
	}
	for range 1 + r.IntN(2) {
		set := members
		if r.IntN(3) == 0 {
			set = metadata
		}
		switch name := pick(set); r.IntN(10) {
		case 0:
			delete(set, name)
		case 1:
			set[[]string{"more", "Service", "tenant ", "a.b"}[r.IntN(4)]] = `1`
		default:
			set[name] = values[r.IntN(len(values))]
		}
	}
	join := func(from map[string]string) string {
		var all []string
		for name, value := range from {
			quoted, _ := json.Marshal(name)
			all = append(all, string(quoted)+": "+value)
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ", ") + "}"
	}
	members["metadata"] = join(metadata)
	text := join(members)
	switch r.IntN(40) {
	case 0:
		return text + " "
	case 1:
		return text + "{}"
	case 2:
		return strings.ToValidUTF8(text[:r.IntN(len(text))], "")
	case 3:
		return "\ufeff" + text
	case 4:
		return "\x01" + text
	case 5:
		return " \n" + text
	case 6:
		return "\v" + text
	}
	return text
}
