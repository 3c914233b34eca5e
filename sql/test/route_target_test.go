package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/target"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const hook = "https://example.com/hook"

// targetCases are targets and what is wrong with them; "" is nothing.
var targetCases = []struct{ kind, ref, options, problem string }{
	{"sql", "app.on_order", `{}`, ""},
	{"sql", `"Odd Name"."Do.it"`, `{}`, ""},
	{"sql", `app.größe`, `{}`, ""},
	{"sql", "on_order", `{}`, "target_ref must be SCHEMA.FUNCTION, without arguments"},
	{"sql", "a.b.c", `{}`, "target_ref must be SCHEMA.FUNCTION, without arguments"},
	{"sql", "app.f(e.event); drop table x; --", `{}`, "target_ref must be SCHEMA.FUNCTION, without arguments"},
	{"sql", "app.f", `{"secret": "x"}`, `there is no option "secret" for sql`},
	{"notify", `it's "new"`, `{}`, ""},
	{"notify", strings.Repeat("ü", 32), `{}`, "target_ref has more than 63 bytes"},
	{"notify", "", `{}`, "target_ref must be the name of a channel, at most 63 bytes"},
	{"htpp", "x", `{}`, `there is no kind of target "htpp"`},
	{"", "x", `{}`, `there is no kind of target ""`},
	{"SQL", "a.b", `{}`, `there is no kind of target "SQL"`},
	{"webhook", hook, `{"secret": "billing"}`, ""},
	{"webhook", hook, `{"secret": "billing", "unsigned": false}`, ""},
	{"webhook", "http://[::1]:8080/x?a=b", `{"unsigned": true}`, ""},
	{"webhook", "https://ex-ample.com", `{"unsigned": true, "format": "json", "rate_per_second": 0.5}`, ""},
	{"webhook", "not a url", `{"secret": "x"}`, "target_ref must be a URL that begins with https:// or http://"},
	{"webhook", "HTTPS://x", `{"secret": "x"}`, "target_ref must be a URL that begins with https:// or http://"},
	{"webhook", "https://", `{"secret": "x"}`, "target_ref must be a URL with a host and, if any, a port"},
	{"webhook", "https:///path", `{"secret": "x"}`, "target_ref must be a URL with a host and, if any, a port"},
	{"webhook", "https://x:port/", `{"secret": "x"}`, "target_ref must be a URL with a host and, if any, a port"},
	{"webhook", "https://x/a b", `{"secret": "x"}`, "target_ref must have no spaces and no control characters"},
	{"webhook", "https://x/\n", `{"secret": "x"}`, "target_ref must have no spaces and no control characters"},
	{"webhook", "https://x/#y", `{"secret": "x"}`, "target_ref has a fragment (#), which is never sent"},
	{"webhook", "https://ann:hunter2@x/", `{"secret": "x"}`, `target_ref holds a user or a password: use the option headers, {"Authorization": {"secret": "NAME"}}`},
	{"webhook", "https://x/?api_key=hunter2", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter api_key"},
	{"webhook", "https://x/?a=1&Access-Token=hunter2", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter access-token"},
	{"webhook", "https://x/?sig=hunter2", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter sig"},
	{"webhook", "https://x/?%74oken=hunter2", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x/?to%6Ben=hunter2", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x/?%2574oken=hunter2", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x?a=1;api%5Fkey=hunter2", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x/a;%74oken=hunter2/b", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x/?a=b?%73ig=hunter2", `{"secret": "x"}`, "target_ref has a parameter whose name is percent-encoded without need: write its letters as they are"},
	{"webhook", "https://x/a;token=hunter2/b", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter token"},
	{"webhook", "https://x/?next=y?token=hunter2", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter token"},
	{"webhook", "https://x/?a&&TOKEN", `{"secret": "x"}`, "target_ref holds a secret in plain text, the parameter token"},
	{"webhook", "https://ann%3Ahunter2@x/", `{"secret": "x"}`, `target_ref holds a user or a password: use the option headers, {"Authorization": {"secret": "NAME"}}`},
	{"webhook", "https://ann@x?a", `{"secret": "x"}`, `target_ref holds a user or a password: use the option headers, {"Authorization": {"secret": "NAME"}}`},
	{"webhook", "https://ann:hunter2@y@x/", `{"secret": "x"}`, `target_ref holds a user or a password: use the option headers, {"Authorization": {"secret": "NAME"}}`},
	{"webhook", "https://x/%74oken/a%20b?filter%5Bname%5D=%74oken&q=a%2Fb", `{"secret": "x"}`, ""},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Shop": "\tBearer hunter2"}}`, "header X-Shop holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Shop": " basic hunter2"}}`, "header X-Shop holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Shop": " whsec_hunter2"}}`, "header X-Shop holds a secret in plain text"},
	{"webhook", "https://x/" + strings.Repeat("a", 2048), `{"secret": "x"}`, "target_ref has more than 2048 bytes"},
	{"webhook", hook, `{}`, "a route to webhook needs the option secret or unsigned"},
	{"webhook", hook, `{"unsigned": false}`, "a route to webhook needs the option secret or unsigned"},
	{"webhook", hook, `{"secret": "x", "unsigned": true}`, "the options secret and unsigned exclude each other"},
	{"webhook", hook, `{"secrett": "x"}`, `there is no option "secrett" for webhook`},
	{"webhook", hook, `{"secret": "whsec_hunter2hunter2hunter2"}`, `option "secret" must be the name of a secret in the daemon's configuration, never the secret itself`},
	{"webhook", hook, `{"secret": 1}`, `option "secret" must be the name of a secret in the daemon's configuration, never the secret itself`},
	{"webhook", hook, `{"unsigned": "true"}`, `option "unsigned" is "true", must be true or false`},
	{"webhook", hook, `{"secret": "x", "format": "xml"}`, `option "format" is "xml", must be one of cloudevents, cloudevents-binary, json`},
	{"webhook", hook, `{"secret": "x", "rate_per_second": -1}`, `option "rate_per_second" is -1, must be a number from 0.001 to 1000000`},
	{"webhook", hook, `{"secret": "x", "rate_per_second": "9"}`, `option "rate_per_second" is "9", must be a number from 0.001 to 1000000`},
	{"webhook", hook, `{"secret": "x", "connection": "main"}`, `there is no option "connection" for webhook`},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Shop": "1", "Authorization": {"secret": "crm"}}}`, ""},
	{"webhook", hook, `{"secret": "x", "headers": {"Authorization": "Bearer hunter2"}}`, "header Authorization holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"COOKIE": "hunter2"}}`, "header COOKIE holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Api-Key": "hunter2"}}`, "header X-Api-Key holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"x-auth": "hunter2"}}`, "header x-auth holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"X-Shop": "bEARER hunter2"}}`, "header X-Shop holds a secret in plain text"},
	{"webhook", hook, `{"secret": "x", "headers": {"Proxy-Authorization": "hunter2"}}`, "header Proxy-Authorization is reserved"},
	{"webhook", hook, `{"secret": "x", "headers": {"Webhook-Id": {"secret": "x"}}}`, "header Webhook-Id is reserved"},
	{"webhook", hook, `{"secret": "x", "headers": {"a": "1", "A": "2"}}`, "header a is there twice"},
	{"webhook", hook, `{"secret": "x", "headers": {"Bearer hunter2": "1"}}`, `option "headers" has a name that is no header name`},
	{"webhook", hook, `{"secret": "x", "headers": {"X-A": {"secret": "whsec_hunter2"}}}`, `header X-A must be a text or {"secret": "NAME"}`},
	{"webhook", hook, `{"secret": "x", "headers": {"X-A": {"secret": "a", "b": 1}}}`, `header X-A must be a text or {"secret": "NAME"}`},
	{"webhook", hook, `{"secret": "x", "headers": {"X-A": 5}}`, `header X-A must be a text or {"secret": "NAME"}`},
	{"webhook", hook, `{"secret": "x", "headers": {"X-A": "a\r\nb"}}`, "header X-A has a control character in its value"},
	{"webhook", hook, `{"secret": "x", "headers": ["a"]}`, `option "headers" must be an object`},
	{"webhook", hook, `{"secret": "x", "headers": null}`, `option "headers" must be an object`},
	{"kafka", "orders.v1", `{"connection": "main", "format": "json"}`, ""},
	{"kafka", "no topic", `{}`, `target_ref must be a topic: letters, digits, ".", "_" and "-"`},
	{"kafka", "..", `{}`, `target_ref must be a topic, and not "." or ".."`},
	{"kafka", "x", `{"connection": "a b"}`, `option "connection" is "a b", must be the name of a connection in the daemon's configuration`},
	{"nats", "shop.orders", `{}`, ""},
	{"nats", "shop.*", `{}`, "target_ref must be a subject: words with dots between them, no spaces, no wildcards"},
	{"nats", "$JS.API", `{}`, `target_ref must not begin with "$", by which servers are managed`},
	{"stdout", "anything at all", `{"format": "json"}`, ""},
	{"kafka", "orders", `{"format": "payload"}`, ""},
	{"kafka", "orders", `{"format": "raw"}`, ""},
	{"webhook", hook, `{"secret": "x", "format": "raw"}`, `option "format" is "raw", must be one of cloudevents, cloudevents-binary, json`},
	{"stdout", "x", `{"format": "cloudevents-binary"}`, `option "format" is "cloudevents-binary", must be one of cloudevents, json`},
	{"go", "shop/order.*", `{}`, ""},
	{"go", "shop", `{}`, "target_ref must be DOMAIN/TYPE, where TYPE is exact, a prefix such as order.*, or *"},
	{"river", "charge", `{"queue": "a|b", "priority": 4.0}`, ""},
	{"river", "charge", `{"priority": 5}`, `option "priority" is 5, must be a whole number from 1 to 4`},
}

// A route takes no target that cannot be: neither by route_set nor by a plain statement, whatever its switches.
func TestTargetsAreChecked(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`create schema app; create schema "Odd Name";
		create function app.on_order(jsonb) returns void language sql as '';
		create function app.größe(jsonb) returns void language sql as '';
		create function "Odd Name"."Do.it"(jsonb) returns void language sql as ''`)
	kept := `select concat_ws(' ', target_kind, target_ref, options) from tidemark.outbound_route where route_code = 'app'`
	before := one[string](w, kept)
	set := `select tidemark.route_set('app', jsonb_build_object('target_kind', $1::text, 'target_ref', $2::text, 'options', $3::text::jsonb))`
	for _, c := range targetCases {
		if c.problem == "" {
			w.begin()
			w.exec(set, c.kind, c.ref, c.options)
			w.rollback()
			continue
		}
		w.refused("TM005", "route app: "+c.problem, set, c.kind, c.ref, c.options)
		w.refused("TM005", "route app: "+c.problem, `update tidemark.outbound_route set target_kind = $1, target_ref = $2, options = $3::text::jsonb, enabled = false where route_code = 'app'`, c.kind, c.ref, c.options)
		w.refused("TM005", "route new: "+c.problem, `insert into tidemark.outbound_route (route_code, domain, target_kind, target_ref, options) values ('new', 'test', $1, $2, $3::text::jsonb)`, c.kind, c.ref, c.options)
		err := w.try(set, c.kind, c.ref, c.options)
		if err == nil { // told above
			continue
		}
		if text := err.Message + err.Hint; err.Hint == "" || strings.Contains(text, "hunter2") {
			t.Errorf("%s %s %s: %s", c.kind, c.ref, c.options, text)
		}
	}
	if got := one[string](w, kept); got != before {
		t.Errorf("the route is %s, was %s", got, before)
	}
	w.wantRows(`select count(*)::text from tidemark.outbound_route where route_code = 'new'`, "0")
	err := w.try(set, "webhook", hook, `{"secrett": "x"}`)
	if want := "Options of webhook: secret, unsigned, headers, format, rate_per_second."; err.Hint != want {
		t.Errorf("the hint is %q, want %q", err.Hint, want)
	}
}

// What came by another way, such as a restored dump, can be switched off, and not on.
func TestBadTargetIsSwitchedOff(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`alter table tidemark.outbound_route disable trigger outbound_route_target; update tidemark.outbound_route set target_kind = 'htpp';
		alter table tidemark.outbound_route enable trigger outbound_route_target`)
	w.exec(`select tidemark.route_set('app', '{"dry_run": true}')`)
	w.refused("TM005", `there is no kind of target "htpp"`, `select tidemark.route_set('app', '{"dry_run": false}')`)
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.refused("TM005", `there is no kind of target "htpp"`, `select tidemark.route_set('app', '{"enabled": true}')`)
}

// The check in Go says what the one in SQL says, of the cases above and of random ones. The kinds are those by which
// events are decided.
func TestTargetsAgreeWithSQL(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "targets")
	inSQL := func(kind, ref, options string) string {
		return one[string](s, `select coalesce(p.problem, '') || E'\n' || coalesce(p.hint, '') from tidemark.target_problem($1, $2, $3::text::jsonb) p`, kind, ref, options)
	}
	inGo := func(kind, ref, options string) string {
		if p := target.Check(kind, ref, json.RawMessage(options)); p != nil {
			return p.Text + "\n" + p.Hint
		}
		return "\n"
	}
	for _, c := range targetCases {
		got, want := inGo(c.kind, c.ref, c.options), inSQL(c.kind, c.ref, c.options)
		if got != want || !strings.HasPrefix(got, c.problem+"\n") {
			t.Errorf("%s %s %s: Go says %q, SQL %q", c.kind, c.ref, c.options, got, want)
		}
	}
	for _, k := range target.Kinds() {
		if !one[bool](s, `select tidemark.target_is_known($1)`, k.Kind) {
			t.Errorf("events of routes to %s cannot be decided", k.Kind)
		}
		if text := target.Check(k.Kind, k.Example, json.RawMessage(`{}`)); text != nil && len(k.OneOf) == 0 {
			t.Errorf("the example of %s: %v", k.Kind, text)
		}
	}

	texts := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9._*>$/?&=:@#"' -]{0,20}`), rapid.StringMatching(`https?://[a-z0-9.:@/?&=_-]{0,20}`),
		rapid.StringMatching(`.{0,12}`), rapid.SampledFrom([]string{"x", "api_key", "X-Token", "Bearer x", "main", "json", "whsec_x"}))
	var kinds []string
	for _, k := range target.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	var names []string
	for _, k := range kinds {
		for _, o := range target.Options(k) {
			names = append(names, o.Option)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string) string {
			return strings.ReplaceAll(strings.ToValidUTF8(texts.Draw(r, name), ""), "\x00", "")
		}
		value := func() any {
			switch rapid.IntRange(0, 5).Draw(r, "type") {
			case 0:
				return rapid.IntRange(-1, 40000).Draw(r, "number")
			case 1:
				return rapid.Bool().Draw(r, "bool")
			case 2:
				return map[string]any{text("header"): text("value"), text("named"): map[string]any{"secret": text("secret")}}
			default:
				return text("text")
			}
		}
		options := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(r, "options") {
			options[rapid.SampledFrom(names).Draw(r, "name")] = value()
		}
		written, err := json.Marshal(options)
		if err != nil {
			r.Fatal(err)
		}
		kind, ref := rapid.SampledFrom(kinds).Draw(r, "kind"), text("ref")
		got, _, _ := strings.Cut(inGo(kind, ref, string(written)), "\n")
		want, _, _ := strings.Cut(inSQL(kind, ref, string(written)), "\n")
		// A value is written by each in its own way.
		if g, w := beforeIs(got), beforeIs(want); g != w {
			r.Errorf("%s %q %s: Go says %q, SQL %q", kind, ref, written, got, want)
		}
	})
}

