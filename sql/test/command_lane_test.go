package test

import (
	"encoding/json"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM6: the records of one ordering key reach two partitions, and both park the first one at once: while their command is off, and behind
// one that a retry is just releasing. One is due, the other waits behind it, and each runs once.
func TestCommandLaneBegunTwice(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 5)
	p.exec(`create table app.effect (n bigint generated always as identity, key text); grant all on app.effect to "tidemark_service_` + p.name + `";
		create function app.note(payload jsonb, context jsonb) returns void language plpgsql as $$ begin insert into effect (key) values (context ->> 'idempotency_key'); end $$`)
	p.command("off", `{"function": "app.note"}`)
	first, second := open(t, db, "first"), open(t, db, "second")
	pass := func(s session, partition int, key string) func() (json.RawMessage, error) {
		return later[json.RawMessage](s, `select tidemark.command_passes($1::jsonb, '1 minute') -> 0 -> 'result'`,
			"["+p.page(partition, 0, p.of(p.service, "off", partition, 0, key, `{"id": 1}`, `{"key": "lane"}`))+"]")
	}
	parks := func(passed func() (json.RawMessage, error)) {
		t.Helper()
		if got, err := passed(); err != nil || string(got) != `{"failed_retryable": 1}` {
			t.Fatalf("%s %v", got, err)
		}
	}
	const heads = `select count(*)::text from tidemark.command_parked where next_attempt_at < 'infinity'`

	first.begin()
	second.begin()
	parks(pass(first, 0, "a"))
	passed := pass(second, 1, "b")
	p.waitsFor(second)
	first.commit()
	parks(passed)
	second.commit()
	p.wantRows(heads, "1")
	p.command("off", `{"enabled": true, "dry_run": false}`)
	p.wantRows(retryBatch, "a processed", "b processed")
	p.wantRows(`select key from app.effect order by n`, "a", "b")

	p.command("off", `{"enabled": false}`)
	parks(pass(p.session, 2, "c"))
	p.command("off", `{"enabled": true}`)
	p.begin()
	p.wantRows(retryBatch, "c processed")
	passed = pass(first, 3, "d")
	p.waitsFor(first)
	others := pass(second, 4, "e")
	p.waitsFor(second)
	p.commit()
	parks(passed)
	parks(others)
	p.wantRows(heads, "1")
	p.wantRows(`select count(*)::text from (`+retryBatch+`) r`, "2")
	p.wantRows(`select key || ' ' || count(*) from app.effect group by key order by key`, "a 1", "b 1", "c 1", "d 1", "e 1")
	p.wantRows(`select count(*)::text from tidemark.outbox where payload ->> 'status' = 'processed'`, "5")
	p.wantRows(`select idempotency_key from tidemark.command_parked`)
}

// A batch does not take a parked command twice, whoever asks for it.
func TestCommandRetriedTwiceInABatch(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.lanes("k1")
	s.refused("TM005", "twice in one batch", `select tidemark.command_retry_batch(array[$1, $1], '{k11,k11}', 50)`, s.name)
	s.wantInvoices()
	s.wantRows(retryBatch, "k11 processed")
}

// A claim is kept for the retention of its command from when that is done, however long it was parked.
func TestClaimOutlivesParking(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.lanes("k1", "k2", "k3", "k4")
	s.exec(`insert into app.invoice values (13, 1)`)
	s.behind("k1", "2")
	// As if all that were long ago.
	s.exec(`update tidemark.command_claim set expires_at = now() - interval '1 s'`)
	s.exec(`select tidemark.command_discard($1, 'k41', 'asks for too much')`, s.name)
	s.wantRows(retryBatch, "k11 processed", "k12 processed", "k21 processed")
	s.wantRows(retryBatch, "k31 failed_terminal sql.constraint")
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select idempotency_key || ' ' || state || ' ' || (expires_at - processed_at between interval '30 days' and interval '30 days 1 minute') from tidemark.command_claim order by 1`,
		"k11 processed true", "k12 processed true", "k21 processed true", "k31 failed_terminal true", "k41 failed_terminal true")
	s.exec(`delete from app.invoice`) // so that a second effect would be there
	s.wantRun("duplicate", "k12", `{"id": 21}`)
	s.wantInvoices()
}
