package test

import (
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
	at := func(next int64) {
		t.Helper()
		s.exec(`update tidemark.worker_cursor set watermark_id = $1::bigint::text where source = 'kafka:events'`, next)
	}
	const fine = ""
	look := func(want string) {
		t.Helper()
		equal(t, "held", one[string](executor.session, `select coalesce(held, '') from tidemark.command_partition('events', 0, 'T', 0, 20)`), want)
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
