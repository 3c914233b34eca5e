package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM7: a partition whose leader has lost what the cursor is past is held until an operator has named an offset. Where the cursor is not past it,
// the partition is read anew from there, and no later look holds it.
func TestCommandPartitionLost(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	executor := login(t, db, "executor", "tidemark_executor")
	reached := int64(0)
	at := func(next int64) {
		t.Helper()
		s.exec(`update tidemark.worker_cursor set watermark_id = $1::bigint::text where source = 'kafka:events'`, next)
		reached = next
	}
	const fine = ""
	look := func(want string) {
		t.Helper()
		equal(t, "held", one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 0, 'T', 0, 20, $1)`, reached), want)
		findings := []string{"command_partition_held"}
		if want == fine {
			findings = nil
		}
		s.wantRows(`select kind from tidemark.finding where closed_at is null`, findings...)
	}
	lost := func(topic string, kept int64) {
		t.Helper()
		executor.exec(`select tidemark.command_partition_lost('events', 0, $1, $2)`, topic, kept)
	}
	look(fine)
	at(9)
	lost("another", 5)
	look(fine)
	lost("T", 5)
	lost("T", 7)
	for range 2 {
		look("the next offset is 9, and Kafka has lost the records from 5 on that were read: others may have their offsets now")
	}
	s.exec(`select tidemark.command_seek('events', 0, 9, 'what came after them is not needed')`)
	look(fine)

	// An offset that an operator has set ahead of the end is no loss: it is reached, and read from.
	s.exec(`select tidemark.command_seek('events', 0, 30, 'what comes before it is not needed')`)
	reached = 30
	for range 2 {
		look("the next offset is 30, and the partition has 0 to 20: records are lost, or the topic is another")
	}
	equal(t, "reached", one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 0, 'T', 0, 30, 30)`), "")
	at(9)
	look(fine)

	// A leader that ends before the cursor is not taken back by what comes later at these offsets.
	at(30)
	look("the next offset is 30, and the partition has 0 to 20: records are lost, or the topic is another")
	equal(t, "held later", one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 0, 'T', 0, 40, 30)`),
		"the next offset is 30, and Kafka has lost the records from 20 on that were read: others may have their offsets now")
	s.exec(`select tidemark.command_seek('events', 0, 9, 'they are read')`)
	look(fine)

	lost("T", 9)
	look(fine)
	at(12)
	look(fine)
	s.exec(`select tidemark.command_seek('events', 0, 12, 'test')`)
	lost("T", 10) // the topic as it is was not accepted yet
	look(fine)
}

// CM7: a pass over what was lost may be under way when the partition is looked at, of a daemon that the group has given up. Its records are not
// taken for what is read anew.
func TestCommandPartitionLostBesideAPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	executor := login(t, db, "executor", "tidemark_executor")
	look := func() string {
		t.Helper()
		return one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 3, 'T', 0, 20)`)
	}
	first := p.record(0, "a", `{"id": 1}`, `{}`)
	executor.exec(`select tidemark.command_partition_lost('events', 3, 'T', 0)`)
	p.exec(`begin`)
	p.exec(`select tidemark.lease_check('commands', $1, 'kafka:events', 3)`, p.epoch) // a pass begins so
	equal(t, "beside the pass", look(), "Kafka has lost the records from 0 on, and a pass over them was under way")
	p.wantPass(`ran 1 {"processed": 1}`, "batch", first)
	p.exec(`commit`)
	equal(t, "after it", look(), "the next offset is 1, and Kafka has lost the records from 0 on that were read: others may have their offsets now")

	p.exec(`select tidemark.command_seek('events', 3, 1, 'test')`)
	equal(t, "accepted", look(), "")
	executor.exec(`select tidemark.command_partition_lost('events', 3, 'T', 1)`)
	equal(t, "read anew", look(), "")
	_ = p.wantCode("TM011", "batch", p.record(1, "b", `{"id": 2}`, `{}`))
	p.claim()
	p.wantPass(`ran 2 {"processed": 1}`, "batch", p.record(1, "b", `{"id": 2}`, `{}`))
	equal(t, "later", look(), "")
}

