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
