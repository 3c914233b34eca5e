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
