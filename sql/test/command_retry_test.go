package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// retryBatch tries what is parked as the daemon does: many at a time.
const retryBatch = `select (e ->> 'idempotency_key') || ' ' || (e ->> 'status') || coalesce(' ' || (e ->> 'error_code'), '')
	from tidemark.command_retry_next(50) n, json_array_elements(tidemark.command_retry_batch(n.services, n.idempotency_keys, 50)) e
	where n.services is not null`

// What waits behind a command that has healed runs with it, in its order, up to the first that fails.
func TestCommandsRetriedTogether(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.command("charge", `{"retry_policy": {"max_attempts": 5, "base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	park := func(key, order, payload string) {
		t.Helper()
		equal(t, key, one[string](s.session, `select tidemark.command_run($1, key => $2) ->> 'status'`, s.envelope(key, payload, ""), order), "failed_retryable")
	}
	heals := func(id int) string {
		return fmt.Sprintf(`{"id": %d, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, id)
	}
	park("a", "one", heals(1))
	for i, payload := range []string{`{"id": 2}`, `{"id": 3}`, `{"id": 1}`, `{"id": 5}`, `{"id": 6}`} {
		park(string(rune('b'+i)), "one", payload)
	}
	s.wantRows(retryBatch, "a failed_retryable runtime.retries_exhausted")
	s.wantInvoices()
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"enabled": false}')`, s.name)
	s.wantRows(retryBatch)
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"enabled": true}')`, s.name)

	s.wantRows(retryBatch, "a processed", "b processed", "c processed")
	s.wantRows(`select idempotency_key || ' ' || attempts from tidemark.command_claim where state = 'processed' order by 1`, "a 7", "b 1", "c 1")
	s.wantRows(`select idempotency_key || ' ' || (next_attempt_at = 'infinity') from tidemark.command_parked order by position`, "d false", "e true", "f true")
	s.wantRows(retryBatch, "d failed_terminal sql.constraint")
	s.wantRows(retryBatch, "e processed", "f processed")
	s.wantRows(retryBatch)
	s.wantInvoices("1", "2", "3", "5", "6")
	s.wantRows(`select idempotency_key from tidemark.command_parked`)
	s.wantRows(`select payload ->> 'idempotency_key' from tidemark.outbox where type like 'result.%' and payload ->> 'status' = 'processed' order by seq`, "a", "b", "c", "e", "f")
}

// Another session that is at the first command of a key has those behind it, too; the commands of other keys run meanwhile. One
// that is off, or whose producer may not any more, keeps what is behind it.
func TestCommandsRetriedBesideOthers(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.command("charge", `{"retry_policy": {"base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	for i, key := range []string{"a", "b", "c", "x", "y"} {
		order, payload := "one", `{"id": `+fmt.Sprint(i+1)+`}`
		if key >= "x" {
			order = "other"
		}
		if key == "a" || key == "x" {
			payload = `{"id": ` + fmt.Sprint(i+1) + `, "sql": "do 'begin raise sqlstate ''40001''; end'"}`
		}
		equal(t, key, one[string](s.session, `select tidemark.command_run($1, key => $2) ->> 'status'`, s.envelope(key, payload, ""), order), "failed_retryable")
	}
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`update tidemark.command_parked set sqlstate = null`) // as if they had been off
	other := open(t, db, "other")
	other.begin()
	other.exec(`select from tidemark.command_parked where idempotency_key = 'a' for no key update`)
	s.wantRows(retryBatch, "x processed", "y processed")
	s.wantRows(`select e ->> 'idempotency_key' from json_array_elements(tidemark.command_retry_batch(array['` + s.name + `'], '{a}', 50)) e`)
	other.rollback()

	s.exec(`update tidemark.command_parked set call = jsonb_set(call, '{producer}', '"stranger"') where idempotency_key = 'b'`)
	s.wantRows(retryBatch, "a processed")
	s.wantRows(retryBatch, "b failed_terminal identity.producer_not_allowed")
	s.wantRows(retryBatch, "c processed")
	s.wantInvoices("1", "3", "4", "5")
}
