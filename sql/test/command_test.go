package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A service is one of a test: its name and its role are of this database alone, since roles are of the cluster.
type service struct {
	session
	name string
	n    int
}

// Its function does what the payload says: effect, errors of each kind, and attempts to do more than it may.
const commandFunction = `
create schema app;
create table app.invoice (id bigint primary key, cents int constraint cents_is_positive check (cents > 0), by name not null default current_user);
create table app.flag (name text primary key);
create function app.charge(payload jsonb, context jsonb) returns jsonb language plpgsql as $$
begin
	insert into invoice (id, cents) values ((payload ->> 'id')::bigint, coalesce((payload ->> 'cents')::int, 1));
	if payload ? 'sql' and not exists (select from flag where name = 'healed') then
		execute payload ->> 'sql';
	end if;
	return jsonb_build_object('id', payload -> 'id', 'tenant', current_setting('tidemark.tenant'), 'key', context -> 'idempotency_key');
end $$;`

// serve registers a service with the command charge, version 1, live, and its gates open.
func serve(t *testing.T, db *tidemarktest.DB) *service {
	t.Helper()
	s := &service{session: open(t, db, "operator"), name: "s" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")}
	role := "tidemark_service_" + s.name
	t.Cleanup(func() { s.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
	s.exec(commandFunction)
	s.exec(`select tidemark.service_set($1)`, s.name)
	s.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	s.command("charge", `{"function": "app.charge", "payload_schema": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
		"id": {"type": "integer", "minimum": 1}, "cents": {"type": "integer"}, "sql": {"type": "string"}, "list": {"type": "array", "items": {"enum": [1, 2]}}}}}`)
	s.exec(`select tidemark.command_allow($1, 'shop', tenants => '{*}')`, s.name)
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, s.name)
	s.exec(`select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, s.name)
	s.command("charge", `{"enabled": true, "dry_run": false}`)
	return s
}

func (s *service) command(name, changes string) {
	s.t.Helper()
	s.exec(`select tidemark.command_set($1, $2, 1, $3::jsonb)`, s.name, name, changes)
}

// envelope of the command charge; changes are members to replace, or null to leave out.
func (s *service) envelope(key, payload, changes string) string {
	s.t.Helper()
	s.n++
	members := map[string]any{
		"event_id": fmt.Sprintf("00000000-0000-7000-8000-%012d", s.n), "service": s.name, "command": "charge", "command_version": 1, "schema_version": 1,
		"payload": json.RawMessage(payload), "idempotency_key": key, "occurred_at": "2026-01-31T12:00:00Z",
		"trace_id": "0123456789abcdef0123456789abcdef", "metadata": json.RawMessage(`{"producer": "shop"}`),
	}
	var changed map[string]json.RawMessage
	if changes != "" {
		if err := json.Unmarshal([]byte(changes), &changed); err != nil {
			s.t.Fatal(err)
		}
	}
	for name, value := range changed {
		if string(value) == "null" {
			delete(members, name)
		} else {
			members[name] = value
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// A commandResult is the result document.
type commandResult struct {
	EventID  string          `json:"event_id"`
	Status   string          `json:"status"`
	Code     string          `json:"error_code"`
	Message  string          `json:"error_message"`
	At       string          `json:"processed_at"`
	Result   json.RawMessage `json:"result"`
	Attempts int             `json:"attempts"`
	First    string          `json:"original_event_id"`
	Was      string          `json:"original_status"`
	DryRun   bool            `json:"dry_run"`
}

func (a commandResult) String() string { return strings.TrimSpace(a.Status + " " + a.Code) }

func (s session) run(envelope string) commandResult {
	s.t.Helper()
	return parseResult(s.t, one[string](s, `select tidemark.command_run($1)::text`, envelope))
}

func parseResult(t *testing.T, text string) (a commandResult) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(text, err)
	}
	return a
}

// wantRun runs a command and compares status and code.
func (s *service) wantRun(want, key, payload string) commandResult {
	s.t.Helper()
	got := s.run(s.envelope(key, payload, ""))
	if got.String() != want {
		s.t.Errorf("%s %s: got %q (%s), want %q", key, payload, got, got.Message, want)
	}
	return got
}

func (s session) wantInvoices(want ...string) {
	s.t.Helper()
	s.wantRows(`select id::text from app.invoice order by id`, want...)
}

// CM4, CM5: the effect, its claim and its result are there together; asked again, the answer is the stored one.
func TestCommandRun(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	text := one[string](s.session, `select tidemark.command_run($1)::text`, s.envelope("k", `{"id": 1}`, `{"metadata": {"producer": "shop", "tenant": "acme"}}`))
	first := parseResult(t, text)
	equal(t, "status", first.String(), "processed")
	equal(t, "result", string(first.Result), `{"id": 1, "key": "k", "tenant": "acme"}`)
	// The eight members of S3 come first.
	equal(t, "members", column[string](s.session, `select k from json_object_keys($1::json) k`, text), []string{
		"event_id", "service", "command", "status", "error_code", "error_message", "processed_at", "trace_id",
		"command_version", "idempotency_key", "result", "attempts", "original_event_id", "original_status",
	})
	s.wantRows(`select by::text from app.invoice`, "tidemark_service_"+s.name)

	again := s.run(s.envelope("k", `{"id": 1.0}`, `{"metadata": {"producer": "shop", "tenant": "acme"}, "schema_version": 1}`))
	equal(t, "again", again.String(), "duplicate")
	equal(t, "stored", []string{string(again.Result), again.At, again.First, again.Was}, []string{string(first.Result), first.At, first.EventID, "processed"})
	if again.EventID == first.EventID {
		t.Error("the answer has the id of another asker")
	}
	for name, changes := range map[string]string{
		"another payload": `{"payload": {"id": 2}, "metadata": {"producer": "shop", "tenant": "acme"}}`,
		"another tenant":  `{"metadata": {"producer": "shop", "tenant": "other"}}`,
		"no tenant":       `{}`,
	} {
		reused := s.run(s.envelope("k", `{"id": 1}`, changes))
		if reused.String() != "failed_terminal idempotency.key_reused" || string(reused.Result) != "null" {
			t.Errorf("%s: %v %s", name, reused, reused.Result)
		}
	}
	s.wantInvoices("1")
	s.wantRows(`select state || ' ' || via || ' ' || attempts from tidemark.command_claim`, "processed psql 1")
	s.wantRows(`select type || ' ' || key || ' ' || coalesce(payload ->> 'status', payload ->> 'reason') from tidemark.outbox where domain = 'commands' order by seq`,
		"result."+s.name+" k processed", "result."+s.name+" k duplicate",
		"dead_letter."+s.name+" k idempotency.key_reused", "result."+s.name+" k failed_terminal",
		"dead_letter."+s.name+" k idempotency.key_reused", "result."+s.name+" k failed_terminal",
		"dead_letter."+s.name+" k idempotency.key_reused", "result."+s.name+" k failed_terminal")
	// A statement rolled back leaves nothing behind.
	s.begin()
	s.wantRun("processed", "gone", `{"id": 9}`)
	s.rollback()
	s.wantRows(`select idempotency_key from tidemark.command_claim`, "k")
	s.wantInvoices("1")
	// The same as json, jsonb and varchar; a type of another role's never gets cast.
	for _, cast := range []string{"json", "jsonb", "varchar", "text"} {
		if got := parseResult(t, one[string](s.session, `select tidemark.command_run($1::`+cast+`)::text`, s.envelope("k", `{"id": 1}`, `{"metadata": {"producer": "shop", "tenant": "acme"}}`))); got.Status != "duplicate" {
			t.Errorf("%s: %v", cast, got)
		}
	}
	s.refused("TM005", "must be text, json or jsonb", `select tidemark.command_run(array['{}'])`)
}

// CM1: each of the ten members missing, null, of a wrong type; one unknown, one doubled, and all that is no envelope.
func TestCommandEnvelope(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	bad := map[string]string{}
	for _, member := range []string{"event_id", "service", "command", "command_version", "schema_version", "payload", "idempotency_key", "occurred_at", "trace_id", "metadata"} {
		bad[s.envelope("k", `{"id": 1}`, `{"`+member+`": null}`)] = member + ": found nothing, wanted it"
		for found, value := range map[string]string{"array": "[]", "boolean": "true"} {
			bad[s.envelope("k", `{"id": 1}`, `{"`+member+`": `+value+`}`)] = member + ": found " + found
		}
		whole := s.envelope("k", `{"id": 1}`, "")
		bad[strings.Replace(whole, `"`+member+`":`, `"`+member+`":null,"_`+member+`":`, 1)] = "_" + member
		bad[`{"`+member+`": 1, `+whole[1:]] = member + ": found it twice"
	}
	for changes, message := range map[string]string{
		`{"surplus": 1}`:                                          "surplus: found a member that the envelope does not have",
		`{"event_id": "x"}`:                                       "event_id: found a text that is no uuid",
		`{"service": "Billing"}`:                                  "service: found no service's name",
		`{"command": "` + s.name + `.charge"}`:                    "command: found the name with its service",
		`{"command": "a b"}`:                                      "command: found no command's name",
		`{"command_version": 0}`:                                  "command_version: found a number that is no version",
		`{"schema_version": 1.5}`:                                 "schema_version: found a number that is no version",
		`{"idempotency_key": ""}`:                                 "idempotency_key: found 0 characters",
		`{"idempotency_key": "` + strings.Repeat("x", 201) + `"}`: "idempotency_key: found 201 characters",
		`{"occurred_at": "yesterday"}`:                            "occurred_at: found a text that is no time",
		`{"occurred_at": "2026-02-30T00:00:00Z"}`:                 "occurred_at: found a text that is no time",
		`{"trace_id": "1"}`:                                       "trace_id: found a text that is no trace id",
		`{"metadata": {}}`:                                        "metadata.producer: found nothing",
		`{"metadata": {"producer": 1}}`:                           "metadata.producer: found number, wanted string",
		`{"metadata": {"producer": "shop", "x": 1}}`:              "metadata.x: found a member that metadata does not have",
		`{"metadata": {"producer": "shop", "tenant": null}}`:      "metadata.tenant: found null, wanted string",
		`{"payload": {"a": [1e400]}}`:                             "envelope: found a number that a double cannot hold",
		`{"payload": {"a": "\u0000"}}`:                            "envelope: found \\u0000",
		`{"payload": {"a": "\ud800"}}`:                            "envelope: found \\u0000, half of a surrogate pair",
	} {
		bad[s.envelope("k", `{"id": 1}`, changes)] = message
	}
	for text, message := range map[string]string{
		"": "envelope: found nothing", "nope": "envelope: found text that is not one JSON document", "{} {}": "envelope: found text that is not one JSON document",
		"[]": "envelope: found array", "\x01\x02{}": "Confluent", strings.Repeat("[", 100000): "not one JSON document",
		`{"payload": ` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`: "deeper than 64 levels",
		`{"payload": {"a": {"b": 1, "b": 2}}}`:                                   "payload/a/b: found it twice",
		`{"payload": [7, {"a/~": [{"x": 1}, {"c": [], "b": 1, "b": 2}]}]}`:       "payload/1/a~1~0/1/b: found it twice",
		`{"` + strings.Repeat("k", 300) + `": {"b": 1, "b": 2}}`:                 "kkk: found it twice",
	} {
		bad[text] = message
	}
	for text, message := range bad {
		if got := s.run(text); got.String() != "rejected envelope.invalid" || !strings.Contains(got.Message, message) {
			t.Errorf("%.300s: got %v: %s, want %q", text, got, got.Message, message)
		}
	}
	for text, code := range map[string]string{
		`{"payload": "` + strings.Repeat("x", 1<<20) + `"}`:                                                                   "envelope.too_large",
		s.envelope("k", `{"id": 1}`, `{"metadata": {"producer": "shop", "context": {"x": "`+strings.Repeat("x", 9000)+`"}}}`): "envelope.too_large",
		`{"specversion": "1.0"}`: "envelope.unsupported_version",
	} {
		if got := s.run(text); got.String() != "rejected "+code {
			t.Errorf("%.100s: got %v, want %s", text, got, code)
		}
	}
	s.wantInvoices()
	s.wantRows(`select idempotency_key from tidemark.command_claim`)
	s.wantRun("processed", "k", `{"id": 1}`)
	// Numbers that are whole are versions.
	if got := s.run(s.envelope("k", `{"id": 1}`, `{"command_version": 1.0, "schema_version": 1e0}`)); got.Status != "duplicate" {
		t.Errorf("1.0: %v %s", got, got.Message)
	}
}

// CM2, CM3: what is not registered or not allowed does not run; the key stays free.
func TestCommandRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.exec(`select tidemark.command_allow($1, 'branch', 'charge', 1, '{acme}'), tidemark.command_allow($1, 'plain', 'charge'), tidemark.command_allow($1, 'none', tenants => '{}')`, s.name)
	for changes, want := range map[string]string{
		`{"service": "no-such-service"}`:                                 "rejected contract.unknown_service",
		`{"command": "refund"}`:                                          "rejected contract.unknown_command",
		`{"command_version": 2}`:                                         "rejected contract.unsupported_version",
		`{"schema_version": 2}`:                                          "rejected contract.unknown_schema_version",
		`{"payload": {}}`:                                                "rejected contract.payload_invalid",
		`{"payload": {"id": "1"}}`:                                       "rejected contract.payload_invalid",
		`{"payload": {"id": 0}}`:                                         "rejected contract.payload_invalid",
		`{"payload": {"id": 1, "x": 1}}`:                                 "rejected contract.payload_invalid",
		`{"payload": {"id": 1, "list": [1, 3]}}`:                         "rejected contract.payload_invalid",
		`{"metadata": {"producer": "stranger"}}`:                         "rejected identity.producer_not_allowed",
		`{"metadata": {"producer": "branch", "tenant": "other"}}`:        "rejected identity.tenant_not_allowed",
		`{"metadata": {"producer": "branch"}}`:                           "rejected identity.tenant_not_allowed",
		`{"metadata": {"producer": "plain", "tenant": "acme"}}`:          "rejected identity.tenant_not_allowed",
		`{"metadata": {"producer": "none", "tenant": "acme"}}`:           "rejected identity.tenant_not_allowed",
		`{"metadata": {"producer": "none"}}`:                             "rejected identity.tenant_not_allowed",
		`{"metadata": {"producer": "stranger"}, "payload": {"id": "x"}}`: "rejected identity.producer_not_allowed",
	} {
		if got := s.run(s.envelope("k", `{"id": 1}`, changes)); got.String() != want {
			t.Errorf("%s: got %v (%s), want %s", changes, got, got.Message, want)
		} else if strings.Contains(got.Message, "stranger") || strings.Contains(got.Message, `"1"`) {
			t.Errorf("%s: the message quotes it: %s", changes, got.Message)
		}
	}
	s.wantInvoices()
	s.wantRows(`select idempotency_key from tidemark.command_claim`)
	// A failure of identity has a dead letter, and no result; the others have a result.
	s.wantRows(`select distinct payload ->> 'error_code' from tidemark.outbox where type like 'result.%' and payload ->> 'error_code' like 'identity.%'`)
	s.wantRows(`select distinct error_code from tidemark.dead_letter order by 1`, "identity.producer_not_allowed", "identity.tenant_not_allowed")
	s.wantRows(`select count(*)::text from tidemark.outbox where type like 'result.%'`, "8")
	equal(t, "all violations", s.run(s.envelope("k", `{"cents": "x", "list": [3], "y": 1}`, "")).Message,
		"payload /cents: type: found string, wanted \"integer\"; /id: required, and missing; /list/0: enum: wanted one of [1, 2]; /y: additionalProperties: the schema names no such member")
	s.exec(`select tidemark.service_set($1, '{"unknown_command": "both"}')`, s.name)
	s.run(s.envelope("k", `{}`, `{"command": "refund"}`))
	s.wantRows(`select error_code from tidemark.dead_letter where error_code like 'contract.%'`, "contract.unknown_command")
	for _, allowed := range []string{`{"producer": "branch", "tenant": "acme"}`, `{"producer": "plain"}`, `{"producer": "shop"}`, `{"producer": "shop", "tenant": "any"}`} {
		if got := s.run(s.envelope(allowed, fmt.Sprintf(`{"id": %d}`, len(allowed)), `{"metadata": `+allowed+`}`)); got.Status != "processed" {
			t.Errorf("%s: %v %s", allowed, got, got.Message)
		}
	}
	s.exec(`select tidemark.command_disallow($1, 'shop', reason => 'left')`, s.name)
	s.wantRun("rejected identity.producer_not_allowed", "k", `{"id": 77}`)
	// An age is that of the record, not what the envelope says.
	s.wantRows(`select p.code from jsonb_build_object('service', '`+s.name+`', 'command', 'charge', 'command_version', 1, 'schema_version', 1,
		'producer', 'plain', 'payload', '{"id": 1}'::jsonb, 'occurred_at', '1999-01-01T00:00:00Z', 'record_at', now() - interval '31 days') call, tidemark.command_problem(call, tidemark.command_of(call)) p`, "idempotency.expired")
}

// A closed gate, a command that is off and a copy say so, and do nothing; in dry run the effect is rolled back and on record.
func TestCommandSwitches(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	wantClosed := func(text string) {
		t.Helper()
		s.refused("TM009", text, `select tidemark.command_run($1)`, s.envelope("k", `{"id": 1}`, ""))
	}
	for _, gate := range []string{"commands.enabled", "commands." + s.name + ".enabled"} {
		s.exec(`select tidemark.gate_set($1, false)`, gate)
		wantClosed("closed by " + gate)
		s.refused("TM009", "closed by "+gate, `select tidemark.command_run($1)`, s.envelope("k", `{"id": "x"}`, ""))
		s.exec(`select tidemark.gate_set($1, true)`, gate)
	}
	s.command("charge", `{"enabled": false}`)
	wantClosed("which is off")
	s.command("charge", `{"dry_run": true}`)
	wantClosed("which is off")
	s.command("charge", `{"when_disabled": "reject"}`)
	s.wantRun("rejected contract.disabled", "k", `{"id": 1}`)
	s.command("charge", `{"enabled": true, "dry_run": true}`)
	for range 2 { // no claim stays
		if got := s.wantRun("processed", "k", `{"id": 1}`); !got.DryRun || string(got.Result) != `{"id": 1, "key": "k", "tenant": ""}` {
			t.Errorf("dry run: %v %s", got, got.Result)
		}
	}
	s.wantRun("failed_terminal sql.constraint", "k", `{"id": 1, "cents": 0}`)
	s.wantRows(`select why || ' ' || (document ->> 'status') from tidemark.command_record order by id`, "dry_run processed", "dry_run processed", "dry_run failed_terminal")
	s.wantRows(`select type from tidemark.outbox where domain = 'commands' and payload ->> 'status' <> 'rejected'`)
	s.exec(`select tidemark.stage_set('dry_run', 'test')`)
	s.refused("TM008", "this installation is not live", `select tidemark.command_set($1, 'charge', 1, '{"dry_run": false}')`, s.name)
	s.wantRun("processed", "k", `{"id": 1}`)
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.command("charge", `{"dry_run": false}`)
	s.exec(`update tidemark.stage set database = 'another'`)
	wantClosed("the stage")
	s.wantInvoices()
	s.wantRows(`select idempotency_key from tidemark.command_claim`)
	// Asked for, a live command runs dry.
	s.exec(`update tidemark.stage set database = current_database()`)
	equal(t, "dry run", parseResult(t, one[string](s.session, `select tidemark.command_run($1, dry_run => true)::text`, s.envelope("k", `{"id": 1}`, ""))).DryRun, true)
	s.wantInvoices()
	s.begin()
	s.exec(`set transaction isolation level repeatable read`)
	s.refused("TM006", "READ COMMITTED", `select tidemark.command_run('{}')`)
	s.rollback()
}

// CM6: what an error means is told by its SQLSTATE: the effect is rolled back first, then the failure is recorded.
func TestCommandFailures(t *testing.T) {
	t.Parallel()
	wantFailures(t, serve(t, tidemarktest.NewDB(t)))
}

// CM6: also where the server's messages are not English.
func TestCommandFailuresInAnotherLanguage(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	abroad := false
	for _, locale := range []string{"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "ja_JP.UTF-8"} {
		if _, err := db.Pool.Exec(t.Context(), fmt.Sprintf(`alter database %s set lc_messages = %q`, db.Name, locale)); err != nil {
			continue // the machine does not have it
		}
		_, err := db.Connect(t).Exec(t.Context(), `select from nothing`)
		if abroad = err != nil && !strings.Contains(err.Error(), "does not exist"); abroad {
			break
		}
	}
	if !abroad {
		t.Skip("this server has English messages only: TIDEMARK_TEST_URL may name one that was started where a locale such as de_DE.UTF-8 is")
	}
	wantFailures(t, serve(t, db))
}

func wantFailures(t *testing.T, s *service) {
	t.Helper()
	s.command("charge", `{"terminal": ["XX777"], "timeout": "100 ms"}`)
	for _, c := range []struct{ sql, want, message string }{
		{`insert into app.invoice values (1, 0)`, "failed_terminal sql.constraint", "a constraint of the database is violated (cents_is_positive)"},
		{`select 'secret'::int`, "failed_terminal sql.data", "a value cannot be read, or is out of range (22P02)"},
		{`do 'begin raise ''no credit''; end'`, "failed_terminal sql.business_rule", "no credit"},
		{`do 'begin raise ''told'' using errcode = ''XX777''; end'`, "failed_terminal sql.business_rule", "told"},
		// The code says it, in whatever language the text is.
		{`do 'begin raise ''duplicate key value violates unique constraint'' using errcode = ''22000''; end'`, "failed_terminal sql.data", "a value cannot be read, or is out of range (22000)"},
		{`do 'begin raise ''doppelter Wert'' using errcode = ''23505''; end'`, "failed_terminal sql.constraint", "a constraint of the database is violated"},
		{`do 'begin assert false; end'`, "failed_terminal runtime.internal", "the function raised an error (P0004)"},
		{`select 1 / (select 0)`, "failed_terminal sql.data", "a value cannot be read, or is out of range (22012)"},
		{`select from tidemark.setting`, "failed_retryable sql.permission", "a right is missing (42501)"},
		{`select from app.nothing`, "failed_retryable sql.undefined", "a table is missing (42P01)"},
		{`do 'begin raise sqlstate ''40P01''; end'`, "failed_retryable runtime.retries_exhausted", "it collided with another transaction (40P01)"},
		{`select pg_sleep(0.11)`, "failed_retryable runtime.timeout", "the command took"},
	} {
		payload, err := json.Marshal(map[string]any{"id": 1, "sql": c.sql})
		if err != nil {
			t.Fatal(err)
		}
		got := s.wantRun(c.want, c.sql, string(payload))
		if !strings.HasPrefix(got.Message, c.message) {
			t.Errorf("%s: %q, want %q", c.sql, got.Message, c.message)
		}
		again := s.run(s.envelope(c.sql, string(payload), ""))
		equal(t, c.sql, []string{again.Status, again.Code, again.Message, again.At, again.Was}, []string{"duplicate", got.Code, got.Message, got.At, got.Status})
	}
	s.wantInvoices()
	s.wantRows(`select count(*)::text from tidemark.dead_letter`, "8")
	s.wantRows(`select convert_from(value, 'UTF8')::jsonb ->> 'service' from tidemark.command_record limit 1`, s.name)
	s.wantRows(`select kind || ' ' || subject from tidemark.finding where closed_at is null and kind like 'command%'`, "command_circuit "+s.name+".charge/v1")
	// An outage that lets itself be recorded is of this command: it waits.
	for _, state := range []string{"08006", "53100", "57P01", "58030"} {
		s.wantRun("failed_retryable runtime.retries_exhausted", state, fmt.Sprintf(`{"id": 1, "sql": "do 'begin raise sqlstate ''%s''; end'"}`, state))
	}
	// One that was canceled before its time is not to blame.
	s.refused("57014", "stop", `select tidemark.command_run($1)`, s.envelope("out", `{"id": 1, "sql": "do 'begin raise ''stop'' using errcode = ''57014''; end'"}`, ""))
	s.wantRows(`select idempotency_key from tidemark.command_claim where idempotency_key = 'out'`)
	s.command("charge", `{"timeout": "10 s"}`)
	s.exec(`create function app.big(payload jsonb) returns json language sql as $$ select json_build_object('x', repeat('x', 950000)) $$`)
	s.command("big", `{"function": "app.big", "enabled": true, "dry_run": false}`)
	equal(t, "big", s.run(s.envelope("big", `{}`, `{"command": "big"}`)).String(), "failed_terminal runtime.result_too_large")
}

// CM2: a result that does not fit its schema takes the effect back, alone and among others; once the function is mended, its dead letter is
// replayed.
func TestCommandResultFitsItsSchema(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.command("charge", `{"result_schema": {"type": "object", "additionalProperties": false, "required": ["id", "tenant"],
		"properties": {"id": {"type": "integer", "maximum": 1}, "tenant": {"const": ""}}}}`)
	page := []string{p.record(0, "a", `{"id": 1}`, `{}`), p.record(1, "b", `{"id": 2}`, `{}`)}
	got := p.run(p.envelope("c", `{"id": 3}`, ""))
	equal(t, "answer", got.String(), "failed_terminal runtime.result_invalid")
	equal(t, "message", got.Message, "the result does not fit its schema: /id: maximum: wanted 1; /key: additionalProperties: the schema names no such member")
	refused := p.wantCode("22000", "batch", page...)
	equal(t, "refusal", refused.ColumnName+" "+refused.DataTypeName+" "+refused.ConstraintName, "1 terminal runtime.result_invalid")
	p.wantPass(`ran 1 {"failed_terminal": 1}`, "alone", page[0])
	p.wantPass(`ran 2 {"failed_terminal": 1}`, "alone", page[1])
	p.wantInvoices()
	p.wantRows(`select error_code || ' ' || count(*) from tidemark.dead_letter where resolved_at is null group by error_code`, "runtime.result_invalid 3")

	p.exec(`create function app.nothing(payload jsonb) returns void language sql as ''`)
	p.command("nothing", `{"function": "app.nothing", "enabled": true, "dry_run": false, "result_schema": {"type": "object"}}`)
	equal(t, "no result", p.run(p.envelope("n", `{}`, `{"command": "nothing"}`)).String(), "failed_terminal runtime.result_invalid")
	p.command("nothing", `{"result_schema": {"type": "null"}}`)
	equal(t, "null", p.run(p.envelope("m", `{}`, `{"command": "nothing"}`)).String(), "processed")

	p.command("charge", `{"result_schema": null}`)
	p.exec(`select tidemark.command_replay($1, code => 'runtime.result_invalid', failed => true, reason => 'mended')`, p.name)
	p.exec(`select * from tidemark.command_retry()`)
	p.wantInvoices("1", "2", "3")
}

// Go and SQL write the same canonical form: internal/command/testdata has what both are held to.
func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "canonical")
	text, err := os.ReadFile("../../internal/command/testdata/canonical.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ In, Out string }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 10 {
		t.Fatal(err, len(vectors))
	}
	for _, v := range vectors {
		if diff := cmp.Diff(v.Out, one[string](s, `select tidemark.canonical_json($1::text::jsonb)`, v.In)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", v.In, diff)
		}
	}
	s.wantRows(`select left(encode(tidemark.command_fingerprint('billing', 'acme', 'charge.capture', 1, '{"cents":1.2e3,"invoice":7.0}'), 'hex'), 8)`, "b897e30d")
	s.wantRows(`select count(distinct tidemark.command_fingerprint('a', t, 'c', 1, p))::text from (values (null, '{}'::jsonb), ('t', '{}'), ('', '{}'), ('t', '{"n": 9007199254740992}'), ('t', '{"n": 9007199254740993}')) x (t, p)`, "5")
}

// A megabyte costs what a megabyte does: no number is written out, no name is repeated for each element below it. The temporary
// files of the session tell, which statement_timeout and a machine under load do not.
func TestCommandEnvelopeIsCheap(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "cheap")
	s.exec(`set temp_file_limit = '300MB'`)
	name := strings.Repeat("k", 100000)
	elements := strings.TrimSuffix(strings.Repeat("[],", 20000), ",")
	for _, text := range []string{`{"` + name + `":[` + elements + `]}`, `{"payload":{"` + name + `":[` + elements + `], "a": 1, "a": 2}}`} {
		if got := one[string](s, `select code from tidemark.command_envelope($1)`, text); got != "envelope.invalid" {
			t.Error(got)
		}
	}
	s.wantRows(`select octet_length(tidemark.command_place(('{"' || repeat('k', 100000) || '": {"a": 1}}')::json, '{1}', 'a'))::text`, "200")
	s.wantRows(`select code from tidemark.command_envelope('{"payload": {"a": [' || rtrim(repeat('1e131000,', 9000), ',') || ']}}')`, "envelope.invalid")
	s.wantRows(`select max(octet_length(e))::text || ' ' || count(*) from tidemark.contract_errors(jsonb_build_object(repeat('k', 100000), (select jsonb_agg(i) from generate_series(1, 2000) i)),
		'{"additionalProperties": {"items": {"type": "string"}}}') e`, "237 2000")
	// Too many items: they are not looked at.
	s.wantRows(`select e from tidemark.contract_errors('[1, 2, 3]', '{"maxItems": 2, "items": {"type": "string"}}') e`, "/: maxItems: wanted 2, found 3")
}

// The plan of a session that began when all claims had expired reads no more of them when they are many.
func TestCommandReadsNoOtherClaims(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.exec(`vacuum tidemark.command_claim`)
	s.wantRun("processed", "a", `{"id": 1}`)
	s.begin()
	s.wantRun("processed", "b", `{"id": 2}`)
	s.wantRows(`select seq_scan::text from pg_stat_xact_user_tables where relid = 'tidemark.command_claim'::regclass`, "0")
	s.commit()
}