// CM7: while Kafka is asked where a partition ends, a daemon that the group has given up passes records that came after that end, or an operator
// sets another offset. Nothing is lost.
func TestCommandPartitionEndsLater(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	executor := login(t, db, "executor", "tidemark_executor")
	look := func(end, reached int64) string {
		t.Helper()
		return one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 3, 'T', 0, $1, $2)`, end, reached)
	}
	p.place(20)
	p.wantPass(`ran 21 {"processed": 1}`, "batch", p.record(20, "a", `{"id": 1}`, `{}`))
	equal(t, "passed meanwhile", look(20, 20), "the next offset is 21, and the partition has 0 to 20: records are lost, or the topic is another")
	equal(t, "then", look(21, 21), "")
	p.wantRows(`select kind from tidemark.finding where closed_at is null`)

	p.exec(`select tidemark.command_seek('events', 3, 15, 'test')`)
	equal(t, "accepted", look(21, 15), "")
	equal(t, "set back meanwhile", look(14, 21), "the next offset is 15, and the partition has 0 to 14: records are lost, or the topic is another")
	equal(t, "then", look(15, 15), "")
}

// CM4, CM5, CM7: after an operator has named the first offset that was lost, other records have these offsets. They are none that were read
// before: each has its answer or its dead letter, and those of the lost ones stay.
func TestCommandAfterALoss(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	executor := login(t, db, "executor", "tidemark_executor")
	forged := func(offset int64, value string) string {
		return fmt.Sprintf(`{"topic": "events", "topic_id": "T", "partition": 3, "offset": %d, "via": "acl", "service": %q, "raw": {"value": %q}, "refused": {"code": "identity.signature_invalid", "message": "forged"}}`, offset, p.name, value)
	}
	letters := func(want ...string) {
		t.Helper()
		p.wantRows(`select concat_ws(' ', l.error_code, r."offset", r.idempotency_key, encode(r.value, 'base64')) from tidemark.dead_letter l join tidemark.command_record r on r.id = l.item_id::bigint
			where r.idempotency_key is null order by r.id`, want...)
	}
	failed := func(want ...string) {
		t.Helper()
		p.wantRows(`select concat_ws(' ', l.error_code, r."offset", r.idempotency_key) from tidemark.dead_letter l join tidemark.command_record r on r.id = l.item_id::bigint
			where r.idempotency_key is not null order by r.id`, want...)
	}
	first := []string{p.record(0, "kept", `{"id": 1}`, `{}`), forged(1, "AAAA"), forged(2, "AAAA"), p.record(3, "a", `{"id": 2}`, `{}`)}
	p.wantPass(`ran 4 {"rejected": 2, "processed": 2}`, "batch", first...)
	fails := p.record(4, "fails", `{"id": 1}`, `{}`)
	p.wantPass(`ran 5 {"failed_terminal": 1}`, "alone", fails)
	letters("identity.signature_invalid 1 AAAA", "identity.signature_invalid 2 AAAA")
	failed("sql.constraint 4 fails")

	// The same records again are silent.
	p.place(0)
	p.wantPass(`ran 4 {"rejected": 2, "redelivered": 2}`, "batch", first...)
	p.wantPass(`ran 5 {"redelivered": 1}`, "batch", fails)
	letters("identity.signature_invalid 1 AAAA", "identity.signature_invalid 2 AAAA")

	for _, told := range []bool{false, true} {
		if told {
			executor.exec(`select tidemark.command_partition_lost('events', 3, 'T', 1)`)
			p.exec(`select tidemark.command_seek('events', 3, 1, 'the first that was lost')`)
			p.wantRows(`select "offset"::text from tidemark.command_record where topic_id is not null`)
			p.exec(`select tidemark.command_partition('events', 3, 'T', 0, 100)`)
			p.claim()
		}
		p.place(1)
		value, id, key := "BBBB", 5, "b"
		if told {
			value, id, key = "CCCC", 6, "c"
		}
		p.wantPass(`ran 2 {"rejected": 1}`, "batch", forged(1, value))
		p.wantPass(`ran 3 {"processed": 1}`, "batch", p.record(2, key, fmt.Sprintf(`{"id": %d}`, id), `{}`))
		// The key of the command that was lost there, for another one: never silent.
		p.wantPass(`ran 4 {"failed_terminal": 1}`, "batch", p.record(3, "a", fmt.Sprintf(`{"id": %d}`, id), `{}`))
		p.wantPass(`ran 5 {"failed_terminal": 1}`, "alone", p.record(4, key+"fails", `{"id": 1}`, `{}`))
	}
	letters("identity.signature_invalid 1 AAAA", "identity.signature_invalid 2 AAAA", "identity.signature_invalid 1 BBBB", "identity.signature_invalid 1 CCCC")
	failed("sql.constraint 4 fails", "idempotency.key_reused 3 a", "sql.constraint 4 bfails", "idempotency.key_reused 3 a", "sql.constraint 4 cfails")
	// Each that failed can be replayed, of one offset all.
	p.exec(`delete from app.invoice where id = 1`)
	equal(t, "replayed", p.replay(`reason => 'the invoice is gone', failed => true, code => 'sql.constraint'`), `{"runs_again": 3}`)
	p.wantRows(`select r."offset"::text || ' ' || count(*) from tidemark.command_record r where r.topic_id is not null group by r."offset" order by r."offset"`, "1 1", "3 1", "4 1")
}
