package packs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// unitTables creates the tables that the source document names, as an application may have them.
const unitTables = `
create table public.unit_version (id uuid primary key, unit_id text not null, body text);
create table public.iu_sql_link (link_id integer primary key, unit_id text not null, linked_table text, linked_ref text)`

const (
	firstVersion = "00000000-0000-4000-8000-000000000001"
	// changeUnits is a change for each inbound route of the pack, and one that has none.
	changeUnits = `
insert into unit_version values ('` + firstVersion + `', 'u-1', 'never to be seen');
update unit_version set body = 'nor this';
insert into iu_sql_link values (7, 'u-1', 'orders', '12');
update iu_sql_link set linked_ref = '13';
delete from iu_sql_link;
truncate iu_sql_link`
)

// An installed pack that is not used asks for nothing, also where its tables do not exist.
func TestIUCoreWithoutItsTables(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	db := installIUCore(t, test)
	nothingFails(t, db)
	wantLines(t, test, `select concat_ws(' ', kind, name, status) from tidemark.queue_health where status in ('bad', 'unknown')`)
	wantLines(t, test, `select concat_ws(' ', route_code, schema_name, table_name, operation, domain, type, state, trigger, payload_columns)
			from tidemark.capture_list order by 1`,
		"iu_create_call public fn_iu_create call iu unit_created off by function {unit_id,unit_kind,parent_id}",
		"iu_enact_call public fn_iu_enact call iu unit_enacted off by function {unit_id,version_id}",
		"iu_sql_link_delete public iu_sql_link delete iu sql_link_changed off not attached {}",
		"iu_sql_link_insert public iu_sql_link insert iu sql_link_changed off not attached {}",
		"iu_sql_link_truncate public iu_sql_link truncate iu sql_link_changed off not attached {}",
		"iu_sql_link_update public iu_sql_link update iu sql_link_changed off not attached {}",
		"iu_unit_version_insert public unit_version insert iu version_applied off not attached {}")
	wantLines(t, test, `select route_code from tidemark.inbound_route where enabled or not dry_run or not fail_closed`)
	wantLines(t, test, `select distinct concat_ws(' ', status, regexp_replace(problem, '[^.]+$', '')) from tidemark.capture_check() order by 1`,
		"warn there is no function public.", "warn there is no table public.")
	wantLines(t, test, `select status || ' ' || detail from tidemark.verify() where "check" = 'captures'`, "ok ")
}

// Requirements PK1 and RO2: nothing is captured before an operator has attached, enabled and gone live. Then each change
// is an event of the type that the source document names, and the pack's routes deliver it.
func TestIUCoreCaptures(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	db := installIUCore(t, test)
	exec := func(sql string) {
		t.Helper()
		if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const events, captured = `select type from tidemark.outbox where domain = 'iu'`, `select outcome from tidemark.captured`
	exec(unitTables)

	for _, step := range []string{
		`select 'installed'`,
		`select tidemark.capture_attach(c::regclass, 'units') from unnest(array['unit_version', 'iu_sql_link']) c`,
		`select tidemark.gate_set('routes.enabled', true)`,
	} {
		exec(step)
		exec(changeUnits + `; truncate unit_version`)
		wantLines(t, test, events)
		wantLines(t, test, captured)
	}

	exec(`select tidemark.inbound_route_set(route_code, '{"enabled": true}') from tidemark.inbound_route where source_object_kind = 'table'`)
	exec(changeUnits + `; truncate unit_version`)
	wantLines(t, test, events)
	wantLines(t, test, captured, "dry_run", "dry_run", "dry_run", "dry_run", "dry_run")

	exec(`select tidemark.stage_set('live', 'tried');
		select tidemark.inbound_route_set(route_code, '{"dry_run": false}') from tidemark.inbound_route where source_object_kind = 'table'`)
	exec(changeUnits)
	link, version := `{"link_id": 7}`, `{"id": "`+firstVersion+`"}`
	wantLines(t, test, `select concat_ws(' ', type, payload ->> 'operation', subject_table, payload ->> 'primary_key', coalesce(key, 'no key'))
			from tidemark.outbox where domain = 'iu' order by seq`,
		"version_applied insert public.unit_version "+version+" "+firstVersion,
		"sql_link_changed insert public.iu_sql_link "+link+" 7",
		"sql_link_changed update public.iu_sql_link "+link+" 7",
		"sql_link_changed delete public.iu_sql_link "+link+" 7",
		"sql_link_changed truncate public.iu_sql_link no key")
	wantLines(t, test, `select payload ->> 'changed' from tidemark.outbox where payload ? 'changed'`, `["linked_ref"]`)
	wantLines(t, test, `select * from tidemark.capture_check() where object not like 'route iu_%_call'`)

	// With a contract and a changed key, everything that a captured payload may hold.
	exec(`select tidemark.inbound_route_set('iu_sql_link_update', '{"payload_columns": ["unit_id"]}');
		insert into iu_sql_link values (8, 'u-2'); update iu_sql_link set link_id = 9`)
	wantLines(t, test, `select concat_ws(' ', payload ->> 'old_primary_key', payload ->> 'columns') from tidemark.outbox where payload ? 'columns'`,
		`{"link_id": 8} {"unit_id": "u-2"}`)
	payloadsFit(t, test)

	exec(`update tidemark.outbound_route set enabled = true where route_code in ('iu_sql_link_changed', 'iu_version_applied');
		select tidemark.gate_set('domain.iu.enabled', true);
		select tidemark.gate_set('worker.iu_outbound_default.enabled', true); select tidemark.route_worker_run('iu_outbound_default')`)
	wantLines(t, test, `select route_code || ' ' || count(*) from tidemark.route_attempt where outcome = 'dry_run' group by route_code order by 1`,
		"iu_sql_link_changed 6", "iu_version_applied 1")
	nothingFails(t, db)
}

// What the vocabulary does not name stays out of a captured payload too: the contract of a route is held to it.
func TestIUCoreContracts(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	db := installIUCore(t, test)
	for _, c := range []struct{ route, column, problem string }{
		{"iu_sql_link_insert", "unit_id", ""},
		{"iu_sql_link_insert", "note", "inbound route iu_sql_link_insert: the schema of iu/sql_link_changed does not name note"},
		{"iu_unit_version_insert", "title", "inbound route iu_unit_version_insert: the schema of iu/version_applied does not name title"},
		{"iu_create_call", "title", "inbound route iu_create_call: the schema of iu/unit_created does not name title"},
		{"iu_create_call", "unit_kind", ""},
	} {
		_, err := db.InboundRouteSet(t.Context(), c.route, store.Changes{"payload_columns": []string{c.column}}, "")
		if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s %s: %v", c.route, c.column, err)
		}
	}
	wantLines(t, test, `select route_code || ' ' || payload_columns::text from tidemark.inbound_route where payload_columns && array['title', 'note']`)
	// A schema that is added after the route is reported, and the route can be switched off.
	if _, err := test.Pool.Exec(t.Context(), unitTables+`;
		update tidemark.inbound_route set payload_columns = '{linked_ref,note}' where route_code = 'iu_sql_link_update';
		select tidemark.inbound_route_set('iu_sql_link_update', '{"enabled": false}')`); err != nil {
		t.Fatal(err)
	}
	wantLines(t, test, `select concat_ws(' ', object, status, problem) from tidemark.capture_check() where problem like '%does not name%'`,
		"route iu_sql_link_update fail the schema of iu/sql_link_changed does not name note: the events show them nevertheless")
}

