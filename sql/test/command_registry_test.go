package test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// SE1, CM3: an operator without superuser registers services: with CREATEROLE the role is made, without it the error has the
// statements for a role that may, and after them it works.
func TestServiceNeedsARole(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	admin := login(t, db, "admin", "tidemark_admin")
	super := open(t, db, "superuser")
	suffix := strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")
	for i, may := range []bool{false, true} {
		service := fmt.Sprintf("%c%s", 'a'+i, suffix)
		role := "tidemark_service_" + service
		t.Cleanup(func() { super.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
		if may {
			// As an installer without superuser made Tidemark's roles, and hands them on.
			super.exec(`reset session authorization; alter role ` + admin.name + ` createrole`)
		} else {
			err := admin.session.try(`select tidemark.service_set($1)`, service)
			if err == nil || err.Code != "TM005" || !strings.Contains(err.Message, "needs the role "+role) {
				t.Fatalf("without CREATEROLE: %v", err)
			}
			_, statements, _ := strings.Cut(err.Hint, "runs: ")
			statements, _, _ = strings.Cut(statements, "; then call")
			super.exec(statements)
		}
		admin.exec(`select tidemark.service_set($1, '{"description": "A test."}', 'because')`, service)
		admin.wantRows(`select rolcanlogin::text from pg_roles where rolname = '`+role+`'`, "false")
		admin.exec(`select tidemark.service_set($1)`, service)
		admin.wantRows(`select action || ' ' || reason from tidemark.audit where object = 'service `+service+`' order by id`, "insert because", "update because")

		// The function is the application's: its owner grants it, unless the operator owns it.
		super.exec(fmt.Sprintf(`create schema s%d; create function s%[1]d.f(payload jsonb) returns void language sql as ''; revoke all on function s%[1]d.f from public`, i))
		change := fmt.Sprintf(`{"function": "s%d.f"}`, i)
		err := admin.session.try(`select tidemark.command_set($1, 'go', 1, $2::jsonb)`, service, change)
		if err == nil || err.Code != "TM005" || !strings.Contains(err.Hint, "grant usage on schema") || !strings.Contains(err.Hint, "grant execute on function") {
			t.Fatalf("without a grant: %+v", err)
		}
		if may {
			super.exec(fmt.Sprintf(`alter schema s%d owner to %s; alter function s%[1]d.f owner to %[2]s`, i, admin.name))
		} else {
			_, statements, _ := strings.Cut(err.Hint, "runs: ")
			statements, _, _ = strings.Cut(statements, "; then call")
			super.exec(statements)
		}
		admin.exec(`select tidemark.command_set($1, 'go', 1, $2::jsonb, 'new')`, service, change)
		admin.wantRows(`select pg_get_userbyid(proowner) || ' ' || prosecdef from pg_proc where proname = 'command_' || (select id from tidemark.command where service = '`+service+`')`, role+" true")
		admin.wantRows(`select has_schema_privilege('`+role+`', 'tidemark', 'create')::text || has_schema_privilege('`+role+`', 'tidemark', 'usage')`, "falsefalse")
		if may {
			super.exec(fmt.Sprintf(`alter schema s%d owner to current_user; alter function s%[1]d.f owner to current_user`, i))
		}
	}
	admin.wantRows(`select detail from tidemark.verify() where "check" = 'services'`, "")
}

// What cannot be registered is refused, with what is wrong and what to do.
func TestCommandRegistry(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	set := `select tidemark.command_set('` + s.name + `', $1, 1, $2::jsonb)`
	s.exec(`create function app.two(jsonb) returns void language sql as ''; create function app.two(jsonb, jsonb) returns void language sql as '';
		create function app.number(jsonb) returns int language sql as 'select 1'; create function app.many(jsonb) returns setof jsonb language sql as 'select $1'`)
	for _, c := range []struct{ command, changes, text string }{
		{"a", `{}`, "needs either function or statement"},
		{"a", `{"function": "app.charge", "statement": "select 1"}`, "needs either function or statement"},
		{"a", `{"function": "charge"}`, "is not schema.function"},
		{"a", `{"function": "app.nothing"}`, "there is no function app.nothing(jsonb)"},
		{"a", `{"function": "app.many"}`, "there is no function app.many(jsonb)"},
		{"a", `{"function": "app.two"}`, "there are two functions"},
		{"a", `{"function": "app.number"}`, "returns integer, and must return jsonb, json or void"},
		{"a", `{"function": "tidemark.canonical_json"}`, "of the schema tidemark cannot be a command"},
		{"a", `{"function": "app.charge", "colour": "red"}`, `has no column "colour"`},
		{"a", `{"function": "app.charge", "id": 7}`, `has no column "id"`},
		{s.name + ".a", `{"function": "app.charge"}`, "begins with the name of its service"},
		{"a", `{"function": "app.charge", "payload_schema": {}}`, `has "type"`},
		{"a", `{"function": "app.charge", "payload_schema": {"type": "object", "required": "x"}}`, "/required is not an array"},
		{"a", `{"function": "app.charge", "payload_schema": {"type": "object", "properties": {"x": {"pattern": "(?=a)"}}}}`, "lookaround"},
		{"a", `{"function": "app.charge", "retry_policy": {"max_attempts": 0}}`, "retry_policy cannot be read"},
		{"a", `{"statement": "select :x"}`, "parameter :x of the statement has no type"},
		{"a", `{"statement": "select :x", "parameters": {"x": "nonsense"}}`, "unknown type nonsense"},
		{"a", `{"statement": "select 1; select 2"}`, "more than one statement"},
	} {
		s.refused("TM005", c.text, set, c.command, c.changes)
	}
	for text, changes := range map[string]string{
		"command_is_dotted_labels": `{"function": "app.charge"}`, "timeout_is_1_ms": `{"function": "app.charge", "timeout": "1 hour"}`,
		"terminal_is_sqlstates": `{"function": "app.charge", "terminal": ["x"]}`, "when_disabled_is_known": `{"function": "app.charge", "when_disabled": "x"}`,
	} {
		command := "a"
		if text == "command_is_dotted_labels" {
			command = "A b"
		}
		s.refused("23514", text, set, command, changes)
	}
	s.wantRows(`select command from tidemark.command`, "charge")
	s.refused("TM004", "there is no service", `select tidemark.command_set('none', 'a', 1)`)
	s.refused("TM004", "there is no service", `select tidemark.command_allow('none', 'shop')`)
	s.refused("TM004", "has no command", `select tidemark.command_allow($1, 'shop', 'none')`, s.name)
	s.refused("TM004", "has no such row", `select tidemark.command_disallow($1, 'stranger')`, s.name)
	s.refused("TM005", "no name of a service", `select tidemark.service_set('Billing')`)
	s.refused("TM005", "can log in", `select tidemark.service_set('x', jsonb_build_object('role', session_user))`)
	s.refused("TM005", "has rights in the schema tidemark", `select tidemark.service_set('x', '{"role": "tidemark_emitter"}')`)
	s.refused("TM005", "is the role of another service", `select tidemark.service_set('x', jsonb_build_object('role', $1::text))`, "tidemark_service_"+s.name)
	s.refused("TM005", "keeps it", `select tidemark.service_set($1, '{"role": "tidemark_reader"}')`, s.name)
	s.exec(`update tidemark.outbound_route set enabled = false`)
	s.command("charge", `{"dry_run": true}`)
	s.refused("TM008", "no live route takes its results", `select tidemark.command_set($1, 'charge', 1, '{"dry_run": false}')`, s.name)

	key := `{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	add := `select tidemark.producer_key_add($1, $2, 'shop', $3::jsonb)`
	s.exec(add, "k1", s.name, key)
	s.refused("TM005", `a key "k1"`, add, "k1", s.name, key)
	s.refused("TM005", "is a private one", add, "k2", s.name, strings.Replace(key, "{", `{"d": "x", `, 1))
	s.refused("23514", "public_key_is_ed25519", add, "k2", s.name, `{"kty": "RSA"}`)
	s.refused("TM004", "there is no service", add, "k2", "none", key)
	s.refused("TM005", "without a reason", `select tidemark.producer_key_revoke('k1', ' ')`)
	s.exec(`select tidemark.producer_key_revoke('k1', 'lost')`)
	s.refused("TM004", "there is no key", `select tidemark.producer_key_revoke('k9', 'lost')`)
	s.wantRows(`select object || ' ' || action || ' ' || coalesce(reason, '') from tidemark.audit where object like 'producer_key%' or object like 'command_producer%' order by id`,
		"command_producer 1 insert ", "producer_key k1 insert ", "producer_key k1 update lost")
}

// S3: a test is known of a command until what runs is changed.
func TestCommandTested(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	sum := strings.Repeat("0123456789abcdef", 4)
	tested := `select coalesce(tested, 'no') from tidemark.command`
	s.wantRows(tested, "no")
	s.command("charge", `{"tested": "`+sum+`"}`)
	for _, keeps := range []string{`{}`, `{"enabled": false}`, `{"enabled": true, "dry_run": true}`, `{"description": "x"}`, `{"timeout": "10 seconds"}`} {
		s.command("charge", keeps)
		s.wantRows(tested, sum)
	}
	s.exec(`create function app.other(jsonb) returns void language sql as ''`)
	for _, loses := range []string{
		`{"timeout": "11 seconds"}`, `{"function": "app.other"}`, `{"payload_schema": {"type": "object"}}`, `{"schema_version": 2}`, `{"terminal": ["P0002"]}`,
		`{"result_schema": {"type": "object"}}`, `{"retry_policy": {"max_attempts": 3}}`, `{"retention": "2 hours"}`, `{"when_disabled": "reject"}`,
	} {
		s.command("charge", loses)
		s.wantRows(tested, "no")
		s.command("charge", `{"tested": "`+sum+`"}`)
	}
	s.refused("23514", "tested_is_a_sha256", `select tidemark.command_set($1, 'charge', 1, '{"tested": "yes"}')`, s.name)
	s.wantRows(`select before ->> 'tested' from tidemark.audit where object like 'command %' and after ->> 'timeout' = '00:00:11' and after ->> 'tested' is null order by id limit 1`, sum)
}

// A type that refuses results would stop every command of its service.
func TestCommandTypesTakeResults(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	for i, c := range []struct{ text, sql string }{
		{"it cannot be disabled", `select tidemark.type_set('commands', 'result.' || $1, '{"enabled": false}')`},
		{"it cannot be disabled", `select tidemark.type_set('commands', 'dead_letter.' || $1, '{"enabled": false}')`},
		{"it has no schema", `select tidemark.type_set('commands', 'result.' || $1, '{"schema": {"type": "object", "required": ["x"]}}')`},
		{"cannot be metadata-only", `select tidemark.domain_set('commands', '{"metadata_only": true}') where $1 > ''`},
		{"cannot be open", `select tidemark.domain_set('commands', '{"restricted": false}') where $1 > ''`},
	} {
		s.refused("TM005", c.text, c.sql, s.name)
		// A result, and a dead letter.
		for payload, want := range map[string]string{fmt.Sprintf(`{"id": %d}`, i+1): "processed", fmt.Sprintf(`{"id": %d, "cents": -1}`, i+1): "failed_terminal"} {
			envelope := s.envelope(fmt.Sprint(want, i), payload, "")
			if got := one[string](s.session, `select tidemark.command_run($1::text) ->> 'status'`, envelope); got != want {
				t.Errorf("after %s: %s is %s, want %s", c.sql, payload, got, want)
			}
		}
	}
	s.exec(`select tidemark.type_set('commands', 'result.' || $1, '{"description": "Mine."}'), tidemark.domain_set('commands', '{"description": "Mine."}')`, s.name)

	// A type that was there before its service.
	other := "o" + s.name[1:]
	t.Cleanup(func() { s.exec(`drop role "tidemark_service_` + other + `"`) })
	s.exec(`select tidemark.type_set('commands', 'result.' || $1, '{"enabled": false, "schema": {"type": "object", "required": ["x"]}}')`, other)
	s.exec(`select tidemark.service_set($1)`, other)
	s.wantRows(`select enabled::text || (schema is null) from tidemark.event_type where type = 'result.`+other+`'`, "truetrue")
}

// A statement with typed parameters: one statement, values only, the row is the result.
func TestCommandStatement(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.command("add", `{"statement": "insert into app.invoice (id, cents) values (:id, :cents) -- :no\n returning id, ':id' as said, cents::text", "parameters": {"id": "bigint", "cents": "integer"},
		"payload_schema": {"type": "object"}, "enabled": true, "dry_run": false}`)
	s.command("drop", `{"statement": "delete from app.invoice where id = :id;", "parameters": {"id": "bigint"}, "payload_schema": {"type": "object"}, "enabled": true, "dry_run": false}`)
	run := func(key, command, payload string) commandResult {
		return s.run(s.envelope(key, payload, `{"command": "`+command+`"}`))
	}
	got := run("k", "add", `{"id": 1, "cents": 5}`)
	equal(t, "added", got.Status+string(got.Result), `processed{"id": 1, "said": ":id", "cents": "5"}`)
	equal(t, "full of SQL", run("sql", "add", `{"id": "1); drop table app.invoice; --"}`).String(), "failed_terminal sql.data")
	got = run("d", "drop", `{"id": 1}`)
	equal(t, "dropped", got.Status+string(got.Result), "processednull")
	s.wantInvoices()
}

// SE1: a command has the rights of its service's role: it cannot climb, nor leave something behind that runs with others.
func TestCommandCannotClimb(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	made := one[string](s.session, `select 'tidemark.command_' || id || '(jsonb, jsonb)' from tidemark.command`)
	for i, attack := range []string{
		`set role postgres`, `reset role`, `set session authorization postgres`, `reset session authorization`, `select set_config('role', 'none', false)`,
		`set local role tidemark_owner`, `alter function ` + made + ` security invoker`, `drop function ` + made, `select from tidemark.command_claim`,
		`select tidemark.gate_set('routes.enabled', true)`, `create table tidemark.mine (n int)`, `declare evil cursor with hold for select 1`,
		`create function app.mine() returns void language sql as ''`, `select pg_read_file('/etc/passwd')`,
	} {
		s.wantRun("failed_retryable sql.permission", fmt.Sprint(i), fmt.Sprintf(`{"id": %d, "sql": "%s"}`, i+1, attack))
	}
	s.wantInvoices()
	s.wantRows(`select name from pg_cursors where is_holdable`)
	// A deferred trigger fires with the rights of the service.
	s.exec(`create table app.told (name name); grant insert on app.told to "tidemark_service_` + s.name + `";
		create function app.tell() returns trigger language plpgsql as $$ begin insert into app.told values (current_user); return null; end $$;
		create constraint trigger tell after insert on app.invoice deferrable initially deferred for each row execute function app.tell()`)
	s.wantRun("processed", "deferred", `{"id": 50}`)
	s.wantRows(`select name::text from app.told`, "tidemark_service_"+s.name)

	// What runs a command was changed, or its role has more than it should: nothing runs, and verify tells.
	s.exec(`alter function ` + made + ` security invoker`)
	s.wantRun("failed_retryable sql.undefined", "changed", `{"id": 51}`)
	s.wantRows(`select status || ' ' || detail from tidemark.verify() where "check" = 'services'`, "fail command "+s.name+".charge/v1: "+strings.TrimSuffix(made, "(jsonb, jsonb)")+", which runs it, is missing or was changed")
	s.command("charge", `{}`)
	s.wantRows(`select status from tidemark.verify() where "check" = 'services'`, "ok")
	s.exec(`grant execute on function app.tell() to "tidemark_service_` + s.name + `"`)
	s.wantRows(`select status || ' ' || detail from tidemark.verify() where "check" = 'services'`, "warn role tidemark_service_"+s.name+" of service "+s.name+" may also execute app.tell()")
	s.exec(`drop function app.charge cascade`)
	s.wantRun("failed_retryable sql.undefined", "dropped", `{"id": 52}`)
	s.wantRows(`select status || ' ' || (detail like '%there is no function app.charge(jsonb)%') from tidemark.verify() where "check" = 'services'`, "fail true")
}

// The SQL of docs/commands.md, as an operator with CREATEROLE who owns the application's schema.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	admin := login(t, db, "admin", "tidemark_admin")
	super := open(t, db, "superuser")
	t.Cleanup(func() { super.exec(`drop owned by tidemark_service_billing; drop role tidemark_service_billing`) })
	super.exec(`alter role ` + admin.name + ` createrole; grant create on database "` + db.Name + `" to ` + admin.name)
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	for _, block := range blocks {
		admin.exec(block[1])
	}
	admin.wantRows(`select state || ' ' || result from tidemark.command_claim`, `processed {"charged": 1200}`)
	admin.wantRows(`select document ->> 'status' from tidemark.command_record`, "processed")
	// The page lists each code.
	for _, code := range column[string](admin.session, `select code from tidemark.command_reason`) {
		if !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("docs/commands.md does not name %s", code)
		}
	}
}

// The codes are one closed set, in SQL and in Go.
func TestCommandReasons(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "reasons")
	var want []string
	for _, reason := range command.Reasons() {
		want = append(want, string(reason))
	}
	slices.Sort(want)
	s.wantRows(`select code from tidemark.command_reason order by code collate "C"`, want...)
	s.wantRows(`select code from tidemark.command_reason where class <> split_part(code, '.', 1) or meaning = '' or producer = ''`)
}

// LI6: what is wrong with the topics of commands, and with schemas, is a finding for as long as the daemon sees it.
func TestCommandSetup(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	executor := login(t, db, "executor", "tidemark_executor")
	look := func(topics, uncompiled string, want ...string) {
		t.Helper()
		executor.exec(`select tidemark.command_setup($1::jsonb, $2::jsonb)`, strings.ReplaceAll(topics, "S", s.name), strings.ReplaceAll(uncompiled, "S", s.name))
		s.wantRows(`select replace(subject || ': ' || detail, '`+s.name+`', 'S') from tidemark.finding where kind = 'command_setup' and closed_at is null order by subject`, want...)
	}
	const fine = `[{"topic": "t", "service": "S", "there": true, "keeps_ms": 604800000, "own_times": true}, {"topic": "all", "there": true, "own_times": true}]`
	look(fine, `[]`)
	look(`[{"topic": "t", "service": "S"}, {"topic": "all"}]`, `[]`,
		"all: commands.topics names the topic, and it does not exist, or the daemon may not read it",
		"t: the topic does not exist, or the daemon may not read it, and S has commands that are live")
	look(fine, `[]`)
	s.exec(`select * from tidemark.command_partition('all', 0, 'T', 0, 0)`)
	look(`[{"topic": "all"}]`, `[]`, "all: the topic was read, and does not exist any more, or the daemon may not read it")
	// The topic of a service that was deleted may go.
	s.exec(`select * from tidemark.command_partition('u', 0, 'T', 0, 0)`)
	look(`[{"topic": "u", "service": "other"}]`, `[]`)
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"dry_run": true}')`, s.name)
	look(`[{"topic": "u", "service": "S"}]`, `[]`, "u: the topic was read, and does not exist any more, or the daemon may not read it")
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"dry_run": false}')`, s.name)
	const long = "the topic keeps records for 40 days, and claims of S.charge/v1 are kept for 30 days: a record that is read again after that is refused, whether it took effect or not"
	look(`[{"topic": "t", "service": "S", "there": true, "keeps_ms": 3456000000}, {"topic": "u", "service": "other", "there": true, "keeps_ms": 3456000000}]`, `[]`, "t: "+long)
	look(`[{"topic": "all", "there": true, "keeps_ms": -1}]`, `[]`, "all: "+strings.Replace(long, "for 40 days", "without end", 1))
	look(`[{"topic": "all", "there": true, "keeps_ms": 9223372036854775807}]`, `[]`, "all: "+strings.Replace(long, "for 40 days", "without end", 1))
	look(`[{"topic": "all", "there": true, "unnamed": true}]`, `[]`)
	s.exec(`select tidemark.producer_key_add('k', $1, 'shop', '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}', valid_until => '2100-01-01')`, s.name)
	const unnamed = `[{"topic": "t", "service": "S", "there": true, "unnamed": true}, {"topic": "all", "there": true, "unnamed": true}]`
	look(unnamed, `[]`, "all: commands.cluster is not set, so signatures name the connection: what is signed for a topic of this name in another cluster, for example of staging, is taken here if its key is registered here too")
	s.exec(`select tidemark.setting_set('commands.shared_topic', 'refuse', 'test')`)
	look(unnamed, `[]`)
	s.exec(`select tidemark.setting_set('commands.shared_topic', 'signed', 'test')`)
	const times = "all: producers set the times of records (message.timestamp.type is CreateTime): with a key that has expired, one can sign a record of an earlier time"
	look(fine, `[]`, times)
	look(fine, `[{"service": "S", "command": "charge", "command_version": 1, "digest": "of another", "problem": "it is bad"}]`, times)
	digest := one[string](s.session, `select md5(payload_schema::text) from tidemark.command`)
	look(`[]`, `[{"service": "S", "command": "charge", "command_version": 1, "digest": "`+digest+`", "problem": "it is bad"}]`,
		"S.charge/v1: its schema of payloads does not compile, so all its commands are refused: it is bad")
	look(`[]`, `[]`)
}

// A daemon that was removed, or that commands were taken from, leaves no finding open: what it saw is over when none sees it any more.
func TestCommandFindingsOver(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "over")
	executor := login(t, db, "executor", "tidemark_executor")
	executor.exec(`select tidemark.worker_finding('commands', 'worker_failing', 'commands', 'it cannot read')`)
	executor.exec(`select tidemark.worker_finding('other', 'worker_failing', 'other', 'it cannot read')`)
	s.exec(`select tidemark.finding_open('command_setup', 'all', 'warning', 'it is gone')`)
	later := func(by string, want ...string) {
		t.Helper()
		s.exec(`update tidemark.finding set last_seen_at = last_seen_at - interval '` + by + `'`)
		s.exec(`select tidemark.findings_over()`)
		s.wantRows(`select kind || ' ' || subject from tidemark.finding where closed_at is null order by 1`, want...)
	}
	later("110 seconds", "command_setup all", "worker_failing commands", "worker_failing other")
	executor.exec(`select tidemark.worker_finding('commands', 'worker_failing', 'commands', 'it cannot read')`)
	later("110 seconds", "command_setup all", "worker_failing commands", "worker_failing other")
	later("20 seconds", "command_setup all", "worker_failing other")
	later("5 minutes", "command_setup all", "worker_failing other")
	later("2 minutes", "worker_failing other")
}
