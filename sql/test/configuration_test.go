package test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const applies = `select concat_ws(' ', change, kind, name, field, was, becomes) from tidemark.configuration_apply($1, $2, 'a test', $3, $4)`

// applyIt applies things as a file, and wants these changes.
func (s tailing) applyIt(file string, prune, take bool, things string, want ...string) {
	s.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, column[string](s.session, applies, file, things, prune, take)); diff != "" {
		s.t.Errorf("file %s: %s\n(-want +got)\n%s", file, things, diff)
	}
}

func TestConfigurationApply(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := login(t, db, "admin", "tidemark_admin")
	shop := `[{"kind": "gate", "name": "worker.mailer.enabled", "definition": {"open": true}},
		{"kind": "route", "name": "mail", "definition": {"worker": "mailer", "domain": "shop", "target_kind": "notify", "target_ref": "mail", "timeout": "5s"}},
		{"kind": "worker", "name": "mailer", "definition": {"domains": ["shop"]}},
		{"kind": "heartbeat", "name": "nightly", "definition": {"expected_cadence_seconds": 3600}},
		{"kind": "type", "name": "shop/order", "definition": {"schema": {"type": "object"}}},
		{"kind": "domain", "name": "shop", "definition": {"description": "The shop."}}]`
	s.applyIt("shop", false, false, shop,
		`create domain shop "shop"`, `set domain shop description "The shop."`,
		`create type shop/order "shop"`, `set type shop/order schema {"type": "object"}`,
		`create worker mailer "shop"`, `set worker mailer domains ["shop"]`,
		`create route mail "shop"`, `set route mail domain "shop"`, `set route mail target_kind "notify"`, `set route mail target_ref "mail"`,
		`set route mail timeout "00:00:05"`, `set route mail worker "mailer"`,
		`create heartbeat nightly "shop"`, `set heartbeat nightly expected_cadence_seconds 3600`,
		`create gate worker.mailer.enabled "shop"`, `set gate worker.mailer.enabled open true`)

	// Again: nothing changes, and nothing is on record. What is left out goes back to its default; a switch stays.
	records := `select count(*) from tidemark.audit`
	before := one[int](s.session, records)
	s.applyIt("shop", true, true, shop)
	equal(t, "records of an apply that changes nothing", one[int](s.session, records), before)
	s.exec(`select tidemark.route_set('mail', '{"enabled": true, "concurrency": 7}'), tidemark.worker_set('by_hand')`)
	s.applyIt("shop", false, false, shop, `set route mail concurrency 7`)
	s.wantRows(`select concat_ws(' ', enabled, concurrency) from tidemark.outbound_route where route_code = 'mail'`, "t 4")
	s.wantRows(`select reason from tidemark.audit where object = 'outbound_route mail' order by id desc limit 1`, "a test")

	// Two files do not fight: the second neither changes nor deletes what is the first's.
	other := `[{"kind": "route", "name": "mail", "definition": {"domain": "*", "target_kind": "notify", "target_ref": "m"}}]`
	s.refused("TM005", `route mail is of the file "shop", not of "billing"`, `select tidemark.configuration_apply('billing', '`+other+`', 'why')`)
	s.applyIt("billing", true, false, `[]`)
	s.applyIt("billing", false, false, `[{"kind": "worker", "name": "by_hand", "definition": {}}]`, `adopt worker by_hand "billing"`)
	s.applyIt("billing", false, true, other, `left worker by_hand "billing" "billing"`, `take route mail "shop" "billing"`, `set route mail domain "shop" "*"`,
		`set route mail target_ref "mail" "m"`, `set route mail timeout "00:00:05"`, `set route mail worker "mailer"`)
	s.exec(`select tidemark.configuration_own('route', 'mail', 'shop', true, 'a test')`)

	// Deleted only where it is said, and if it is not in use.
	s.applyIt("shop", false, false, `[{"kind": "domain", "name": "shop", "definition": {}}]`,
		`set domain shop description "The shop."`, `left type shop/order "shop" "shop"`, `left worker mailer "shop" "shop"`,
		`left route mail "shop" "shop"`, `left heartbeat nightly "shop" "shop"`, `left gate worker.mailer.enabled "shop" "shop"`)
	s.refused("TM005", "route mail cannot be deleted: it is enabled", `select tidemark.configuration_apply('shop', '[]', 'why', prune => true)`)
	s.exec(`select tidemark.route_set('mail', '{"enabled": false}')`)
	s.applyIt("shop", true, false, `[]`, `delete domain shop "shop"`, `delete type shop/order "shop"`, `delete worker mailer "shop"`,
		`delete route mail "shop"`, `delete heartbeat nightly "shop"`, `delete gate worker.mailer.enabled "shop"`)
	s.wantRows(`select kind || ' ' || name || ' ' || file from tidemark.owned`, "worker by_hand billing")
	s.exec(`select tidemark.worker_delete('by_hand', 'why')`)
	s.wantRows(`select kind from tidemark.owned`)
}

