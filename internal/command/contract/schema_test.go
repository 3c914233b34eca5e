package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/command/contract"
)

const order = `{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {
	"id": {"type": "integer", "minimum": 1}, "mail": {"type": ["string", "null"], "pattern": "^[^@]+@[^@]+$", "maxLength": 20},
	"kind": {"enum": ["a", "b"]}, "lines": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/line"}}},
	"$defs": {"line": {"type": "object", "additionalProperties": false, "properties": {"sku": {"type": "string"}}, "required": ["sku"]}}}`

func compiled(t *testing.T, text string) *contract.Schema {
	t.Helper()
	schema, problems := contract.Compile(json.RawMessage(text))
	if problems != nil {
		t.Fatal(text, problems)
	}
	return schema
}

// All violations, with JSON pointers and without values.
func TestViolations(t *testing.T) {
	t.Parallel()
	got, err := compiled(t, order).Violations(json.RawMessage(
		`{"id": 0, "mail": "4111111111111111 secret, and more of it", "kind": "secret", "lines": [{}, {"sku": 7, "a/b~": "secret"}, 3], "x": "secret"}`))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, v := range got {
		found[v.String()] = true
	}
	want := map[string]bool{
		`the payload has the unknown "x"`: true, `/id is less than 1`: true, `/mail has 39 characters, must have at most 20`: true,
		`/mail does not match "^[^@]+@[^@]+$"`: true, `/kind is none of the values that its schema lists`: true, `/lines/0 lacks "sku"`: true,
		`/lines/1 has the unknown "a/b~"`: true, `/lines/1/sku is a number, must be string`: true, `/lines/2 is a number, must be object`: true,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	if _, err := compiled(t, order).Violations(json.RawMessage(`{"id": 1, "id": 2}`)); err == nil {
		t.Error("a doubled member was accepted")
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	with := func(property string) string {
		return `{"type": "object", "additionalProperties": false, "properties": {"a": ` + property + `}}`
	}
	for text, want := range map[string]string{
		`{`:                  "schema is not JSON",
		`{"type": "objekt"}`: "schema is not a JSON Schema",
		`{"type": "array"}`:  `/: must have "type": "object"`,
		`{"type": "object"}`: `/: leaves its members open: add "additionalProperties": false`,
		`{"type": "object", "additionalProperties": true}`:                                                        `/: leaves its members open`,
		`{"type": "object", "additionalProperties": {"type": "string"}}`:                                          `/: leaves its members open`,
		`{"type": "object", "additionalProperties": false, "$schema": "http://json-schema.org/draft-07/schema#"}`: `/$schema: must be "https://json-schema.org/draft/2020-12/schema"`,
		with(`{}`):                           `/properties/a: accepts any value: give it a type`,
		with(`true`):                         `/properties/a: accepts any value`,
		with(`{"type": "object"}`):           `/properties/a: leaves its members open`,
		with(`{"type": ["object", "null"]}`): `/properties/a: leaves its members open`,
		with(`{"type": "array"}`):            `/properties/a: leaves its elements open: add "items"`,
		with(`{"type": "array", "items": {"type": "object"}}`):          `/properties/a/items: leaves its members open`,
		with(`{"type": "integer", "minimun": 3}`):                       `/properties/a/minimun: unknown keyword`,
		with(`{"type": "string", "pattern": "(?=x)"}`):                  "schema is not a JSON Schema",
		with(`{"$ref": "https://example.com/s.json"}`):                  "references must stay within the schema",
		with(`{"$ref": "#/$defs/none"}`):                                "schema is not a JSON Schema",
		with(`{"$id": "https://example.com/a", "type": "string"}`):      `/properties/a/$id: an identifier may stand at the top only`,
		with(`{"$anchor": "x", "type": "string"}`):                      `/properties/a/$anchor: unknown keyword`,
		with(`{"anyOf": [{"type": "string"}, {"type": "object"}]}`):     `/properties/a: accepts any value`,
		with(`{"$ref": "#/properties/a"}`):                              `leads back to itself`,
		with(`{"type": "string", "type": "string"}`):                    `schema has the key "properties.a.type" twice`,
		with(`{"allOf": [{"properties": {"b": {"type": "integer"}}}]}`): `/properties/a: accepts any value`,
	} {
		if _, problems := contract.Compile(json.RawMessage(text)); !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s:\ngot  %q\nwant %s", text, problems, want)
		}
	}
	for _, property := range []string{
		`{"$ref": "#"}`, `{"const": null}`, `{"enum": [1, {"x": 1}]}`, `false`, `{"type": "array", "items": {"type": "null"}}`,
		`{"anyOf": [{"type": "null"}, {"$ref": "#"}]}`, `{"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}`,
		`{"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": false, "if": {"required": ["b"]}, "then": {"properties": {"b": {"minLength": 1}}}}`,
		`{"type": "integer", "x-unit": "cent", "title": "Cents"}`,
	} {
		compiled(t, with(property))
	}
}

func TestCompatible(t *testing.T) {
	t.Parallel()
	type test struct{ old, new, payload, result string }
	object := func(properties, more string) string {
		return `{"type": "object", "additionalProperties": false, "properties": {` + properties + `}` + more + `}`
	}
	one := func(schema string) string { return object(`"a": `+schema, "") }
	list := func(schema string) string { return one(`{"type": "array", "items": ` + schema + `}`) }
	shape := func(properties string) string {
		return one(`{"type": "object", "additionalProperties": false, "properties": {` + properties + `}}`)
	}
	const integer, text = `{"type": "integer"}`, `{"type": "string"}`
	for name, c := range map[string]test{
		"the same":               {order, order, "", ""},
		"an optional member":     {one(integer), object(`"a": `+integer+`, "b": `+text, ""), "", ""},
		"a member less":          {object(`"a": `+integer+`, "b": `+text, ""), one(integer), "/b: is no longer taken", ""},
		"required":               {one(integer), object(`"a": `+integer, `, "required": ["a"]`), "/a: is required now, was not", ""},
		"no longer required":     {object(`"a": `+integer, `, "required": ["a"]`), one(integer), "", "/a: was always there, may be missing now"},
		"a lower bound":          {one(integer), one(`{"type": "integer", "minimum": 1}`), "/a: minimum was not there, is 1", ""},
		"a wider bound":          {one(`{"type": "integer", "minimum": 1}`), one(`{"type": "integer", "exclusiveMinimum": 0.5}`), "", "/a: minimum was 1, is not there"},
		"a bound left out":       {one(`{"type": "integer", "minimum": 1}`), one(`{"type": "integer", "exclusiveMinimum": 1}`), "/a: exclusiveMinimum was not there, is 1", ""},
		"no first element":       {one(`{"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}`), one(`{"type": "array", "items": {"type": "integer"}}`), "/a: items was", "/a: "},
		"integer to number":      {one(integer), one(`{"type": "number"}`), "", `/a: type was "integer", is "number"`},
		"a null":                 {one(integer), one(`{"type": ["null", "integer"]}`), "", `/a: type was "integer", is ["null","integer"]`},
		"another type":           {one(integer), one(text), `/a: type was "integer", is "string"`, `/a: type was "integer", is "string"`},
		"a value more":           {one(`{"enum": ["x"]}`), one(`{"enum": ["x", "y"]}`), "", `/a: enum was ["x"], is ["x","y"]`},
		"const into enum":        {one(`{"const": 1}`), one(`{"enum": [1.0, 2]}`), "", `/a: const was 1, is [1.0,2]`},
		"a pattern":              {one(text), one(`{"type": "string", "pattern": "^x"}`), `/a: pattern was not there, is "^x"`, ""},
		"shorter":                {one(`{"type": "string", "maxLength": 9}`), one(`{"type": "string", "maxLength": 8}`), "/a: maxLength was 9, is 8", ""},
		"no multiple any more":   {one(`{"type": "number", "multipleOf": 0.5}`), one(`{"type": "number", "multipleOf": 0.25}`), "", "/a: multipleOf was 0.5, is 0.25"},
		"in elements":            {list(integer), list(`{"type": "integer", "maximum": 3}`), "/a/*: maximum was not there, is 3", ""},
		"deeper":                 {shape(`"b": ` + integer), shape(`"c": ` + integer), "/a/b: is no longer taken", ""},
		"a title":                {one(integer), one(`{"type": "integer", "title": "A"}`), "", ""},
		"what is not understood": {one(`{"anyOf": [{"type": "null"}, {"type": "integer"}]}`), one(`{"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]}`), "/a: anyOf was", "/a: anyOf was"},
		"the same, referred to":  {one(integer), object(`"a": {"$ref": "#/$defs/a"}`, `, "$defs": {"a": {"type": "integer"}}`), "", ""},
		"another under one name": {
			object(`"a": {"$ref": "#/$defs/a"}`, `, "$defs": {"a": {"type": "integer"}}`),
			object(`"a": {"$ref": "#/$defs/a"}`, `, "$defs": {"a": {"type": "string"}}`), `/a: type was "integer", is "string"`, `/a: type was`,
		},
	} {
		for _, direction := range []struct {
			want   string
			breaks []contract.Break
		}{
			{c.payload, contract.Payload(compiled(t, c.old), compiled(t, c.new))}, {c.result, contract.Result(compiled(t, c.old), compiled(t, c.new))},
		} {
			got := strings.Trim(fmt.Sprint(direction.breaks), "[]")
			if (got == "") != (direction.want == "") || !strings.HasPrefix(got, strings.Trim(direction.want, "]")) {
				t.Errorf("%s: got %q, want %q", name, got, direction.want)
			}
		}
	}
}
