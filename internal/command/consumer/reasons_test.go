package consumer_test

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
)

// reasons is a function that has an effect, and then does what the payload says.
const reasons = `
create function app.reason(payload jsonb) returns jsonb language plpgsql as $$
begin
	insert into effect (key, id) values ('', (payload ->> 'id')::int);
	if payload ? 'sql' then
		execute payload ->> 'sql';
	end if;
	return case when payload ? 'big' then to_jsonb(repeat('x', 950000)) else payload end;
end $$;`

// S3, CM1 to CM6: each reason of the closed set, from a hostile or broken producer: a result, a dead letter or both with that code, no
// effect, and the worker goes on.
func TestConsumerReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(reasons)
	for name, changes := range map[string]string{
		"reason": `{}`, "off": `{"when_disabled": "reject"}`, "short": `{"retention": "1 hour"}`, "typed": `{"result_schema": {"type": "string"}}`,
	} {
		w.exec(`select tidemark.command_set($1, $2, 1, '{"function": "app.reason", "timeout": "300 ms", "retry_policy": {"max_attempts": 1},
			"payload_schema": {"type": "object", "required": ["id"]}}'::jsonb || $3::jsonb)`, w.service, name, changes)
		w.exec(`select tidemark.command_set($1, $2, 1, jsonb_build_object('enabled', $2::text <> 'off', 'dry_run', false))`, w.service, name)
	}
	w.exec(`select tidemark.command_allow($1, 'branch', tenants => '{acme}')`, w.service)
	key, revoked := w.addKey("good"), w.addKey("revoked")
	w.exec(`select tidemark.producer_key_revoke('revoked', 'stolen')`)
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}

	id := 100
	ask := func(key string, changes map[string]any) *kgo.Record {
		id++
		all := map[string]any{"command": "reason"}
		for name, value := range changes {
			all[name] = value
		}
		payload, _ := all["payload"].(string)
		delete(all, "payload")
		return &kgo.Record{Value: w.envelope(key, fmt.Sprintf(`{"id": %d%s}`, id, payload), all)}
	}
	sql := func(statement string) map[string]any {
		return map[string]any{"payload": fmt.Sprintf(`, "sql": %q`, statement)}
	}
	foreign := ask("foreign", map[string]any{"service": "nowhere"})
	foreign.Topic = "db-events.nowhere"
	unsigned := ask("unsigned", nil)
	unsigned.Topic = "db-events"
	old, late, early := ask("old", map[string]any{"command": "short"}), ask("late", nil), ask("early", nil)
	old.Timestamp, late.Timestamp, early.Timestamp = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	first := ask("first", nil)
	const letter = "letter"
	cases := []struct {
		reason command.Reason
		record *kgo.Record
		want   string // status of the result, and letter for a dead letter
	}{
		{command.EnvelopeInvalid, ask("e1", map[string]any{"trace_id": nil}), "rejected"},
		{command.EnvelopeInvalid, &kgo.Record{Value: []byte("\x00\x00\x00\x00\x07{}")}, letter},
		{command.EnvelopeTooLarge, ask("e2", map[string]any{"metadata": map[string]any{"producer": "shop", "context": map[string]any{"x": strings.Repeat("x", 9000)}}}), "rejected"},
		{command.EnvelopeUnsupportedVersion, &kgo.Record{Value: []byte(`{"specversion": "0.3", "id": "x", "type": "a.b", "source": "shop"}`)}, letter},
		{command.ContractUnknownService, foreign, letter},
		{command.ContractUnknownCommand, ask("c2", map[string]any{"command": "none"}), "rejected"},
		{command.ContractUnsupportedVersion, ask("c3", map[string]any{"command_version": 7}), "rejected"},
		{command.ContractUnknownSchemaVersion, ask("c4", map[string]any{"schema_version": 7}), "rejected"},
		{command.ContractPayloadInvalid, &kgo.Record{Value: w.envelope("c5", `{}`, map[string]any{"command": "reason"})}, "rejected"},
		{command.ContractDisabled, ask("c6", map[string]any{"command": "off"}), "rejected"},
		{command.IdentityTopicMismatch, ask("i1", map[string]any{"service": "other"}), letter},
		{command.IdentitySignatureMissing, unsigned, letter},
		{command.IdentitySignatureInvalid, w.sign(ask("i3", nil), "another cluster", "good", key), letter},
		{command.IdentityKeyUnknown, w.sign(ask("i4", nil), "test", "none", stranger), letter},
		{command.IdentityKeyRevoked, w.sign(ask("i5", nil), "test", "revoked", revoked), letter},
		{command.IdentityProducerNotAllowed, ask("i6", map[string]any{"metadata": map[string]any{"producer": "stranger"}}), letter},
		{command.IdentityTenantNotAllowed, ask("i7", map[string]any{"metadata": map[string]any{"producer": "branch", "tenant": "another"}}), letter},
		{command.IdempotencyKeyReused, ask("first", nil), "failed_terminal letter"},
		{command.IdempotencyExpired, old, "rejected"},
		{command.SQLConstraint, ask("s1", sql(`insert into app.effect (id) values (1)`)), "failed_terminal letter"},
		{command.SQLData, ask("s2", sql(`select 'x'::int`)), "failed_terminal letter"},
		{command.SQLBusinessRule, ask("s3", sql(`do 'begin raise ''no credit''; end'`)), "failed_terminal letter"},
		{command.SQLPermission, ask("s4", sql(`select from tidemark.setting`)), "failed_retryable"},
		{command.SQLUndefined, ask("s5", sql(`select from app.nothing`)), "failed_retryable"},
		{command.RuntimeRetriesExhausted, ask("r1", sql(`do 'begin raise sqlstate ''40001''; end'`)), "failed_terminal letter"},
		{command.RuntimeTimeout, ask("r2", sql(`select pg_sleep(0.4)`)), "failed_terminal letter"},
		{command.RuntimeResultTooLarge, ask("r3", map[string]any{"payload": `, "big": true`}), "failed_terminal letter"},
		{command.RuntimeResultInvalid, ask("r4", map[string]any{"command": "typed"}), "failed_terminal letter"},
		{command.RuntimeInternal, ask("r5", sql(`do 'begin assert false; end'`)), "failed_terminal letter"},
	}
	var answers, letters []string
	seen := map[command.Reason]bool{}
	records := []*kgo.Record{w.make("one", 1), first}
	for _, c := range cases {
		seen[c.reason] = true
		records = append(records, c.record)
		status, hasLetter := strings.CutSuffix(c.want, letter)
		if status = strings.TrimSpace(status); status != "" {
			answers = append(answers, status+" "+string(c.reason))
		}
		if hasLetter {
			letters = append(letters, string(c.reason))
		}
	}
	for _, reason := range command.Reasons() {
		if !seen[reason] {
			t.Errorf("%s has no case", reason)
		}
	}
	// A clock that is an hour off is no reason to refuse; the last one is done, whatever came before.
	records = append(records, late, early, w.make("last", 2))
	w.send(0, records...)
	w.run()
	slices.Sort(answers)
	slices.Sort(letters)
	w.eventually(`select coalesce((select watermark_id from tidemark.worker_cursor where source = 'kafka:`+w.topic+`'), '') || ' ' || (select count(*) from tidemark.dead_letter)`,
		fmt.Sprint(len(records)-5, " ", len(letters)))
	w.eventually(sorted(`concat_ws(' ', payload ->> 'status', payload ->> 'error_code') from tidemark.outbox where type like 'result.%' and payload ->> 'status' <> 'processed'`), answers...)
	w.eventually(sorted(`error_code from tidemark.dead_letter`), letters...)
	w.eventually(sorted(`idempotency_key from tidemark.command_claim where state = 'processed'`), "early", "first", "last", "late", "one")
	w.eventually(`select count(*)::text from app.effect`, "5")
	w.eventually(`select kind from tidemark.finding where closed_at is null and kind in ('worker_failing', 'cursor_lease_conflict')`)
}

// sorted is a query of one column, in the order of slices.Sort.
func sorted(query string) string {
	return `select x from (select ` + query + `) q (x) order by x collate "C"`
}
