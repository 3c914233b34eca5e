package ascode

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/target"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var update = flag.Bool("update", false, "write schema.json")

func TestMain(m *testing.M) { tidemarktest.Main(m) }

// schema.json is made from the catalog: columns, their types, comments, defaults and lists of values.
func TestSchemaIsGolden(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(generate(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("run go test ./internal/ascode -run TestSchemaIsGolden -update\n%s", diff)
	}
}

type object = map[string]any

const plainName = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"

func generate(t *testing.T) object {
	t.Helper()
	kinds := columns(t)
	definition := func(kind string) object { return kinds[kind] }
	add := func(kind, name, about string, property object) {
		property["description"] = about
		kinds[kind]["properties"].(object)[name] = property
	}
	// Tidemark makes that of commands.
	kinds["worker"]["properties"].(object)["source"].(object)["enum"] = []string{"outbox", "table"}
	texts := object{"type": "array", "items": object{"type": "string"}}
	add("domain", "emitters", "Roles that may emit into the domain, which must be restricted. Left out: as they are.", clone(texts))
	add("capture", "trigger", "attached: the table has the trigger of capture; always: it also fires where session_replication_role is replica. Left out: as it is.",
		object{"enum": []string{"attached", "always"}})
	add("source", "table", "The table, as schema.table; what is not in small letters is quoted.", object{"type": "string"})
	kinds["source"]["required"] = append(kinds["source"]["required"].([]string), "table")
	add("worker", "sources", "Sources that a worker of tables reads. Left out: as they are; those that are not listed are taken away with --delete only.", clone(texts))
	add("route", "target_kind", kinds["route"]["properties"].(object)["target_kind"].(object)["description"].(string), object{"enum": targetKinds()})
	named := func(kind, about, pattern string) object {
		return object{"type": []string{"object", "null"}, "description": about, "patternProperties": object{pattern: definition(kind)}, "additionalProperties": false}
	}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration as code of tidemark",
		"description": "What tidemark plan and apply read, and tidemark export writes. A column that is left out has its default; switches stay as they are.",
		"type":        "object", "required": []string{"file"}, "additionalProperties": false,
		"properties": object{
			"file":       object{"type": "string", "pattern": plainName, "description": "The name of this file: what it names is marked as its own, and another file does not change it."},
			"domains":    named("domain", "Domains, by name.", plainName),
			"types":      named("type", "Event types, by DOMAIN/TYPE.", "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}/[^\\s*]{1,128}$"),
			"captures":   named("capture", "Inbound routes, which make changes of tables events, by code.", plainName),
			"sources":    named("source", "Tables that workers read, by name.", plainName),
			"workers":    named("worker", "Workers, by name.", plainName),
			"routes":     named("route", "Routes, by code.", plainName),
			"heartbeats": named("heartbeat", "Executors whose heartbeats are expected, by name.", "^\\S{1,200}$"),
			"gates": object{
				"type": []string{"object", "null"}, "description": "Gates by name, such as worker.mailer.enabled: true is open.",
				"additionalProperties": object{"type": "boolean"},
			},
		},
	}
}

func clone(o object) object { return object{"type": o["type"], "items": o["items"]} }

func targetKinds() (all []string) {
	for _, k := range target.Kinds() {
		all = append(all, k.Kind)
	}
	return all
}

var (
	listed  = regexp.MustCompile(`^CHECK \(\(\w+ = ANY \(ARRAY\[(.*)\]\)\)\)$`)
	element = regexp.MustCompile(`'([^']*)'::text`)
)

// columns are the schemas of what stands in tables, by kind.
func columns(t *testing.T) map[string]object {
	t.Helper()
	conn := tidemarktest.NewDB(t).Connect(t)
	rows, err := conn.Query(context.Background(), `
		select k.kind, a.attname, format_type(a.atttypid, null) as type, a.attnotnull and not a.atthasdef as required,
			coalesce(col_description(a.attrelid, a.attnum), '') as about, coalesce(k.defaults -> a.attname, 'null') as default,
			coalesce((select pg_get_constraintdef(c.oid) from pg_constraint c where c.conrelid = a.attrelid and c.conkey = array[a.attnum]
			 and pg_get_constraintdef(c.oid) ~ '^CHECK \(\(\w+ = ANY '), '') as check
		from (select k.kind, k.relation, k.fixed, k.defaults - k.kept as defaults from tidemark.configuration_kind k
			union all select 'heartbeat', 'tidemark.heartbeat', array(select a.attname::text from pg_attribute a where a.attrelid = 'tidemark.heartbeat'::regclass
				and a.attname not in ('kind', 'domain_scope', 'expected_cadence_seconds', 'stale_threshold_seconds')),
				'{"kind": "external_worker", "domain_scope": [], "expected_cadence_seconds": 60}') k
		join pg_attribute a on a.attrelid = k.relation and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attname <> all (k.fixed)
		order by k.kind, a.attnum`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	var kind, name, typ, about, fallback, check string
	var required bool
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &typ, &required, &about, &fallback, &check}, func() error {
		if all[kind] == nil {
			all[kind] = object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": object{}, "required": []string{}}
		}
		property, known := map[string]object{
			"text": {"type": "string"}, "integer": {"type": "integer"}, "boolean": {"type": "boolean"}, "jsonb": {"type": "object"},
			"double precision": {"type": "number"}, "interval": {"type": "string"}, "text[]": {"type": "array", "items": object{"type": "string"}},
		}[typ]
		if !known {
			t.Errorf("%s.%s: which JSON is %s?", kind, name, typ)
		}
		if fallback != "null" {
			property["default"] = json.RawMessage(fallback)
		}
		if m := listed.FindStringSubmatch(check); m != nil {
			var values []string
			for _, v := range element.FindAllStringSubmatch(m[1], -1) {
				values = append(values, v[1])
			}
			property["enum"] = values
		}
		property["description"] = about
		all[kind]["properties"].(object)[name] = property
		if required {
			all[kind]["required"] = append(all[kind]["required"].([]string), name)
			all[kind]["type"] = "object"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
