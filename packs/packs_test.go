package packs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/postgres"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	tidemarktest.Main(m, func() error { return goleak.Find() })
}

func installIUCore(t *testing.T, test *tidemarktest.DB) *postgres.DB {
	t.Helper()
	return install(t, test, "iu-core")
}

func install(t *testing.T, test *tidemarktest.DB, name string) *postgres.DB {
	t.Helper()
	pack, found, err := Find(name)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	err = pgx.BeginFunc(t.Context(), test.Pool, func(tx pgx.Tx) error {
		_, err := postgres.New(tx).InstallPack(t.Context(), pack.Name, pack.Version, pack.Checksum, pack.SQL)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(test.Pool)
}

// Requirement PK1, RO9: the vocabulary of S1 with a type for captured inserts, and routes that are off and in dry run.
func TestIUCore(t *testing.T) {
	t.Parallel()
	db := installIUCore(t, tidemarktest.NewDB(t))

	types, err := db.EventTypes(t.Context(), "iu")
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
		unit_enacted unit_version_inserted version_applied`)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}

	routes, err := db.Routes(t.Context(), "iu_outbound_default")
	if err != nil || len(routes) != 6 {
		t.Fatal(routes, err)
	}
	for _, r := range routes {
		if r.Enabled || !r.DryRun || r.Domain != "iu" {
			t.Errorf("%+v", r)
		}
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
			_, err := db.RouteSet(t.Context(), "iu_events", postgres.Changes{"enabled": true, "target_ref": "mine"}, "", false)
			return err
		},
		func() error {
			_, err := db.TypeSet(t.Context(), "iu", "comment_added", postgres.Changes{"enabled": false}, "")
			return err
		},
		func() error {
			_, err := db.DomainSet(t.Context(), "iu", postgres.Changes{"description": "mine"}, "")
			return err
		},
		func() error {
			_, err := db.WorkerSet(t.Context(), "iu_outbound_default", postgres.Changes{"read_order": "strict"}, "", "")
			return err
		},
		func() error {
			_, err := db.InboundRouteSet(t.Context(), "iu_sql_link_insert", postgres.Changes{"enabled": true, "payload_columns": []string{"unit_id"}}, "")
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

// The events that a reader of the pack's README would emit.
func TestIUCoreTakesIDsAndNoContent(t *testing.T) {
	t.Parallel()
	db := installIUCore(t, tidemarktest.NewDB(t))
	for text, ok := range map[string]bool{
		`{"unit_id": "u-1"}`:                    true,
		`{"unit_id": "u-1", "parent_id": null}`: true,
		`{"unit_id": 1}`:                        false,
		`{}`:                                    false,
		`{"unit_id": "u-1", "body": "…"}`:       false,
	} {
		_, err := db.EmitStrict(t.Context(), tidemark.Event{Domain: "iu", Type: "unit_created", Payload: json.RawMessage(text)})
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
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