func TestConfigurationRefuses(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := login(t, db, "admin", "tidemark_admin")
	for things, want := range map[string]string{
		`[{"kind": "route", "name": "r", "definition": {"domain": "d", "target_kind": "notify", "target_ref": "c", "concurrency": 0}}]`: `23514 route r: new row for relation "outbound_route" violates check constraint "concurrency_is_1_to_1000"`,
		`[{"kind": "route", "name": "r", "definition": {"domain": "d", "target": "c"}}]`:                                                `TM005 route r: a route has no column "target" that can be set`,
		`[{"kind": "heartbeat", "name": "h", "definition": {"cadence": 3}}]`:                                                            `TM005 heartbeat h: a heartbeat has no "cadence" that can be set`,
		`[{"kind": "thing", "name": "t", "definition": {}}]`:                                                                            `TM005 thing t: there is no kind "thing"`,
		`[{"kind": "type", "name": "d/t", "definition": {}}]`:                                                                           `TM004 type d/t: there is no domain "d"`,
		`[{"kind": "domain", "name": "system", "definition": {}}]`:                                                                      `TM005 domain system: it is Tidemark's own, and no file's`,
		`[{"kind": "type", "name": "commands/t", "definition": {}}]`:                                                                    `TM005 type commands/t: it is Tidemark's own, and no file's`,
		`[{"kind": "domain", "name": "d", "definition": {"emitters": ["postgres"]}}]`:                                                   `TM005 domain d: emitters need restricted: true`,
		`[{"kind": "gate", "name": "g", "definition": {"open": true}}]`:                                                                 `TM004 gate g: there is no gate "g"`,
	} {
		err := s.session.try(`select tidemark.configuration_apply('f', $1, 'why')`, things)
		if err == nil || err.Code+" "+err.Message != want {
			if err == nil || !strings.HasPrefix(want, err.Code) || !strings.Contains(err.Message, want[strings.LastIndex(want, ": ")+2:]) {
				t.Errorf("%s: %v, want %s", things, err, want)
			}
		}
	}
	s.refused("TM005", "applying a file needs a reason", `select tidemark.configuration_apply('f', '[]', ' ')`)
	s.refused("TM005", "things must be an array", `select tidemark.configuration_apply('f', null, 'why', prune => true)`)
	s.refused("TM005", "a file needs a name", `select tidemark.configuration_apply('', '[]', 'why')`)
	s.wantRows(`select kind from tidemark.owned`)
	reader := login(t, db, "reader", "tidemark_reader")
	reader.exec(`select * from tidemark.configuration()`)
	reader.wantRefused("42501", `select tidemark.configuration_apply('f', '[]', 'why')`)
}

// A restricted domain has exactly the emitters of its file, and a file without any leaves them.
func TestConfigurationOfEmitters(t *testing.T) {
	t.Parallel()
	s := login(t, tidemarktest.NewDB(t), "admin", "tidemark_admin")
	role := one[string](s.session, `select session_user::text`)
	domain := func(definition string) string {
		return `[{"kind": "domain", "name": "d", "definition": ` + definition + `}]`
	}
	s.applyIt("f", false, false, domain(`{"restricted": true, "emitters": ["tidemark_emitter"]}`),
		`create domain d "f"`, `set domain d emitters ["tidemark_emitter"]`, `set domain d restricted true`)
	s.applyIt("f", false, false, domain(`{"restricted": true}`))
	s.applyIt("f", false, false, domain(`{"restricted": true, "emitters": ["`+role+`"]}`), `set domain d emitters ["tidemark_emitter"] ["`+role+`"]`)
}

