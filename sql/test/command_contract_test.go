package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM1: whatever JSON stands in the place of a schema, the check of a document does not raise. Where SQL says that it checks all of it, it is a
// schema, and Go's checker says the same of each document.
func TestCommandContractOfAnyJSON(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "contract")
	r := rand.New(rand.NewPCG(27, 11))
	whole, broken := 0, 0
	for range 4000 {
		document, schema := anyJSON(r, 2), anySchema(r, 3)
		text := one[string](s, `select $1::text::jsonb::text`, schema) // as it is in the registry
		fits := one[bool](s, `select not exists (select from tidemark.contract_errors($1::text::jsonb, $2::text::jsonb))`, document, text)
		if !one[bool](s, `select tidemark.contract_unchecked($1::text::jsonb) = '{}'`, text) {
			broken++
			continue
		}
		whole++
		if text == "true" || text == "false" {
			continue
		}
		checker, err := payload.Compile(json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v, and SQL would check all of it", text, err)
		} else if err := checker.Check(json.RawMessage(document)); (err == nil) != fits {
			t.Errorf("%s of %s: SQL says that it fits: %t, Go %v", document, text, fits, err)
		}
	}
	if whole < 500 || broken < 500 {
		t.Errorf("SQL checks %d schemas wholly, and %d in part", whole, broken)
	}
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func anyJSON(r *rand.Rand, deep int) string {
	if deep == 0 || r.IntN(2) == 0 {
		return pick(r, `1`, `1.0`, `-1`, `2.5`, `100`, `1e30`, `"a"`, `"b"`, `"100"`, `"false"`, `""`, `true`, `false`, `null`, `[]`, `{}`)
	}
	return composite(r, func() string { return pick(r, "a", "b", "c") }, func(string) string { return anyJSON(r, deep-1) })
}

func composite(r *rand.Rand, name func() string, member func(name string) string) string {
	var parts []string
	object := r.IntN(2) == 0
	for i := range r.IntN(3) {
		if !object {
			parts = append(parts, member(""))
			continue
		}
		n := name()
		parts = append(parts, fmt.Sprintf(`%q: %s`, n+strings.Repeat("_", i), member(n)))
	}
	if object {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// anySchema mostly has what its keywords take.
func anySchema(r *rand.Rand, deep int) string {
	if deep == 0 || r.IntN(12) == 0 {
		return pick(r, `true`, `false`, `{}`, `{"type": "string"}`, `{"type": "integer"}`, `{"type": 5}`, `5`, `"object"`, `null`)
	}
	of := map[string]func() string{
		"type": func() string {
			return pick(r, `"object"`, `"array"`, `"number"`, `["string", "integer"]`, `["null", "null"]`, `[]`, `"text"`)
		},
		"required":             func() string { return pick(r, `["a"]`, `["a", "b"]`, `["a", "a"]`, `[1]`, `[]`) },
		"properties":           func() string { return fmt.Sprintf(`{"a": %s, "b": %s}`, anySchema(r, deep-1), anySchema(r, deep-1)) },
		"$defs":                func() string { return fmt.Sprintf(`{"a": %s}`, anySchema(r, deep-1)) },
		"additionalProperties": func() string { return anySchema(r, deep-1) },
		"items":                func() string { return anySchema(r, deep-1) },
		"enum":                 func() string { return fmt.Sprintf(`[%s, %s]`, anyJSON(r, 1), anyJSON(r, 1)) },
		"const":                func() string { return anyJSON(r, 1) },
		"$schema": func() string {
			return pick(r, `"https://json-schema.org/draft/2020-12/schema"`, `"http://json-schema.org/draft-04/schema#"`, `"x"`)
		},
		"$id":        func() string { return pick(r, `"https://example.com/a"`, `"%zz"`, `"#a"`, `"https://example.com/a#b"`) },
		"deprecated": func() string { return pick(r, `true`, `"yes"`) },
		"examples":   func() string { return pick(r, `[1]`, `1`) },
		"unknown":    func() string { return `1` },
	}
	for _, number := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"} {
		of[number] = func() string { return pick(r, `0`, `1`, `2`, `1.0`, `-1`, `1.5`, `1e30`) }
	}
	for _, note := range []string{"title", "description", "$comment"} {
		of[note] = func() string { return `"a"` }
	}
	names := []string{
		"type", "type", "required", "properties", "properties", "additionalProperties", "items", "enum", "const", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "title", "description", "$comment", "$defs", "$schema", "$id", "deprecated", "examples", "unknown",
	}
	var parts []string
	for range 1 + r.IntN(4) {
		name := pick(r, names...)
		value := of[name]()
		if r.IntN(15) == 0 {
			value = anyJSON(r, 2)
		}
		parts = append(parts, fmt.Sprintf(`%q: %s`, name, value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
