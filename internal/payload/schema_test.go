package payload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/payload"
)

const order = `{
	"type": "object", "required": ["id"], "additionalProperties": false,
	"properties": {
		"id": {"type": "integer", "minimum": 1},
		"mail": {"type": "string", "pattern": "^[^@]+@[^@]+$"},
		"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}
	},
	"$defs": {"item": {"type": "object", "required": ["sku"]}}
}`

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id": 1}`:   "",
		`{"id": 1.0}`: "",
		`{"id": 90071992547409930000001, "mail": "a@b", "items": [{"sku": "x"}]}`: "",
		`{}`:                            "payload: missing property 'id'",
		`{"id": "7"}`:                   "id: got string, want integer",
		`{"id": 0}`:                     "id: minimum: got 0, want 1",
		`{"id": 1, "items": [{}, {}]}`:  "items.0: missing property 'sku'; items.1: missing property 'sku'",
		`{"id": 1, "mail": "a"}`:        "mail: 'a' does not match pattern '^[^@]+@[^@]+$'",
		`{"id": 1, "other": 1}`:         "payload: additional properties 'other' not allowed",
		`{"id": 1, "\u001b[31mx\n": 1}`: `payload: additional properties '\x1b[31mx\n' not allowed`,
	} {
		err := compiled(t, order).Check(json.RawMessage(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Text from a payload cannot start a new line of the error or control the terminal.
func TestCheckIsOneLineOfText(t *testing.T) {
	t.Parallel()
	err := compiled(t, `{"additionalProperties": {"type": "string"}}`).Check(json.RawMessage(`{"\u001b[31mx\n": 1}`))
	if want := "·[31mx : got number, want string"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestCheckNamesTheFirstFew(t *testing.T) {
	t.Parallel()
	err := compiled(t, order).Check(json.RawMessage(`{"id":1,"items":[{},{},{},{},{},{}]}`))
	if err == nil || strings.Count(err.Error(), "missing") != 3 || !strings.HasSuffix(err.Error(), "; and more") {
		t.Errorf("got %v", err)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type": "objekt"}`:                     "schema is not a JSON Schema: ",
		`[]`:                                     "schema must be a JSON object",
		`true`:                                   "schema must be a JSON object",
		`{`:                                      "schema is not JSON: ",
		`{"$ref": "https://example.com/s.json"}`: "references must stay within the schema",
		`{"$ref": "file:///etc/passwd"}`:         "references must stay within the schema",
		`{"$ref": "other.json"}`:                 "references must stay within the schema",
		`{"$schema": "https://example.com/my-draft"}`: "references must stay within the schema",
		`{"properties": {"a": {"pattern": "("}}}`:     "schema is not a JSON Schema: ",
	} {
		_, err := payload.Compile(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestCompileTakesOlderDrafts(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
	} {
		if _, err := payload.Compile(json.RawMessage(`{"$schema": "` + draft + `", "type": "object"}`)); err != nil {
			t.Error(err)
		}
	}
}

// Numbers that jsonb cannot store are refused before the checker computes with them: it takes 80 ms for 1e999999, and panics
// on a larger one.
func TestCheckOfLargeNumbers(t *testing.T) {
	t.Parallel()
	schema := compiled(t, `{"properties": {"n": {"minimum": 1, "maximum": 1e9, "multipleOf": 0.5}}}`)
	const unstorable = "payload holds a number that PostgreSQL cannot store: "
	for text, want := range map[string]string{
		`{"n": 1e9}`:                       "",
		`{"n": 0e-5}`:                      "n: minimum: got 0",
		`{"n": 1e131071}`:                  "n: maximum: ",
		`{"n": 1e131072}`:                  unstorable + `"1e131072"`,
		`{"n": 1e99999999}`:                unstorable + `"1e99999999"`,
		`{"n": -1E+99999999}`:              unstorable,
		`{"a": [{"b": 1e-16384}]}`:         unstorable,
		`{"n": 1e99999999999999999999999}`: unstorable,
		`{"a": [` + strings.Repeat("1e131071,", 70) + `1]}`: "payload holds numbers with more than 8388608 digits",
	} {
		err := schema.Check(json.RawMessage(text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s:\ngot  %.200v\nwant %s", text, err, want)
		}
	}
	if _, err := payload.Compile(json.RawMessage(`{"minimum": 1e99999999}`)); err == nil {
		t.Error("Compile accepted a schema with such a number")
	}
}

// Of a duplicate key, the checker might see another value than jsonb keeps: so Check refuses duplicates.
func TestCheckIsStrict(t *testing.T) {
	t.Parallel()
	schema := compiled(t, `{}`)
	for text, want := range map[string]string{
		`{"a": {"b": 1, "b": 2}}`: `payload has the key "a.b" twice`,
		`{`:                       "payload is not JSON: unexpected end of JSON input (at byte 1)",
		"{\"a\": \"\xff\"}":       "payload is not UTF-8",
		`{"a": "\ud800"}`:         `payload holds \ud800, half of a surrogate pair`,
		`{"a": "\u0000"}`:         `payload holds \u0000, which PostgreSQL cannot store`,
	} {
		if err := schema.Check(json.RawMessage(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func compiled(t testing.TB, text string) *payload.Schema {
	t.Helper()
	schema, err := payload.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func BenchmarkCheck(b *testing.B) {
	schema := compiled(b, order)
	for b.Loop() {
		if err := schema.Check(json.RawMessage(`{"id": 1, "items": [{"sku": "x"}]}`)); err != nil {
			b.Fatal(err)
		}
	}
}
