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

// A note is not written at each look, and is never as old as a lag that warns.
func TestLogReadNoteIsSeldom(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.log_read_note()`)
	for _, c := range []struct{ warn, age, renewed string }{
		{"1 minute", "20 seconds", "false"}, {"1 minute", "26 seconds", "true"}, {"1 hour", "26 seconds", "true"}, {"10 seconds", "6 seconds", "true"}, {"10 seconds", "1 second", "false"},
	} {
		w.exec(`insert into tidemark.setting (key, value) values ('lag.warn', $1) on conflict (key) do update set value = $1`, c.warn)
		w.exec(`update tidemark.source_unread set noted_at = clock_timestamp() - $1::text::interval`, c.age)
		before := one[string](w, `select noted_at::text from tidemark.source_unread`)
		w.exec(`select tidemark.log_read_note()`)
		w.wantRows(`select (noted_at::text <> '`+before+`')::text from tidemark.source_unread`, c.renewed)
	}
}