// A capture's trigger is of the file where the file says so; what a source relies on is there before the source.
func TestConfigurationOfCaptures(t *testing.T) {
	t.Parallel()
	from, to := tailing{open(t, tidemarktest.NewDB(t), "from")}, tailing{open(t, tidemarktest.NewDB(t), "to")}
	from.exec(exportedTables)
	to.exec(exportedTables)
	capture := func(trigger string) string {
		return `[{"kind": "domain", "name": "shop", "definition": {}},
			{"kind": "capture", "name": "new", "definition": {"source_schema": "public", "source_table": "births", "sql_event": "insert", "domain": "shop", "type": "born", "enabled": true` + trigger + `}}]`
	}
	from.refused("TM005", `its trigger is "not attached" and cannot become "off"`, `select tidemark.configuration_apply('f', '`+capture(`, "trigger": "off"`)+`', 'why')`)
	from.applyIt("f", false, false, capture(`, "trigger": "always"`), `create domain shop "f"`, `create capture new "f"`,
		`set capture new domain "shop"`, `set capture new enabled true`, `set capture new source_schema "public"`, `set capture new source_table "births"`,
		`set capture new sql_event "insert"`, `set capture new trigger "always"`, `set capture new type "born"`)
	from.exec(`alter table births disable trigger tidemark_capture_insert`)
	from.applyIt("f", false, false, capture(`, "trigger": "always"`), `set capture new trigger "always"`)
	from.applyIt("f", true, false, capture(``))
	from.refused("TM005", `its trigger is "always" and cannot become "attached"`, `select tidemark.configuration_apply('f', '`+capture(`, "trigger": "attached"`)+`', 'why')`)
	export := one[string](from.session, exported)
	column[string](to.session, applies, "f", export, false, false)
	equal(t, "export", one[string](to.session, exported), export)
	to.wantRows(`select trigger from tidemark.capture_list`, "always")
	from.refused("TM005", "inbound route new cannot be deleted: public.births has its trigger", `select tidemark.configuration_apply('f', '[]', 'why', prune => true)`)
}

