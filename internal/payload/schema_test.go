package payload_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
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
	var schemas payload.Schemas
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
		err := schemas.Check(json.RawMessage(order), json.RawMessage(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// What the payload's author wrote cannot forge a line of ours or steer a terminal.
func TestCheckIsOneLineOfText(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
	err := schemas.Check(json.RawMessage(`{"additionalProperties": {"type": "string"}}`), json.RawMessage(`{"\u001b[31mx\n": 1}`))
	if want := "·[31mx : got number, want string"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestCheckNamesTheFirstFew(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
	err := schemas.Check(json.RawMessage(order), json.RawMessage(`{"id":1,"items":[{},{},{},{},{},{}]}`))
	if err == nil || strings.Count(err.Error(), "missing") != 3 || !strings.HasSuffix(err.Error(), "; and more") {
		t.Errorf("got %v", err)
	}
}

func TestNoSchema(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
	if err := schemas.Check(nil, json.RawMessage(`{"any": "thing"}`)); err != nil {
		t.Error(err)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
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
		err := schemas.Compile(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestCompileTakesOlderDrafts(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
	for _, draft := range []string{
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
	} {
		if err := schemas.Compile(json.RawMessage(`{"$schema": "` + draft + `", "type": "object"}`)); err != nil {
			t.Error(err)
		}
	}
}

// A schema that was changed in the registry holds at once, and one that was replaced
// many times does not fill the memory.
func TestSchemasAtOnce(t *testing.T) {
	t.Parallel()
	var schemas payload.Schemas
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for n := range 1100 {
				schema := json.RawMessage(`{"required": ["k` + strconv.Itoa(n) + `"]}`)
				if schemas.Check(schema, json.RawMessage(`{}`)) == nil {
					t.Error("the schema of another time holds")
				}
			}
		})
	}
	wait.Wait()
}

func BenchmarkCheck(b *testing.B) {
	var schemas payload.Schemas
	for b.Loop() {
		if err := schemas.Check(json.RawMessage(order), json.RawMessage(`{"id": 1, "items": [{"sku": "x"}]}`)); err != nil {
			b.Fatal(err)
		}
	}
}
