package bundle_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/command/bundle"
)

// made is a bundle as init writes it, with changes: a file's new text by its name, or a replacement OLD=>NEW in it; - removes it.
func made(t *testing.T, changes map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	if _, err := bundle.Create(dir, "billing"); err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		name = filepath.Join(dir, name)
		from, to, replaces := strings.Cut(change, "=>")
		switch {
		case change == "-":
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			continue
		case replaces:
			text, err := os.ReadFile(name)
			if err != nil || !strings.Contains(string(text), from) {
				t.Fatalf("%s has no %q: %v", name, from, err)
			}
			change = strings.Replace(string(text), from, to, 1)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(change), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, changes map[string]string) *bundle.Bundle {
	t.Helper()
	b, problems, err := bundle.Read(made(t, changes))
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	return b
}

func TestCreatedBundleIsSound(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"billing", "user-profile", "a", "x_9"} {
		dir := filepath.Join(t.TempDir(), service)
		files, err := bundle.Create(dir, service)
		if err != nil || len(files) != 6 {
			t.Error(files, err)
		}
		b, problems, err := bundle.Read(dir)
		if err != nil || problems != nil || b.Service != service || b.Name(b.Commands[0]) != service+".item.create/v1" {
			t.Error(b, problems, err)
		}
		if _, err := bundle.Create(dir, service); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("it was written again: %v", err)
		}
	}
	if _, err := bundle.Create(t.TempDir(), "Billing"); err == nil || !strings.Contains(err.Error(), "must be a lower-case name") {
		t.Error(err)
	}
}

const (
	payload1 = "schemas/item.create.v1/payload.1.json"
	payload2 = "schemas/item.create.v1/payload.2.json"
	result1  = "schemas/item.create.v1/result.1.json"
	result2  = "schemas/item.create.v1/result.2.json"
	created  = "examples/item.create.v1/created.json"
	missing  = "examples/item.create.v1/name_missing.json"
	service  = "service.yaml"
	two      = "schema_version: 1=>schema_version: 2"
	narrow   = `{"type": "object", "additionalProperties": false, "required": ["id", "name"], "properties": {"id": {"type": "integer", "minimum": 2}, "name": {"type": "string", "minLength": 1, "maxLength": 200}}}`
	wide     = `{"type": "object", "additionalProperties": false, "required": ["id", "name"], "properties": {"id": {"type": "integer", "minimum": 1}, "name": {"type": "string", "minLength": 1, "maxLength": 200}, "note": {"type": "string"}}}`
	answer   = `{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}`
)

