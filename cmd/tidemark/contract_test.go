package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// contract is an entry of the corpus: a schema, the keywords that SQL says it does not check, and payloads.
type contract struct {
	Schema    json.RawMessage `json:"schema"`
	Unchecked []string        `json:"unchecked"`
	Fits      []string        `json:"fits"`
	Misfits   []string        `json:"misfits"`
	Strict    []string        `json:"strict"` // refused by Go and the command; jsonb keeps the last of equal keys
}

// 11.7: the command, Go and SQL accept the same payloads of the same schemas, except for the keywords that type_set says SQL
// does not check.
func TestOneContractForSchemas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../internal/payload/testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus []contract
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	db := tidemarktest.NewDB(t)
	conn := db.Connect(t)

	type emitted struct {
		contract
		event, payload string
		want           bool
	}
	var all []emitted
	var input bytes.Buffer
	for i, c := range corpus {
		event := fmt.Sprintf("t%d", i)
		var unchecked []string
		if err := conn.QueryRow(t.Context(), `select unchecked_keywords from tidemark.type_set('shop', $1, jsonb_build_object('schema', $2::jsonb))`,
			event, string(c.Schema)).Scan(&unchecked); err != nil {
			t.Fatalf("%s: %v", c.Schema, err)
		}
		if !slices.Equal(unchecked, c.Unchecked) {
			t.Errorf("%s: SQL says that it does not check %q, want %q", c.Schema, unchecked, c.Unchecked)
		}
		for _, text := range slices.Concat(c.Fits, c.Misfits, c.Strict) {
			all = append(all, emitted{c, event, text, slices.Contains(c.Fits, text)})
			fmt.Fprintf(&input, `{"domain": "shop", "type": "%s", "payload": %s}`+"\n", event, text)
		}
	}

	byCommand := emitLinesOf(t, db.URL, &input, len(all))
	for i, e := range all {
		event := tidemark.Event{Domain: "shop", Type: e.event, Payload: json.RawMessage(e.payload)}
		_, one := tidemark.Emit(t.Context(), conn, event)
		_, many := tidemark.EmitMany(t.Context(), conn, []tidemark.Event{event})
		if (one == nil) != e.want || (many == nil) != e.want || byCommand[i] != e.want {
			t.Errorf("%s of %s: Emit %v, EmitMany %v, the command stored it: %v; want %v", e.payload, e.Schema, one, many, byCommand[i], e.want)
		}
		bySQL := storedBySQL(t, conn, e.event, e.payload)
		if want := fitsWithout(t, e.contract, e.payload); bySQL != want {
			t.Errorf("%s of %s: SQL stored it: %v; want %v, by what it said", e.payload, e.Schema, bySQL, want)
		}
	}
}

// emitLinesOf tells which lines `tidemark emit` stored.
func emitLinesOf(t *testing.T, url string, input *bytes.Buffer, lines int) []bool {
	t.Helper()
	c := program(t, url, "emit", "--ndjson", "--continue", "-o", "json")
	c.Stdin = input
	var told bytes.Buffer
	c.Stderr = &told
	out, err := c.Output()
	if c.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v: %s%s", err, out, told.String())
	}
	stored := make([]bool, lines)
	for line := range bytes.Lines(out) {
		var result lineResult
		if err := json.Unmarshal(line, &result); err != nil {
			t.Fatal(err)
		}
		stored[result.Line-1] = result.EventID != nil
	}
	return stored
}

func storedBySQL(t *testing.T, conn *pgx.Conn, event, text string) bool {
	t.Helper()
	var id *string
	err := conn.QueryRow(t.Context(), `select tidemark.emit('shop', $1, $2::text::jsonb)::text`, event, text).Scan(&id)
	return err == nil && id != nil
}

// fitsWithout tells by Go's checker whether a payload fits the part of a schema that SQL says it checks.
func fitsWithout(t *testing.T, c contract, text string) bool {
	t.Helper()
	if slices.Contains(c.Strict, text) {
		return true
	}
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for _, pointer := range c.Unchecked {
		part, names := schema, strings.Split(pointer, "/")[1:]
		for len(names) > 1 {
			next, ok := part[unescaped(names[0])].(map[string]any)
			if !ok {
				break
			}
			part, names = next, names[1:]
		}
		delete(part, unescaped(names[0]))
	}
	rest, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	checker, err := payload.Compile(rest)
	if err != nil {
		t.Fatalf("%s: %v", rest, err)
	}
	return strings.HasPrefix(text, "{") && checker.Check(json.RawMessage(text)) == nil
}

func unescaped(name string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(name) }

// The registry refuses a document that SQL can tell is not a JSON Schema, from every role; Go and the command refuse the others.
func TestSchemasThatAreNone(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	conn := db.Connect(t)
	for schema, want := range map[string]string{
		`{"required": "id"}`:                    "schema of shop/x: /required is not an array",
		`{"required": [1]}`:                     "schema of shop/x: /required has an element that is not a string",
		`{"properties": []}`:                    "schema of shop/x: /properties is not an object",
		`{"properties": {"a": 3}}`:              "schema of shop/x: /properties/a is not a schema",
		`{"type": "objekt"}`:                    `schema of shop/x: /type is "objekt", and must be one or more of`,
		`{"type": {}}`:                          "schema of shop/x: /type is {}",
		`{"properties": {"a": {"type": []}}}`:   "schema of shop/x: /properties/a/type is []",
		`{"properties": {"a": {"type": null}}}`: "schema of shop/x: /properties/a/type is null",
	} {
		for _, sql := range []string{
			`select tidemark.type_set('shop', 'x', jsonb_build_object('schema', $1::jsonb))`,
			`insert into tidemark.event_type (domain, type, schema) values ('shop', 'x', $1)`,
		} {
			_, err := conn.Exec(t.Context(), sql, schema)
			var refused *tidemark.Error
			if !errors.As(tidemark.AsError(err), &refused) || refused.Code != "TM005" || !strings.HasPrefix(refused.Message, want) {
				t.Errorf("%s:\ngot  %v\nwant %s", schema, err, want)
			}
		}
		if _, err := payload.Compile(json.RawMessage(schema)); err == nil {
			t.Errorf("Go takes %s", schema)
		}
	}

	// A keyword that SQL does not check may be wrong: then no payload fits, and the error blames the schema.
	if _, err := conn.Exec(t.Context(), `select tidemark.type_set('shop', 'x', '{"schema": {"minProperties": "one"}}')`); err != nil {
		t.Fatal(err)
	}
	_, err := tidemark.Emit(t.Context(), conn, tidemark.Event{Domain: "shop", Type: "x"})
	if !errors.Is(err, tidemark.ErrPayload) || !strings.Contains(err.Error(), "schema is not a JSON Schema: ") {
		t.Error(err)
	}
}
