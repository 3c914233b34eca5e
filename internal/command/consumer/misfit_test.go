package consumer_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// CM1: the daemon holds payloads to the whole of their schema, also to what SQL does not check; all violations are named, and no values.
func TestConsumerChecksTheWholeSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"payload_schema": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
		"id": {"$ref": "#/$defs/id"}, "mail": {"type": "string", "pattern": "^[a-z]+@[a-z]+$"}, "colour": {"anyOf": [{"const": "red"}, {"const": "blue"}]}},
		"$defs": {"id": {"type": "integer", "minimum": 1}}}}')`, w.service)
	ask := func(key, payload string) *kgo.Record { return &kgo.Record{Value: w.envelope(key, payload, nil)} }
	w.send(0, ask("fits", `{"id": 1, "mail": "a@b", "colour": "red"}`), ask("two", `{"id": 0, "mail": "secret", "colour": "blue"}`), ask("any", `{"id": 2, "colour": "green"}`),
		ask("both", `{"id": 3, "mail": "x", "more": 1}`), ask("last", `{"id": 4}`))
	w.run()
	w.eventually(results, "processed fits", "rejected contract.payload_invalid two", "rejected contract.payload_invalid any", "rejected contract.payload_invalid both", "processed last")
	w.eventually(made, "1", "4")
	message := `select payload ->> 'error_message' from tidemark.outbox where payload ->> 'idempotency_key' = `
	w.eventually(message+`'two'`, `payload /id is less than 1; /mail does not match "^[a-z]+@[a-z]+$"`)
	w.eventually(`select (payload ->> 'error_message' like 'payload /%more%' and payload ->> 'error_message' like '%/mail %')::text from tidemark.outbox
		where payload ->> 'idempotency_key' = 'both'`, "true")

	// Also of a command that is off: what is parked runs when it is on.
	const schema = `{"function": "app.make", "payload_schema": {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^[a-z]+@[a-z]+$"}}}}`
	w.exec(`select tidemark.command_set($1, 'off', 1, $2)`, w.service, schema)
	off := func(key, payload string) *kgo.Record {
		return &kgo.Record{Value: w.envelope(key, payload, map[string]any{"command": "off"})}
	}
	w.send(0, off("bad", `{"id": 7, "mail": "secret"}`), off("good", `{"id": 8}`))
	told := []string{
		"processed fits", "rejected contract.payload_invalid two", "rejected contract.payload_invalid any", "rejected contract.payload_invalid both", "processed last",
		"rejected contract.payload_invalid bad", "failed_retryable good",
	}
	w.eventually(results, told...)
	w.exec(`select tidemark.command_set($1, 'off', 1, '{"enabled": true, "dry_run": false}')`, w.service)
	w.eventually(results, append(told, "processed good")...)
	w.eventually(made, "1", "4", "8")

	// What the daemon has found counts for the schema that it knew.
	call := func(schema string) string {
		return fmt.Sprintf(`select coalesce((tidemark.command_problem(call, tidemark.command_of(call))).message, 'none') from jsonb_build_object('service', '%s', 'command', 'make', 'command_version', 1, 'schema_version', 1,
			'producer', 'shop', 'payload', '{"id": 5}'::jsonb, 'misfit', jsonb_build_object('schema', %s, 'message', '/x is wrong')) call`, w.service, schema)
	}
	w.eventually(call(`(select md5(payload_schema::text) from tidemark.command where command = 'make')`), "payload /x is wrong")
	w.eventually(call(`md5('another')`), "none")
}
