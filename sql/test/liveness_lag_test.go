package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Events of a transaction that lasts can be read once it has ended, and are no backlog before.
func TestLagOfALongTransaction(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.type_set('test', 'a')`)
	w.pass()
	writer := open(t, db, "writer")
	writer.begin()
	writer.exec(`select tidemark.emit('test', 'a') from generate_series(1, 3)`)
	// Twenty minutes pass.
	writer.exec(`set local session_replication_role = replica`)
	writer.exec(`update tidemark.outbox set created_at = now() - interval '20 minutes'`)
	w.exec(`select tidemark.maintain()`)
	writer.commit()
	const lag = `select (seconds between 0 and 30)::text || ' ' || unread from tidemark.cursor_lag where source = 'outbox'`
	w.wantRows(lag, "true true")
	w.exec(`select tidemark.maintain()`)
	w.wantRows(lag, "true true")
	w.wantRows(causes)
	// They are not read.
	w.exec(`update tidemark.source_unread set noted_at = noted_at - interval '2 minutes'`)
	w.wantRows(`select cause || ' ' || status from tidemark.cause`, "worker_behind warn")
	w.exec(`update tidemark.source_unread set noted_at = noted_at - interval '30 minutes'`)
	w.wantRows(`select seconds / 60 || '' from tidemark.cursor_lag where source = 'outbox'`, "20")
	w.pass()
	w.wantRows(causes)
}