// Each problem has its file, and those of service.yaml and of JSON's syntax their line and column.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		changes map[string]string
		want    string
	}{
		{map[string]string{service: "service: billing=>service: Billing"}, `service.yaml:2:10: service is "Billing", must be a lower-case name`},
		{map[string]string{service: "service: billing=>servise: billing"}, `service.yaml:2:1: servise is an unknown key; known are service,`},
		{map[string]string{service: "service: billing=>service: billing\nservice: x"}, `service.yaml:3:1: service is a duplicate: first in line 2`},
		{map[string]string{service: "service: billing=>"}, `service.yaml:3:1: service is missing`},
		{map[string]string{service: "service: billing=>service:"}, `service.yaml:2:9: service has no value`},
		{map[string]string{service: "service: billing=>service: [billing"}, `service.yaml:2: is not YAML: did not find`},
		{map[string]string{service: "# nothing"}, `service.yaml:1: is empty`},
		{map[string]string{service: "item.create #=>billing.item.create #"}, `service.yaml:6:14: commands[0].command is "billing.item.create", must be "item.create"`},
		{map[string]string{service: "    version: 1=>    version: 0"}, `service.yaml:7:14: commands[0].version must be a whole number from 1`},
		{map[string]string{service: "timeout: 5s=>timeout: 5"}, `service.yaml:10:14: commands[0].timeout must be text`},
		{map[string]string{service: "timeout: 5s=>timeout: 11m"}, `commands[0].timeout must be a duration with its unit`},
		{map[string]string{service: "timeout: 5s=>retention: 30m"}, `commands[0].retention must be a duration`},
		{map[string]string{service: "timeout: 5s=>when_disabled: drop"}, `when_disabled is "drop", must be one of hold, reject`},
		{map[string]string{service: "timeout: 5s=>terminal: [P1]"}, `terminal[0] is "P1", must be a SQLSTATE`},
		{map[string]string{service: "timeout: 5s=>retry_policy: {max_attempts: 0}"}, `retry_policy.max_attempts must be a number from 1 to 100`},
		{map[string]string{service: "timeout: 5s=>statement: sql/item.sql"}, `service.yaml:6:5: commands[0] must have either function or statement`},
		{map[string]string{service: "timeout: 5s=>parameters: {id: bigint}"}, `commands[0].parameters are for a statement`},
		{map[string]string{service: "function: billing.item_create=>statement: sql/none.sql"}, `statement is "sql/none.sql", must be a file of the folder sql/`},
		{map[string]string{service: "function: billing.item_create=>statement: sql/item.sql\n    parameters: {idd: bigint}"}, `parameter "idd" of item.create.v1 is no property of its payload's schema`},
		{map[string]string{service: "function: billing.item_create=>function: item_create"}, `function is "item_create", must be schema.function`},
		{map[string]string{service: "producer: my-app=>producer: my-app\n    command: item.delete"}, `producers[0].command is "item.delete", which is not under commands`},
		{map[string]string{service: "producer: my-app=>producer: my-app\n    version: 1"}, `producers[0].version needs a command`},
		{map[string]string{service: "producer: my-app=>producer: my-app\n  - producer: my-app"}, `producers[1] says the same producer and command twice`},
		{map[string]string{payload1: "-"}, `schemas/item.create.v1/payload.1.json is missing`},
		{map[string]string{payload1: `"minimum": 1=>"minimum": 1,`}, `schemas/item.create.v1/payload.1.json:6:44: is not JSON`},
		{map[string]string{payload1: `"minimum": 1=>"minimum": 1, "minimum": 2`}, `payload.1.json: has the key "properties.id.minimum" twice`},
		{map[string]string{payload1: `"minimum": 1=>"minimun": 1`}, `payload.1.json: /properties/id/minimun: unknown keyword`},
		{map[string]string{payload1: `"additionalProperties": false=>"additionalProperties": true`}, `payload.1.json: /: leaves its members open`},
		{map[string]string{service: two, payload2: narrow, result2: answer}, `payload.2.json: breaks schema version 1: /id: minimum was 1, is 2`},
		{map[string]string{service: two, payload2: wide, result2: strings.Replace(answer, `"required": ["id"], `, "", 1)}, `result.2.json: breaks schema version 1: /id: was always there, may be missing now`},
		{map[string]string{service: two}, `payload.2.json is missing`},
		{map[string]string{created: "-"}, `item.create.v1 has no example of a success`},
		{map[string]string{created: `"id": 7,=>"id": 0,`}, `created.json: payload: /id is less than 1`},
		{map[string]string{created: `"result": {"id": 7}=>"result": {"id": "7"}`}, `created.json: result: /id is a string, must be integer`},
		{map[string]string{created: `"result"=>"reslt"`}, `created.json: must be an object with payload`},
		{map[string]string{created: `"result": {"id": 7}=>"schema_version": 2`}, `schema_version is 2, must be from 1 to 1`},
		{map[string]string{missing: `{"id": 7}=>{"id": 7, "name": "x"}`}, `name_missing.json: the payload fits its schema, and the reason is contract.payload_invalid`},
		{map[string]string{created: `"result": {"id": 7}=>"result": {"id": 7}, "after": ["item.create.v1/none"]`}, `created.json: after: there is no example "item.create.v1/none"`},
		{map[string]string{created: `"result": {"id": 7}=>"result": {"id": 7}, "after": ["item.create.v1/name_missing"]`}, `created.json: after: item.create.v1/name_missing is no example of a success`},
		{map[string]string{created: `"result": {"id": 7}=>"result": {"id": 7}, "after": ["item.create.v1/created"]`}, `created.json: after: item.create.v1/created comes after itself`},
		{map[string]string{
			created: `"result": {"id": 7}=>"result": {"id": 7}, "after": ["item.create.v1/b"]`, "examples/item.create.v1/b.json": `{"payload": {"id": 1, "name": "x"}, "after": ["item.create.v1/created"]}`,
		}, `b.json: after: item.create.v1/b comes after itself`},
		{map[string]string{missing: `contract.payload_invalid=>contract.bad`}, `reason is "contract.bad", must be a reason`},
		{map[string]string{"schemas/item.create.v2/payload.1.json": wide}, `schemas/item.create.v2/payload.1.json: belongs to nothing in service.yaml`},
		{map[string]string{"notes.txt": "x"}, `notes.txt: belongs to nothing`},
		{map[string]string{"sql/large.sql": strings.Repeat("x", 1<<20+1)}, `sql/large.sql: is larger than 1 MiB`},
	} {
		_, problems, err := bundle.Read(made(t, c.changes))
		if err != nil || !slices.ContainsFunc(problems, func(p bundle.Problem) bool { return strings.Contains(p.String(), c.want) }) {
			t.Errorf("%v:\ngot  %q (%v)\nwant %s", c.changes, problems, err, c.want)
		}
	}
}

