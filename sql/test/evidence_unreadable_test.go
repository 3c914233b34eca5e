package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// heads are the events of a page that was asked for without payloads: number, bytes that are left out, and whether the
// payload is there.
const heads = `select concat_ws(' ', r.seq, case when r.replay then 'replay' when not r.fresh then 'pending' end, r.withheld / 1000, r.payload is null)
	from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}', 1, false) r where r.seq is not null order by r.fresh desc, r.seq`

// A dead letter of an event that cannot be read has all of it but the payload, which is not touched; a replay takes that
// from the log, which is kept as long.
func TestUnreadableLetter(t *testing.T) {
	t.Parallel()
	w := heavy(t)
	w.exec(`select tidemark.emit_strict('test', 'tick', noise(600000), key => 'k', actor => 'a') from generate_series(1, 3)`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, key) select w.id, 1, 1, 'k' from tidemark.worker w where w.worker = 'default'`)
	w.exec(`update tidemark.worker_cursor set watermark_id = '1', decided_through = '1'`)
	const fetched = `select sum(pg_stat_get_xact_blocks_fetched(c.reltoastrelid))::integer from pg_class c
		where c.oid in (select p.partition from tidemark.partitions('tidemark.outbox') p)`
	w.begin()
	before := one[int](w, fetched)
	w.wantRows(heads, "2 600 t", "1 pending 600 t")
	equal(t, "blocks of payload that were read", one[int](w, fetched)-before, 0)
	w.exec(`commit`)
	equal(t, "bytes", one[int](w, `select octet_length(tidemark.pass_payload('default', 1, 2, (select event_id from tidemark.outbox where seq = 2), null) ->> 'n')`), 600000)
	w.wantRows(`select (tidemark.pass_payload('default', 1, 2, gen_random_uuid(), null) is null)::text`, "true") // another event's number
	w.refused("TM011", "epoch 7 is over", `select tidemark.pass_payload('default', 7, 2, gen_random_uuid(), null)`)

	w.begin()
	before = one[int](w, fetched)
	w.exec(`select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[],
		array[row(1, true, 'failed', 'unreadable', 'slow', '{[2,3)}', 0), row(1, false, 'failed', 'unreadable', 'slow', '{[1,2)}', 0)]::tidemark.result[], 1)
		from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}', 1, false) r where r.events > 0`)
	equal(t, "blocks of payload that were read", one[int](w, fetched)-before, 0)
	w.exec(`commit`)
	w.wantRows(`select concat_ws(' ', l.seq, l.error_code, l.error_detail, l.attempts, l.payload_in_log) from tidemark.dead_letter l order by l.seq`,
		"1 unreadable slow 2 t", "2 unreadable slow 1 t")
	w.wantRows(`select (l.event_snapshot = tidemark.event_json(o) - 'payload')::text from tidemark.dead_letter l join tidemark.outbox o using (seq)`, "true", "true")
	w.wantRows(`select concat_ws(' ', kind, severity, detail) from tidemark.finding where kind = 'event_unreadable'`,
		"event_unreadable warning event 1 for route app: slow")
	w.wantRows(`select concat_ws(' ', q.status, q.note) from tidemark.queue_health q where q.name = 'event_unreadable default'`, "warn event 1 for route app: slow")

	w.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.seq = 1`)
	w.wantRows(heads, "3 600 t", "1 replay 600 t")
	w.wantRows(`select concat_ws(' ', r.seq, octet_length(r.payload ->> 'n')) from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}', 1) r
		where r.replay`, "1 600000")

	// The partition goes neither by the upkeep nor, where it was dropped by hand, in silence.
	w.next(1_000_000)
	w.emit(4)
	w.exec(`update tidemark.worker_cursor set watermark_id = '3', decided_through = '3'; delete from tidemark.pending`)
	w.set("outbox.retention", "0")
	w.wantRows(`select object || ': ' || detail from tidemark.maintain() where action = 'kept'`,
		"outbox_p0: needed from number 1 by dead letter 2, which has no payload of its own")
	w.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.seq = 1`)
	w.exec(`drop table tidemark.outbox_p0`)
	w.wantRows(`select coalesce(missing, 0)::text from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') limit 1`, "1")
	w.wantRows(`select concat_ws(' ', l.seq, l.error_code, l.attempts) from tidemark.dead_letter l order by l.seq`, "1 event_missing 5", "2 unreadable 1")
	w.refused("TM004", "event 2 is no longer in the log", `select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.seq = 2`)
	w.wantRows(`select id::text from tidemark.dead_letter_replay_many()`)
	w.exec(`select tidemark.dead_letter_discard(l.id, 'lost') from tidemark.dead_letter l`)
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select kind from tidemark.finding where closed_at is null and kind = 'event_unreadable'`)
}

// A replay to a target inside the database takes the payload from the log.
func TestUnreadableLetterInside(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(7)
	w.exec(`select tidemark.claim('default', 'a', '10 minutes')`)
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[],
		array[row(1, true, 'failed', 'unreadable', 'slow', '{[1,2)}', 0)]::tidemark.result[], 1)
		from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.events > 0`)
	w.exec(`update tidemark.outbound_route set target_kind = 'sql', target_ref = 'public.receive', options = '{}'`)
	w.wantRows(`select outcome::text from tidemark.dead_letter_replay_many()`, "sent")
	w.wantReceived(7)
}
