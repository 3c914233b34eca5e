package ascode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const whole = `# A file of the shop.
file: shop
domains:
  shop: {metadata_only: true}
  empty:
types:
  shop/order.paid:
    schema:
      properties: {id: {type: integer, maximum: 12345678901234567890, multipleOf: 0.10}}
routes:
  mail:
    domain: shop
    target_kind: webhook
    target_ref: https://example.com/
    options: {unsigned: true}
    description: |
      two
      lines
workers: {w: {domains: ["no", 'a']}}
gates:
  worker.w.enabled: true
`

func TestRead(t *testing.T) {
	t.Parallel()
	f, problems, err := Read([]byte(whole))
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	var got []string
	for _, thing := range f.Things {
		got = append(got, thing.Kind+" "+thing.Name+" "+string(thing.Definition))
	}
	want := []string{
		`domain empty {}`, `domain shop {"metadata_only":true}`,
		`type shop/order.paid {"schema":{"properties":{"id":{"type":"integer","maximum":12345678901234567890,"multipleOf":0.10}}}}`,
		`worker w {"domains":["no","a"]}`,
		`route mail {"domain":"shop","target_kind":"webhook","target_ref":"https://example.com/","options":{"unsigned":true},"description":"two\nlines\n"}`,
		`gate worker.w.enabled {"open":true}`,
	}
	if diff := cmp.Diff(want, got); diff != "" || f.Name != "shop" {
		t.Errorf("file %s (-want +got)\n%s", f.Name, diff)
	}
}

// Each problem is told with its line, all of them at once.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                         {"0: is empty"},
		"a: [":                     {"1: is not YAML: did not find expected node content"},
		"routes: {}":               {`1: the file lacks "file"`},
		"file: x\nfile: y":         {`2: "file" is a duplicate: first in line 1`},
		"file: x\nroute: {}":       {`1: the file has the unknown "route"`},
		"file: x\ngates: {g: yes}": {"2: /gates/g is a string, must be boolean"},
		"file: x\nroutes:\n  a: {domain: d, target_kind: no, target_ref: c}\n  b:\n    domain: d\n    concurrency: x\n": {
			"3: /routes/a/target_kind is none of the values that its schema lists", `4: /routes/b lacks "target_kind", "target_ref"`, "6: /routes/b/concurrency is a string, must be integer",
		},
		"file: x\ndomains:\n  a: &a {}\n  b: *a\n":             {"4: has an alias: write the value out"},
		"file: x\ndomains:\n  a: {description: \"\\0\"}\n":     {`0: the file holds \u0000, which PostgreSQL cannot store`},
		"file: x\nworkers: {w: {storm_fraction: .inf}}\n":      {"0: has a number that JSON does not have"},
		"file: x\ntypes:\n  order.paid: {}\n":                  {`2: /types has the unknown "order.paid"`},
		"file: x\n---\nfile: y\n":                              {"2: is a second document: only one is allowed"},
		"file: x\nworkers:\n  w:\n    description: 2026-01-01": nil, // a text all the same
		"file: x\nworkers:\n  w:\n    shards: 0777\n":          {"4: has the number 0777: write it in decimal digits, or as a text in quotes"},
		"file: x\nworkers:\n  w:\n    description: !env x\n":   {"4: has the tag !env, which means nothing here"},
	} {
		_, problems, err := Read([]byte(text))
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Text))
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
		}
	}
}

// What Write writes, Read reads, whatever texts there are.
func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// Not NUL, which no column holds.
		text := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("\n\t\r :#-'\"{}[]&*!|>%@`~,?\\")), rapid.Rune().Filter(func(r rune) bool { return r != 0 })))
		routes := rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}`), text, 0, 5).Draw(rt, "routes")
		want := File{Name: "f"}
		for code, description := range routes {
			definition, err := json.Marshal(map[string]any{
				"domain": description, "target_kind": "notify", "target_ref": "c", "payload_filter": map[string]any{description: []any{description, 0.1, true, nil, []any{}, map[string]any{}}},
			})
			if err != nil {
				rt.Fatal(err)
			}
			want.Things = append(want.Things, store.Thing{Kind: "route", Name: code, Definition: definition})
		}
		slices.SortFunc(want.Things, func(a, b store.Thing) int { return strings.Compare(a.Name, b.Name) })
		written, err := Write(want)
		if err != nil {
			rt.Fatal(err)
		}
		got, problems, err := Read(written)
		if err != nil || len(problems) > 0 {
			rt.Fatalf("%s\n%v %v", written, problems, err)
		}
		if diff := cmp.Diff(decoded(rt, want), decoded(rt, got)); diff != "" {
			rt.Fatalf("%s\n(-want +got)\n%s", written, diff)
		}
	})
}

// A character that cannot be seen, or that changes the direction of text, is written as an escape, and read as it was.
func TestHiddenCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	const text = "pay \u202eeur\u2066\u200b\u00ad\u00a0\ufeff\u3000\u2028\u0085\U000e0041\ufe0f\u061c\nin two lines \\"
	definition, err := json.Marshal(map[string]any{"description": text})
	if err != nil {
		t.Fatal(err)
	}
	want := File{Name: "f", Things: []store.Thing{{Kind: "domain", Name: "d\u202e", Definition: definition}}}
	written, err := Write(want)
	if err != nil || strings.ContainsFunc(string(written), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
		t.Errorf("%+q %v", written, err)
	}
	got, problems, err := Read([]byte(strings.Replace(string(written), `"d\u202E"`, "d", 1))) // no domain has such a name
	if err != nil || len(problems) > 0 || !bytes.Equal(got.Things[0].Definition, definition) {
		t.Errorf("%s\n%v %v %v", written, got, problems, err)
	}
}

// A number keeps every digit, also beyond a float64, and a text of digits stays a text.
func TestNumbersThereAndBack(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`1e400`, `"1e400"`, `9007199254740993`, `"9007199254740993"`, `0.10`, `-0`, `"0777"`, `"1_000"`, `"0x1F"`, `true`, `"true"`} {
		want := File{Name: "f", Things: []store.Thing{{Kind: "route", Name: "r", Definition: json.RawMessage(`{"domain":"d","target_kind":"notify","target_ref":"c","payload_filter":{"n":` + value + `}}`)}}}
		written, err := Write(want)
		if err != nil {
			t.Fatal(err)
		}
		got, problems, err := Read(written)
		if err != nil || len(problems) > 0 || string(got.Things[0].Definition) != string(want.Things[0].Definition) {
			t.Errorf("%s: %s\n%v %v %v", value, written, got, problems, err)
		}
	}
}

func decoded(rt *rapid.T, f File) (all []any) {
	for _, thing := range f.Things {
		var definition any
		if err := json.Unmarshal(thing.Definition, &definition); err != nil {
			rt.Fatal(err)
		}
		all = append(all, thing.Kind, thing.Name, definition)
	}
	return all
}