// drawn is a random configuration: tables, shards and kinds of workers go by the names, since they cannot change. Switches are
// always given, since a file that leaves them out keeps them.
func drawn(rt *rapid.T) string {
	text := rapid.SampledFrom([]string{``, `x`, `it's "so": - #`, "two\nlines", `ü→😀`, `{"a": 1}`, `yes`, `0x1F`})
	var all []string
	add := func(kind, name string, fields ...string) {
		var given []string
		for _, f := range fields {
			if f != "" {
				given = append(given, f)
			}
		}
		all = append(all, fmt.Sprintf(`{"kind": %q, "name": %q, "definition": {%s}}`, kind, name, strings.Join(given, ", ")))
	}
	maybe := func(name string, values ...string) string {
		if !rapid.Bool().Draw(rt, name+"?") {
			return ""
		}
		return fmt.Sprintf("%q: %s", name, rapid.SampledFrom(values).Draw(rt, name))
	}
	described := func() string {
		return fmt.Sprintf(`"description": %s`, quotedJSON(text.Draw(rt, "description")))
	}
	domains := append([]string{"a"}, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"b", "C.d"}), 0, 2, rapid.ID).Draw(rt, "domains")...)
	for _, d := range domains {
		add("domain", d, maybe("metadata_only", "true", "false"), described(), rapid.SampledFrom([]string{`"restricted": true, "emitters": ["tidemark_emitter"]`, `"restricted": true, "emitters": []`, ``}).Draw(rt, "restricted"))
		if d == "a" || rapid.Bool().Draw(rt, "type?") { // a capture makes a's
			add("type", d+"/it.is/so", `"enabled": `+rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "enabled"), described(),
				maybe("version", "1", "2"), maybe("schema", `{}`, `{"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "number", "multipleOf": 0.01, "maximum": 12345678901234567890}}}`, "null"))
		}
		if rapid.Bool().Draw(rt, "gate?") {
			add("gate", "domain."+d+".enabled", `"open": true`)
		}
	}
	interval := func(name string) string { return maybe(name, `"1s"`, `"90 minutes"`, `"00:00:05"`, `"1 day 02:00:00"`) }
	workers := []string{"default"}
	add("worker", "default", described())
	if rapid.Bool().Draw(rt, "worker?") {
		workers = append(workers, "w")
		add("worker", "w", maybe("domains", `["a"]`, `[]`), maybe("read_order", `"strict"`, `"eager"`), maybe("hole_limit", "7", "10000"), described(),
			maybe("retry_policy", `{"max_attempts": 3, "jitter": 0.5}`, "null"), maybe("payload_columns", "[]"))
		add("gate", "worker.w.enabled", `"open": `+rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "open"))
	}
	if rapid.IntRange(0, 3).Draw(rt, "tables?") == 0 { // they take most of the time
		add("source", "births", `"table": "public.births", "id_column": "id", "safety": "sequence"`, described(), interval("margin"), maybe("filter", `"id > 0"`),
			maybe("group_key", `["id"]`))
		add("source", "odd", `"table": "public.\"Odd Table\"", "id_column": "Id", "timestamp_column": "at", "safety": "declared"`, interval("sweep_window"), interval("bucket"), interval("sweep_every"))
		add("worker", "t", `"source": "table", "handler_ref": "public.take", "shards": 2`, maybe("page_timeout", `"1s"`, `"00:00:05"`), maybe("storm_fraction", "0.1", "1"), maybe("off_peak", `"22:00-06:00 UTC"`),
			maybe("lock_wait_limit", "4"), interval("replication_lag_limit"), `"sources": `+rapid.SampledFrom([]string{`["births", "odd"]`, `["odd"]`, `[]`}).Draw(rt, "sources"))
	}
	for _, code := range []string{"r1", "r2"} {
		if !rapid.Bool().Draw(rt, "route?") {
			continue
		}
		add("route", code, `"dry_run": true`, `"enabled": false`, `"worker": "`+rapid.SampledFrom(workers).Draw(rt, "worker")+`"`, `"domain": `+rapid.SampledFrom([]string{`"a"`, `"*"`}).Draw(rt, "domain"),
			rapid.SampledFrom([]string{
				`"target_kind": "notify", "target_ref": "c"`, `"target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true, "format": "json"}`,
				`"target_kind": "sql", "target_ref": "app.f"`,
			}).Draw(rt, "target"), maybe("type", `"x.*"`, `"*"`), maybe("stream", `"s"`, "null"), maybe("key_filter", `"eu-*"`), maybe("payload_filter", `{"a": [1, {"b": "yes"}]}`, "null"),
			maybe("ordering", `"key"`, `"none"`), interval("timeout"), maybe("concurrency", "9", "4"), maybe("fail_closed", "false"), maybe("exclusive", "true"), described())
	}
	if rapid.Bool().Draw(rt, "capture?") {
		add("capture", "births-new", `"source_schema": "public", "source_table": "births", "sql_event": "insert", "domain": "a", "type": "it.is/so", "enabled": true, "dry_run": true`,
			maybe("payload_columns", `["id"]`, `[]`), maybe("idempotency_policy", `"transaction"`, `"change"`), described())
	}
	if rapid.Bool().Draw(rt, "heartbeat?") {
		add("heartbeat", "mailer/host-7", maybe("expected_cadence_seconds", "30", "60"), maybe("stale_threshold_seconds", "180", "900"), maybe("domain_scope", `["`+domains[0]+`"]`, `[]`), maybe("kind", `"Agent"`, `"external_worker"`))
	}
	return "[" + strings.Join(all, ",\n") + "]"
}

// exported is the configuration as things.
const exported = `select coalesce(jsonb_agg(jsonb_build_object('kind', c.kind, 'name', c.name, 'definition', c.definition) order by c.place, c.name), '[]')::text
	from tidemark.configuration() c where c.kind <> 'gate' or c.file is not null`

const exportedTables = `create table public.births (id bigint generated always as identity primary key, name text);
	create table public."Odd Table" ("Id" uuid primary key, at timestamptz not null);
	create index on public."Odd Table" (at, "Id")`