// A name of a parameter that is a secret's is found however it is encoded, once or more, in the query or in the path.
func TestEncodedParametersAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "targets")
	rapid.Check(t, func(r *rapid.T) {
		name := ""
		for _, c := range []byte(rapid.SampledFrom([]string{"token", "api_key", "X-Auth", "sig", "password", "access-key", "code"}).Draw(r, "name")) {
			escaped := string(c)
			for range rapid.IntRange(0, 2).Draw(r, "times") {
				plain := escaped
				escaped = ""
				for _, c := range []byte(plain) {
					escaped += fmt.Sprintf(rapid.SampledFrom([]string{"%%%02x", "%%%02X"}).Draw(r, "case"), c)
				}
			}
			name += escaped
		}
		ref := "https://x/hooks" + rapid.SampledFrom([]string{"?", "?a=1&", "?a=1;", ";", ";a/b;", "?a&&", "?next=/?"}).Draw(r, "before") + name +
			rapid.SampledFrom([]string{"=hunter2", "", "=hunter2&b=1", "&b", "=%20"}).Draw(r, "after")
		inGo := target.Check("webhook", ref, json.RawMessage(`{"secret": "x"}`))
		inSQL := one[bool](s, `select p.problem is not null from tidemark.target_problem('webhook', $1, '{"secret": "x"}') p`, ref)
		if inGo == nil || !inSQL {
			r.Errorf("%s: refused by Go: %t, by SQL: %t", ref, inGo != nil, inSQL)
		}
	})
}

func beforeIs(problem string) string {
	before, _, _ := strings.Cut(problem, " is ")
	return before
}