// What an example comes after runs once each, the deepest first; what a producer's narrowest row says of tenants counts.
func TestExamplesInOrder(t *testing.T) {
	t.Parallel()
	ofAfter := func(names string) string { return `{"payload": {"id": 1, "name": "x"}, "after": [` + names + `]}` }
	b := read(t, map[string]string{
		"examples/item.create.v1/b.json": ofAfter(`"item.create.v1/created"`),
		"examples/item.create.v1/c.json": ofAfter(`"item.create.v1/created", "item.create.v1/b"`),
		service:                          "  - producer: my-app=>  - producer: other\n    command: item.create\n    version: 1\n    tenants: [a]\n  - producer: my-app\n  - producer: other\n    tenants: [b]",
		"sql/b.sql":                      "select 1",
		"sql/a.sql":                      "select 2",
	})
	var names []string
	for _, e := range b.Commands[0].Examples {
		if e.Short() == "c" {
			steps, problem := b.Before(e)
			if problem != "" {
				t.Error(problem)
			}
			for _, s := range steps {
				names = append(names, s.Example.Name)
			}
		}
	}
	if got, want := strings.Join(names, " "), "item.create.v1/created item.create.v1/b"; got != want {
		t.Errorf("before it run %s, want %s", got, want)
	}
	if p, found := b.Asker(b.Commands[0]); !found || p.Producer != "other" || !slices.Equal(p.Tenants, []string{"a"}) {
		t.Errorf("asked by %+v, %v", p, found)
	}
	var scripts []string
	for _, s := range b.Scripts {
		scripts = append(scripts, s.Name)
	}
	if got := strings.Join(scripts, " "); got != "sql/a.sql sql/b.sql sql/item.sql" {
		t.Errorf("scripts %s", got)
	}
}

// A link could lead out of the bundle.
func TestReadRefusesLinks(t *testing.T) {
	t.Parallel()
	dir := made(t, nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "sql/more.sql")); err != nil {
		t.Fatal(err)
	}
	if _, problems, err := bundle.Read(dir); err != nil || len(problems) != 1 || problems[0].String() != "sql/more.sql: is not a plain file" {
		t.Error(problems, err)
	}
	if _, _, err := bundle.Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no service.yaml") {
		t.Error(err)
	}
}

