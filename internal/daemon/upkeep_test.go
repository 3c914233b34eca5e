package daemon_test

import (
	"os"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A call of maintain that has much to do, as after a long pause, is not cut short: the next one would begin anew, and stop emits again.
func TestUpkeepIsNotCutShort(t *testing.T) {
	t.Parallel()
	if os.Getenv("LONG") == "" {
		t.Skip("a minute; LONG=1 runs it")
	}
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `do $$ begin
		execute replace(pg_get_functiondef('tidemark.partition_absorb'::regproc), 'foreach parent', 'perform pg_sleep(65); foreach parent');
	end $$`)
	execSQL(t, db, `select tidemark.type_set('test', 'tick'), setval('tidemark.outbox_seq_seq', 5000000)`)
	execSQL(t, db, `select tidemark.emit('test', 'tick')`)
	run(t, settings(db))
	eventually(t, "the rest is absorbed", func() bool { return query(t, db, `select to_regclass('tidemark.outbox_p3000000')`) != "" })
}

// Keys that are past their retention go in the first round of upkeep, however many: one call forgets 10,000, and more may come in the minute to the next.
func TestUpkeepForgetsAllKeys(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at)
		select 'test', n, gen_random_uuid(), case n when 0 then now() else now() - interval '31 days' end from generate_series(0, 50000) n`)
	run(t, settings(db))
	eventually(t, "the keys are forgotten", func() bool {
		return query(t, db, `select string_agg(idempotency_key, ' ') from (select * from tidemark.emit_key limit 2) k`) == "0"
	})
}