// The application's functions that the source document names emit only ids.
func TestIUCoreFunctions(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	installIUCore(t, test)
	for _, sql := range []string{
		`create function fn_iu_create(unit text, body text) returns void language sql as $$
			select tidemark.inbound_emit('iu_create_call', jsonb_build_object('unit_id', unit, 'body', body), key => unit) $$`,
		`select fn_iu_create('u-1', 'never')`,
		`select tidemark.stage_set('live', 'tried'), tidemark.inbound_route_set('iu_create_call', '{"enabled": true, "dry_run": false}')`,
		`select fn_iu_create('u-2', 'never')`,
	} {
		if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	wantLines(t, test, `select concat_ws(' ', type, key, payload) from tidemark.outbox where domain = 'iu'`, `unit_created u-2 {"unit_id": "u-2"}`)
	payloadsFit(t, test)
}

func nothingFails(t *testing.T, db *store.DB) {
	t.Helper()
	checks, err := db.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if c.Status == "fail" {
			t.Errorf("%+v", c)
		}
	}
}

// payloadsFit holds each event of iu to the whole schema of its type, of which SQL checks a part.
func payloadsFit(t *testing.T, test *tidemarktest.DB) {
	t.Helper()
	rows, err := test.Pool.Query(t.Context(), `select e.schema, o.payload from tidemark.outbox o
		join tidemark.event_type e using (domain, type) where o.domain = 'iu'`)
	if err != nil {
		t.Fatal(err)
	}
	var schema, text json.RawMessage
	if _, err := pgx.ForEachRow(rows, []any{&schema, &text}, func() error {
		if schema == nil {
			return nil
		}
		checker, err := payload.Compile(schema)
		if err != nil {
			return err
		}
		if err := checker.Check(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Tables in another schema, and a route of the operator's own for one of the changes.
func TestIUCoreLeavesRoutesAlone(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	if _, err := test.Pool.Exec(t.Context(), `select tidemark.inbound_route_set('mine', '{"source_schema": "public", "source_table": "unit_version",
			"sql_event": "insert", "domain": "mine", "type": "version"}')`); err != nil {
		t.Fatal(err)
	}
	installIUCore(t, test)
	if _, err := test.Pool.Exec(t.Context(), `select tidemark.inbound_route_set(route_code, '{"source_schema": "units"}')
			from tidemark.inbound_route where source_table = 'iu_sql_link'`); err != nil {
		t.Fatal(err)
	}
	installIUCore(t, test)
	wantLines(t, test, `select concat_ws(' ', route_code, source_schema, source_table) from tidemark.inbound_route order by 1`,
		"iu_create_call public fn_iu_create", "iu_enact_call public fn_iu_enact",
		"iu_sql_link_delete units iu_sql_link", "iu_sql_link_insert units iu_sql_link", "iu_sql_link_truncate units iu_sql_link",
		"iu_sql_link_update units iu_sql_link", "mine public unit_version")
}

func wantLines(t *testing.T, test *tidemarktest.DB, sql string, want ...string) {
	t.Helper()
	rows, err := test.Pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		t.Errorf("%s:\n%s", sql, diff)
	}
}