// The checksum is of the contents and the names, and of nothing else.
func TestChecksum(t *testing.T) {
	t.Parallel()
	sum := read(t, nil).Checksum
	if again := read(t, map[string]string{"README.md": "hello", ".git/x": "y"}).Checksum; again != sum {
		t.Errorf("%s and %s", sum, again)
	}
	for name, changes := range map[string]map[string]string{
		"a blank": {created: "\"payload\"=>\"payload\" "}, "a file more": {"sql/more.sql": ""}, "a comment": {service: "# Who may=># These may"},
	} {
		if read(t, changes).Checksum == sum {
			t.Errorf("%s does not change it", name)
		}
	}
	if read(t, map[string]string{"sql/a.sql": "", "sql/b.sql": "x"}).Checksum == read(t, map[string]string{"sql/a.sql": "x", "sql/b.sql": ""}).Checksum {
		t.Error("contents may change places")
	}
}

// CM9: which change breaks whom.
func TestDiff(t *testing.T) {
	t.Parallel()
	const twoProducers = "  - producer: my-app=>  - producer: my-app\n    tenants: [a, b]\n  - producer: crm\n    command: item.create"
	older := read(t, map[string]string{service: twoProducers})
	var again bundle.Bundle // as a file has it
	if text, err := json.Marshal(older); err != nil || json.Unmarshal(text, &again) != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		changes map[string]string
		want    []string
	}{
		{"nothing", map[string]string{service: twoProducers}, nil},
		{"a title", map[string]string{service: twoProducers, created: `7=>8`}, nil},
		{"an edited version", map[string]string{service: twoProducers, payload1: `"minimum": 1=>"minimum": 2`, created: `7,=>9,`}, []string{
			"breaks my-app,crm: schema version 1 of the payload was edited: add version 2 instead",
			"breaks my-app,crm: payload of schema version 1: /id: minimum was 1, is 2",
		}},
		{"a tenant less", map[string]string{service: strings.Replace(twoProducers, "[a, b]", "[a]", 1)}, []string{
			"breaks my-app: the allowlist no longer has all tenants and commands of the producer",
		}},
		{"all tenants", map[string]string{service: strings.Replace(twoProducers, "[a, b]", "['*']", 1)}, nil},
		{"a producer less", map[string]string{service: "  - producer: my-app=>  - producer: my-app\n    tenants: [a, b]"}, []string{
			"breaks crm: the allowlist no longer has all tenants and commands of the producer",
		}},
		{"another version", map[string]string{
			service: "item.create # the full name is billing.item.create\n    version: 1=>item.create\n    version: 2", payload1: "-", result1: "-", created: "-", missing: "-",
			"schemas/item.create.v2/payload.1.json": wide, "schemas/item.create.v2/result.1.json": answer, "examples/item.create.v2/a.json": `{"payload": {"id": 1, "name": "x"}}`,
		}, []string{"breaks my-app,crm: is no longer offered", "ok : is new"}},
	} {
		newer := read(t, c.changes)
		var got []string
		for _, change := range bundle.Diff(&again, newer) {
			effect := map[bool]string{true: "breaks ", false: "ok "}[change.Breaks]
			got = append(got, effect+strings.Join(change.Whom, ",")+": "+change.Change)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
	upgraded := read(t, map[string]string{service: two, payload2: wide, result2: answer})
	changes := bundle.Diff(read(t, nil), upgraded)
	if len(changes) != 1 || changes[0].Breaks || changes[0].Change != "schema version 2 is new" {
		t.Errorf("got %+v", changes)
	}
	back := bundle.Diff(upgraded, read(t, nil))
	if len(back) == 0 || !back[0].Breaks || back[0].Change != "schema version 2 is gone, the newest is 1" {
		t.Errorf("got %+v", back)
	}
}