// An export, applied to an empty database, is the export of that; applied again it changes nothing; and the way to a configuration
// does not matter: whatever a file had before, it becomes what it says.
func TestConfigurationRoundTrip(t *testing.T) {
	t.Parallel()
	from, to := open(t, tidemarktest.NewDB(t), "from"), open(t, tidemarktest.NewDB(t), "to")
	from.exec(exportedTables)
	to.exec(exportedTables)
	apply := func(s session, things string) []string {
		return column[string](s, applies, "f", things, true, false)
	}
	rapid.Check(t, func(rt *rapid.T) {
		from.begin()
		to.begin()
		defer from.rollback()
		defer to.rollback()
		first, second := drawn(rt), drawn(rt)
		apply(from, first)
		if changed := apply(from, first); len(changed) > 0 {
			rt.Fatalf("applied twice:\n%s\n%s", first, strings.Join(changed, "\n"))
		}
		apply(from, second)
		export := one[string](from, exported)
		apply(to, export)
		if diff := cmp.Diff(export, one[string](to, exported)); diff != "" {
			rt.Fatalf("%s\nafter\n%s\nexport (-, applied +)\n%s", second, first, diff)
		}
		if changed := apply(to, second); len(changed) > 0 {
			rt.Fatalf("the export of\n%s\nis not that:\n%s", second, strings.Join(changed, "\n"))
		}
		records := one[int](to, `select count(*) from tidemark.audit`)
		if changed := apply(to, export); len(changed) > 0 || one[int](to, `select count(*) from tidemark.audit`) != records {
			rt.Fatalf("applied twice:\n%s\n%s", export, strings.Join(changed, "\n"))
		}
	})
}

func quotedJSON(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// Two applies of a file at once leave what the last one says, also where the first changes what was as the last one wants it.
func TestConfigurationAppliesInTurn(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	first, last := login(t, db, "first", "tidemark_admin"), login(t, db, "last", "tidemark_admin")
	eye := open(t, db, "eye")
	file := func(description string, open bool) string {
		return fmt.Sprintf(`select count(*) from tidemark.configuration_apply('f', '[{"kind": "domain", "name": "gd", "definition": {"description": %q}},
			{"kind": "gate", "name": "domain.gd.enabled", "definition": {"open": %t}}]', 'why')`, description, open)
	}
	first.exec(file("a", false))
	first.exec(`begin`)
	first.exec(file("b", true))
	ended := make(chan error, 1)
	go func() {
		_, err := last.conn.Exec(context.Background(), file("c", false))
		ended <- err
	}()
	eye.waitsFor(last.session)
	first.exec(`commit`)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	eye.wantRows(`select d.description || ' ' || tidemark.gate_open('domain.gd.enabled') from tidemark.domain d where d.domain = 'gd'`, "c false")
}

// What tidemark.configuration leaves out since it is Tidemark's own, no file changes.
func TestConfigurationOfTidemarkItself(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := login(t, db, "admin", "tidemark_admin")
	for _, thing := range []string{
		`{"kind": "heartbeat", "name": "daemon/zzz", "definition": {}}`,
		`{"kind": "heartbeat", "name": "default/outbox/0", "definition": {"expected_cadence_seconds": 3}}`,
		`{"kind": "worker", "name": "w", "definition": {"source": "kafka", "handler": "command"}}`,
		`{"kind": "domain", "name": "system", "definition": {}}`,
	} {
		s.refused("TM005", "it is Tidemark's own, and no file's", `select tidemark.configuration_apply('f', '[`+thing+`]', 'why')`)
	}
	s.wantRows(`select name from tidemark.owned`)
}

// A file that an earlier release has exported still applies: the gate of the worker of commands, which never had an effect, is left out.
func TestConfigurationOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	s := login(t, tidemarktest.NewDB(t), "admin", "tidemark_admin")
	const apply = `select concat_ws(' ', change, kind, name) from tidemark.configuration_apply('f', $1, 'why', prune => true)`
	const gate = `{"kind": "gate", "name": "worker.commands.enabled", "definition": {"open": false}}`
	const shop = `{"kind": "domain", "name": "shop", "definition": {}}`
	s.wantRows(strings.Replace(apply, "$1", "'["+gate+", "+shop+"]'", 1), "create domain shop", "ignored gate worker.commands.enabled")
	s.wantRows(strings.Replace(apply, "$1", "'["+gate+", "+shop+"]'", 1), "ignored gate worker.commands.enabled")
	s.wantRows(`select kind || ' ' || name from tidemark.owned`, "domain shop")
	// Where an application has a worker of this name, it has the gate.
	const worker = `{"kind": "worker", "name": "commands", "definition": {}}`
	s.wantRows(strings.Replace(apply, "$1", "'["+gate+", "+shop+", "+worker+"]'", 1), "create worker commands", "create gate worker.commands.enabled", "set gate worker.commands.enabled")
}

