package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The latency of a route is that of the events that it sent lately: of batches, and of retries from their first attempt on.
func TestRouteLatency(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	const latency = `select concat_ws(' ', events, round(p50_seconds::numeric, 1), round(p99_seconds::numeric, 1)) from tidemark.route_latency('app', 200)`
	w.wantRows(latency)
	w.wantRows(`select events::text from tidemark.route_latency('none', 200)`)
	for n := range 10 {
		w.emit(n + 1)
	}
	w.pass()
	w.exec(`set session_replication_role = replica`)
	w.exec(`update tidemark.outbox set created_at = (select decided_at from tidemark.decision) - seq * interval '1 second'`)
	w.wantRows(latency, "10 5.5 9.9")
	// An event of the day before was sent just now: it was replayed. One was sent by a retry.
	w.exec(`update tidemark.outbox set created_at = created_at - interval '1 day' where seq = 10`)
	w.wantRows(latency, "9 5.0 8.9")
	w.exec(`update tidemark.decision set seqs = '{[1,9)}'; insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, decided_at)
		select 9, d.worker_id, d.route_id, 3, 'sent', d.decided_at + interval '10 minutes' from tidemark.decision d`)
	w.wantRows(latency, "9 5.0 560.9")
	// A smaller sample has the batch with the largest numbers alone.
	w.exec(`update tidemark.attempt set decided_at = decided_at - interval '2 hours'; insert into tidemark.decision (worker_id, route_id, first_seq, last_seq, events, outcome, seqs)
		select d.worker_id, d.route_id, 9, 9, 1, 'sent', '{[9,10)}' from tidemark.decision d`)
	w.wantRows(`select events::text from tidemark.route_latency('app', 2)`, "9")
	w.wantRows(`select events::text from tidemark.route_latency('app', 1)`, "8")
	w.exec(`update tidemark.decision set outcome = 'skipped'; update tidemark.attempt set decided_at = decided_at - interval '2 hours'`)
	w.wantRows(latency)
}

// The holes of a cursor name who keeps them open.
func TestCursorHeld(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	const held = `select concat_ws(' ', source, shard, holes, coalesce(substring(held_by from 'application "[a-z]+"'), 'no one')) from tidemark.cursor_held('default')`
	w.wantRows(held, "outbox 0 0 no one")
	sleeper := open(t, db, "sleeper")
	sleeper.begin()
	sleeper.emit(1)
	w.emit(2)
	w.pass()
	w.pass()
	w.wantRows(held, `outbox 0 1 application "sleeper"`)
	sleeper.rollback()
	w.wantRows(held, "outbox 0 1 no one")
	w.pass()
	w.wantRows(held, "outbox 0 0 no one")
}
