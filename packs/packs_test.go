package packs

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	tidemarktest.Main(m, func() error { return goleak.Find() })
}

func installIUCore(t *testing.T, test *tidemarktest.DB) *store.DB {
	t.Helper()
	return install(t, test, "iu-core")
}

func install(t *testing.T, test *tidemarktest.DB, name string) *store.DB {
	t.Helper()
	pack, found, err := Find(name)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	err = pgx.BeginFunc(t.Context(), test.Pool, func(tx pgx.Tx) error {
		_, err := store.New(tx).InstallPack(t.Context(), pack.Name, pack.Version, pack.Checksum, pack.SQL)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return store.New(test.Pool)
}

// Requirement SE1, for packs: nothing that one makes is for PUBLIC.
func TestPacksGrantNothingToPublic(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, pack := range all {
		test := tidemarktest.NewDB(t)
		known := column(t, test, schemas)
		install(t, test, pack.Name)
		made := `n.nspname = any (array(` + schemas + ` except select unnest($1::text[])))`
		objects := column(t, test, `select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace where `+made, known)
		if pack.Name != "iu-core" && len(objects) == 0 {
			t.Errorf("%s makes no function: the check would see none", pack.Name)
		}
		if got := column(t, test, `
			select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace where `+made+` and has_function_privilege('public', p.oid, 'execute')
			union all select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where `+made+` and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
			union all select n.nspname from pg_namespace n where `+made+` and (has_schema_privilege('public', n.oid, 'usage') or has_schema_privilege('public', n.oid, 'create'))`, known); len(got) > 0 {
			t.Errorf("%s grants to PUBLIC: %v", pack.Name, got)
		}
	}
}

const schemas = `select nspname::text from pg_namespace where nspname !~ '^pg_'`

func column(t *testing.T, test *tidemarktest.DB, sql string, args ...any) []string {
	t.Helper()
	rows, err := test.Pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Requirements PK1 and RO9: the source document's vocabulary, a type for captured inserts, and routes that are off and in
// dry run.
func TestIUCore(t *testing.T) {
	t.Parallel()
	db := installIUCore(t, tidemarktest.NewDB(t))

	types, err := db.EventTypes(t.Context(), "iu", store.Part{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range types {
		names = append(names, e.Type)
		if _, err := payload.Compile(e.Schema); err != nil {
			t.Error(e.Type, err)
		}
		if e.Description == "" || !e.Enabled {
			t.Errorf("%+v", e)
		}
	}
	slices.Sort(names)
	want := strings.Fields(`IU_CHILD_ADDED IU_CHILD_ORDER_CHANGED IU_DEPRECATED IU_LINEAGE_CHANGED IU_MERGED IU_REPARENTED
		IU_REPLACED IU_ROOT_ADDED IU_SPLIT IU_SQL_LINK_CHANGED comment_added draft_created sql_link_changed unit_created
		unit_enacted version_applied`)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}

	routes, err := db.Routes(t.Context(), store.RouteFilter{Worker: "iu_outbound_default"})
	if err != nil || len(routes) != 15 {
		t.Fatal(routes, err)
	}
	// Each route has the type of its name, and each type of structure has one.
	routed := map[string]string{}
	for _, r := range routes {
		if r.Enabled || !r.DryRun || r.Domain != "iu" || r.TargetKind != "notify" {
			t.Errorf("%+v", r)
		}
		routed[r.RouteCode] = r.Type
	}
	if diff := cmp.Diff(map[string]string{
		"iu_events": "*", "iu_unit_created": "unit_created", "iu_unit_enacted": "unit_enacted", "iu_version_applied": "version_applied",
		"iu_sql_link_changed": "sql_link_changed", "iu_child_added": "IU_CHILD_ADDED", "iu_split": "IU_SPLIT", "iu_merged": "IU_MERGED",
		"iu_deprecated": "IU_DEPRECATED", "iu_reparented": "IU_REPARENTED", "iu_structure_sql_link_changed": "IU_SQL_LINK_CHANGED",
		"iu_replaced": "IU_REPLACED", "iu_root_added": "IU_ROOT_ADDED", "iu_child_order_changed": "IU_CHILD_ORDER_CHANGED",
		"iu_lineage_changed": "IU_LINEAGE_CHANGED",
	}, routed); diff != "" {
		t.Error(diff)
	}
	domains, err := db.Domains(t.Context())
	if err != nil || len(domains) != 2 || domains[0].Domain != "iu" || !domains[0].MetadataOnly { // and system
		t.Error(domains, err)
	}
	health, err := db.WorkerHealthOf(t.Context(), "iu_outbound_default")
	if err != nil || health.Status != "closed" {
		t.Error(health, err)
	}
}

// A second install keeps what an operator changed, and changes nothing itself.
func TestInstallAgainKeepsSwitches(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	db := installIUCore(t, test)
	for _, change := range []func() error{
		func() error {
			_, err := db.RouteSet(t.Context(), "iu_events", store.Changes{"enabled": true, "target_ref": "mine"}, "", false)
			return err
		},
		func() error {
			_, err := db.TypeSet(t.Context(), "iu", "comment_added", store.Changes{"enabled": false}, "")
			return err
		},
		func() error {
			_, err := db.DomainSet(t.Context(), "iu", store.Changes{"description": "mine"}, "")
			return err
		},
		func() error {
			_, err := db.WorkerSet(t.Context(), "iu_outbound_default", store.Changes{"read_order": "strict"}, "", "")
			return err
		},
		func() error {
			_, err := db.InboundRouteSet(t.Context(), "iu_sql_link_insert", store.Changes{"enabled": true, "payload_columns": []string{"unit_id"}}, "")
			return err
		},
		func() error { return db.GateSet(t.Context(), "worker.iu_outbound_default.enabled", true, "") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	before := configuration(t, test)
	installIUCore(t, test)
	if diff := cmp.Diff(before, configuration(t, test)); diff != "" {
		t.Error(diff)
	}
}

// configuration is every row that a pack may touch, and how often one was changed.
func configuration(t *testing.T, test *tidemarktest.DB) (all map[string]json.RawMessage) {
	t.Helper()
	const sql = `select jsonb_build_object(
		'domain', (select jsonb_agg(d order by d.domain) from tidemark.domain d),
		'event_type', (select jsonb_agg(e order by e.type) from tidemark.event_type e),
		'worker', (select jsonb_agg(w order by w.id) from tidemark.worker w),
		'outbound_route', (select jsonb_agg(r order by r.id) from tidemark.outbound_route r),
		'inbound_route', (select jsonb_agg(r order by r.id) from tidemark.inbound_route r),
		'setting', (select jsonb_agg(s order by s.key) from tidemark.setting s),
		'changes', (select count(*) from tidemark.audit a))`
	if err := test.Pool.QueryRow(t.Context(), sql).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Each type has ids that it needs, and refuses every other field, from SQL and from Go.
func TestIUCoreTakesIDsAndNoContent(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	db := installIUCore(t, test)
	whole := map[string]string{
		"IU_CHILD_ADDED":         `{"unit_id": "u", "parent_id": "p"}`,
		"IU_SPLIT":               `{"unit_id": "u", "part_ids": ["a", "b"]}`,
		"IU_MERGED":              `{"unit_id": "u", "merged_ids": ["a"]}`,
		"IU_DEPRECATED":          `{"unit_id": "u"}`,
		"IU_REPARENTED":          `{"unit_id": "u", "old_parent_id": null, "new_parent_id": "p"}`,
		"IU_SQL_LINK_CHANGED":    `{"unit_id": "u", "link_id": "l"}`,
		"IU_REPLACED":            `{"unit_id": "u", "replaced_by": "v"}`,
		"IU_ROOT_ADDED":          `{"unit_id": "u"}`,
		"IU_CHILD_ORDER_CHANGED": `{"parent_id": "p", "child_ids": ["a"]}`,
		"IU_LINEAGE_CHANGED":     `{"unit_id": "u"}`,
		"unit_created":           `{"unit_id": "u"}`,
		"unit_enacted":           `{"unit_id": "u"}`,
		"version_applied":        `{"unit_id": "u", "version_id": "v"}`,
		"draft_created":          `{"unit_id": "u", "draft_id": "d"}`,
		"comment_added":          `{"unit_id": "u", "comment_id": "c"}`,
		"sql_link_changed":       `{"schema": "public", "table": "iu_sql_link", "operation": "insert", "primary_key": {"link_id": 7}}`,
	}
	types, err := db.EventTypes(t.Context(), "iu", store.Part{})
	if err != nil || len(types) != len(whole) {
		t.Fatal(len(types), err)
	}
	emits := func(name string, payload map[string]any) (bySQL, byGo error) {
		t.Helper()
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		_, bySQL = test.Pool.Exec(t.Context(), `select tidemark.emit('iu', $1, $2)`, name, string(text))
		_, byGo = tidemark.Emit(t.Context(), test.Pool, tidemark.Event{Domain: "iu", Type: name, Payload: text})
		return bySQL, byGo
	}
	for name, text := range whole {
		var payload map[string]any
		if err := json.Unmarshal([]byte(text), &payload); err != nil {
			t.Fatal(err)
		}
		if bySQL, byGo := emits(name, payload); bySQL != nil || byGo != nil {
			t.Errorf("%s: %v, %v", name, bySQL, byGo)
		}
		payload["title"] = "never to be seen"
		if bySQL, byGo := emits(name, payload); !errors.Is(tidemark.AsError(bySQL), tidemark.ErrPayload) || !errors.Is(byGo, tidemark.ErrPayload) {
			t.Errorf("%s with content: %v, %v", name, bySQL, byGo)
		}
		delete(payload, "title")
		for key := range payload {
			without := maps.Clone(payload)
			delete(without, key)
			bySQL, byGo := emits(name, without)
			if byGo == nil || bySQL == nil && name != "version_applied" { // which has two shapes
				t.Errorf("%s without %s: %v, %v", name, key, bySQL, byGo)
			}
		}
		for key, value := range payload {
			if list, ok := value.([]any); ok { // ids, and as many as it needs
				for _, wrong := range []any{[]any{}, []any{1}, []any{map[string]any{"body": "…"}}, append(list, "")} {
					other := maps.Clone(payload)
					other[key] = wrong
					if _, byGo := emits(name, other); byGo == nil {
						t.Errorf("%s: %s may be %v", name, key, wrong)
					}
				}
			}
		}
	}
	if _, byGo := emits("IU_SPLIT", map[string]any{"unit_id": "u", "part_ids": []string{"a"}}); byGo == nil {
		t.Error("a unit is split into one")
	}
}

// The gate of the domain, beside the master gate and the worker's; and a worker that decides for iu alone.
func TestIUCoreIsBehindThreeGates(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	installIUCore(t, test)
	exec := func(sql string) {
		t.Helper()
		if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run := func(want string) {
		t.Helper()
		wantLines(t, test, `select concat_ws(' ', r ->> 'status', r ->> 'gate', r ->> 'events') from tidemark.route_worker_run('iu_outbound_default') r`, want)
	}
	exec(`select tidemark.type_set('shop', 'order')`)
	exec(`select tidemark.emit('iu', 'IU_SPLIT', '{"unit_id": "u", "part_ids": ["a", "b"]}'), tidemark.emit('shop', 'order')`)
	run("closed routes.enabled 0")
	exec(`select tidemark.gate_set('routes.enabled', true)`)
	run("closed worker.iu_outbound_default.enabled 0")
	exec(`select tidemark.gate_set('worker.iu_outbound_default.enabled', true)`)
	run("closed domain.iu.enabled 0")
	wantLines(t, test, `select event_id::text from tidemark.route_attempt`)
	installIUCore(t, test)
	exec(`select tidemark.gate_set('domain.iu.enabled', true); update tidemark.outbound_route set enabled = true`)
	installIUCore(t, test)
	run("ran 2")
	// Of another domain's event there is no evidence, and of the split what its two routes come to.
	wantLines(t, test, `select concat_ws(' ', o.domain, a.route_code, a.outcome) from tidemark.route_attempt a join tidemark.outbox o using (event_id) order by 1`,
		"iu iu_events dry_run", "iu iu_split dry_run")
}

// The files of a pack are one script, in the order of their names.
func TestLoadJoinsFiles(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	all, err := load(fstest.MapFS{
		"p/pack.yaml": file("pack: p\nversion: 1.0.0"), "p/02_b.sql": file("select 2;\n"), "p/01_a.sql": file("select 1; -- no end of line"),
		"p/10_c.sql": file("select 3;"), "p/README.md": file("not this"),
	})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if diff := cmp.Diff("select 1; -- no end of line\nselect 2;\n\nselect 3;\n", all[0].SQL); diff != "" {
		t.Error(diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for want, fsys := range map[string]fstest.MapFS{
		"field colour not found":             {"p/pack.yaml": file("pack: p\nversion: 1.0.0\ncolour: red")},
		`pack is "q", must be the name`:      {"p/pack.yaml": file("pack: q\nversion: 1.0.0")},
		"version is missing":                 {"p/pack.yaml": file("pack: p")},
		"no file of its folder ends in .sql": {"p/pack.yaml": file("pack: p\nversion: 1.0.0")},
		"pack.yaml: file does not exist":     {"p/install.sql": file("select 1")},
		"pack p: pack.yaml: EOF":             {"p/pack.yaml": file("")},
	} {
		_, err := load(fsys)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, found, err := Find("never"); found || err != nil {
		t.Error(found, err)
	}
}