// A plan changes in a transaction that is rolled back: it waits for no apply that is under way.
func TestConfigurationPlanWaitsForNoApply(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	first, plan := login(t, db, "first", "tidemark_admin"), login(t, db, "plan", "tidemark_admin")
	file := func(name string) string {
		return fmt.Sprintf(`'%[1]s', '[{"kind": "domain", "name": "%[1]s", "definition": {}}]', 'why'`, name)
	}
	first.exec(`begin; select * from tidemark.configuration_apply(` + file("a") + `)`)
	plan.exec(`set lock_timeout = '1s'`)
	plan.wantRows(`select concat_ws(' ', change, kind, name) from tidemark.configuration_change(`+file("b")+`, false, false)`, "create domain b")
	plan.wantRefused("55P03", `select * from tidemark.configuration_change(`+file("a")+`, false, false)`)
	plan.wantRefused("55P03", `select * from tidemark.configuration_apply(`+file("c")+`)`)
	first.exec(`commit`)
}

// A capture keeps its name: a file that renames it is refused in words, and can take the other name once the first is gone.
func TestConfigurationRenamesNoCapture(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "from")}
	s.exec(exportedTables)
	file := func(name, operation string) string {
		return `[{"kind": "domain", "name": "shop", "definition": {}}, {"kind": "capture", "name": "` + name + `", "definition":
			{"source_schema": "public", "source_table": "births", "sql_event": "` + operation + `", "domain": "shop", "type": "born"}}]`
	}
	s.exec(`select tidemark.configuration_apply('f', $1, 'why')`, file("old", "insert"))
	s.refused("TM005", "inbound route new is for the same operation as old", `select tidemark.configuration_apply('f', '`+file("new", "insert")+`', 'why', prune => true)`)
	s.exec(`select tidemark.configuration_apply('f', $1, 'why')`, file("other", "delete"))
	s.refused("TM005", "inbound route other is for the same operation as old", `select tidemark.inbound_route_set('other', '{"sql_event": "insert"}')`)
	s.exec(`select tidemark.configuration_apply('f', '[]', 'why', prune => true)`)
	s.exec(`select tidemark.configuration_apply('f', $1, 'why', prune => true)`, file("new", "insert"))
	s.wantRows(`select route_code from tidemark.inbound_route`, "new")
}

// What is set can be exported and read by a plan, whose file has at most 500 levels.
func TestConfigurationHasADepth(t *testing.T) {
	t.Parallel()
	s := login(t, tidemarktest.NewDB(t), "admin", "tidemark_admin")
	deep := func(column string, levels int) string {
		return fmt.Sprintf(`{"%s": %s1%s}`, column, strings.Repeat(`{"a": `, levels), strings.Repeat("}", levels))
	}
	s.exec(`select tidemark.type_set('d', 't'), tidemark.route_set('r', '{"domain": "d", "target_kind": "notify", "target_ref": "c"}')`)
	for column, set := range map[string]string{
		"payload_filter of a route": `select tidemark.route_set('r', $1)`, "options of a route": `select tidemark.route_set('r', $1)`,
		"schema of a type": `select tidemark.type_set('d', 't', $1)`, "retry_policy of a worker": `select tidemark.worker_set('default', $1)`,
	} {
		name, _, _ := strings.Cut(column, " ")
		s.session.refused("TM005", column+" nests deeper than 400 levels", set, deep(name, 401))
	}
	s.exec(`select tidemark.route_set('r', $1), tidemark.type_set('d', 't', $2)`, deep("payload_filter", 400), deep("schema", 400))
}
