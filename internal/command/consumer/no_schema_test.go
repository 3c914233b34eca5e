package consumer_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// CM2: whatever is registered as a schema and is none refuses its own command, and is told. The others run, those that were parked too.
func TestConsumerOfWhatIsNoSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`select tidemark.command_set($1, 'wait', 1, '{"function": "app.make", "payload_schema": {"type": "object"}}')`, w.service)
	ask := func(command string, n int) *kgo.Record {
		return &kgo.Record{Value: w.envelope(fmt.Sprint(command, n), fmt.Sprintf(`{"id": %d, "cur": "EUR", "in": {"a": [1]}}`, n), map[string]any{"command": command})}
	}
	w.send(0, ask("wait", 1))
	stop, _ := w.run()
	w.eventually(results, "failed_retryable wait1")
	stop()

	forms := []string{
		`"properties": {"cur": {"enum": "EUR"}}`,
		`"properties": {"id": {"maximum": "100"}}`,
		`"additionalProperties": "false"`,
		`"properties": {"in": {"properties": {"a": 5}}}`,
		`"properties": {"in": {"properties": {"a": {"items": [{"type": "integer"}]}}}}`,
		`"properties": {"in": {"properties": {"a": {"minItems": -1}}}}`,
		`"properties": {"in": {"properties": {"a": {"type": "text"}}}}`,
		`"properties": {"in": {"required": "a"}}`,
		`"$defs": {"a": {"type": "text"}}`,
		`"$schema": "https://example.com/another"`,
		`"title": 5`,
	}
	var want, findings []string
	for i, form := range forms {
		command := fmt.Sprintf("no%02d", i)
		w.exec(`select tidemark.command_set($1, $2, 1, jsonb_build_object('function', 'app.make', 'enabled', true, 'dry_run', false, 'payload_schema', $3::text::jsonb))`,
			w.service, command, `{"type": "object", `+form+`}`)
		w.send(0, ask(command, 10+i))
		want = append(want, fmt.Sprintf("rejected contract.payload_invalid %s%d", command, 10+i))
		findings = append(findings, fmt.Sprintf("%s.%s/v1", w.service, command))
	}
	w.send(0, w.make("good", 2))
	// As if it were changed while commands are parked.
	w.exec(`select tidemark.command_set($1, 'wait', 1, jsonb_build_object('enabled', true, 'dry_run', false, 'payload_schema', $2::text::jsonb))`, w.service, `{"type": "object", `+forms[0]+`}`)
	findings = append(findings, w.service+".wait/v1")
	w.run()
	w.eventually(`select concat_ws(' ', payload ->> 'status', payload ->> 'error_code', payload ->> 'idempotency_key') from tidemark.outbox
		where type like 'result.%' and payload ->> 'idempotency_key' not like 'wait%' order by seq`, append(want, "processed good")...)
	w.eventually(`select payload ->> 'status' from tidemark.outbox where type like 'result.%' and payload ->> 'idempotency_key' = 'wait1' order by seq`, "failed_retryable", "processed")
	w.eventually(`select id::text from app.effect order by id`, "1", "2")
	w.eventually(`select subject from tidemark.finding where kind = 'command_setup' and closed_at is null and detail like 'its schema%' order by subject collate "C"`, findings...)
}
