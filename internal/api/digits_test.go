package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// Values reach the database with every digit, whatever row they are for: a filter that rounds delivers another event.
func TestValuesKeepTheirDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	w.exec(`create function public.charge(payload jsonb) returns jsonb language sql as 'select payload';
		select tidemark.command_set('` + service + `', 'charge', 1, '{"function": "public.charge"}')`)
	for _, number := range []string{"9007199254740993", "12345678901234567890.10", "0.1000000000000000055511151231257827", "1e400"} {
		for _, c := range []struct{ method, path, set, stored string }{
			{"PATCH", "/routes/hook", `{"payload_filter": {"a": [{"b": N}]}}`, `select payload_filter #>> '{a,0,b}' from tidemark.outbound_route where route_code = 'hook'`},
			{"PUT", "/routes/hook", `{"payload_filter": {"a": N}}`, `select payload_filter ->> 'a' from tidemark.outbound_route where route_code = 'hook'`},
			{"PUT", "/routes/made", `{"domain": "shop", "target_kind": "notify", "target_ref": "x", "payload_filter": {"a": N}}`, `select payload_filter ->> 'a' from tidemark.outbound_route where route_code = 'made'`},
			{"PUT", "/types/shop/order", `{"schema": {"maximum": N}}`, `select schema ->> 'maximum' from tidemark.event_type where type = 'order'`},
			{"PATCH", "/services/" + service + "/commands/charge/1", `{"payload_schema": {"type": "object", "properties": {"n": {"maximum": N}}}}`, `select payload_schema #>> '{properties,n,maximum}' from tidemark.command`},
		} {
			gets[json.RawMessage](w, ada, c.method, c.path, `{"set": `+strings.Replace(c.set, "N", number, 1)+`, "reason": "x"}`)
			if got := one[string](w, c.stored); got != one[string](w, `select '`+number+`'::jsonb #>> '{}'`) {
				t.Errorf("%s %s stores %s of %s", c.method, c.path, got, number)
			}
		}
	}
	if got := w.ask(ada, "GET", "/routes/made", "").Body.String(); !strings.Contains(got, strings.Repeat("0", 400)) {
		t.Errorf("the API shows %s", got)
	}
}

// Of a member that comes twice one would be lost.
func TestMembersThatComeTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{
		`{"set": {"concurrency": 3, "concurrency": 4}, "reason": "x"}`,
		`{"set": {"payload_filter": {"a": 1, "a": 2}}, "reason": "x"}`,
		`{"set": {"concurrency": 3}, "set": {"timeout": "3s"}, "reason": "x"}`,
	} {
		if p := w.refuses(400, "", ada, "PATCH", "/routes/hook", body); !strings.Contains(p.Detail, "twice") {
			t.Errorf("%s: %s", body, p.Detail)
		}
	}
}

// A number that is too large for its column is the caller's mistake, and the database is there.
func TestNumbersThatDoNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuses(404, "TM004", oscar, "POST", "/dead-letters/replay", `{"after": 3000000001, "reason": "x"}`)
	w.refuses(404, "TM004", oscar, "POST", "/dead-letters/replay", `{"ids": [3000000001], "reason": "x"}`)
	p := w.refuses(422, "", ada, "PATCH", "/services/billing/commands/charge/3000000000", `{"set": {"enabled": true}, "reason": "x"}`)
	if !strings.Contains(p.Detail, "too large") {
		t.Error(p.Detail)
	}
}
