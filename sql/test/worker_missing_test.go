package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A partition of the log was dropped by hand, with what waits in it; more of the same key waits behind.
func withoutPartition(t *testing.T, w session, change string) {
	t.Helper()
	w.exec(change)
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => 'k') from generate_series(1, 300) n`)
	w.pass()
	w.next(1_000_000)
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => 'k') from generate_series(1001, 1005) n`)
	for range 3 {
		w.pass()
	}
	w.wantHoles("{}")
	w.exec(`drop table tidemark.outbox_p0`)
	w.wantRows(`select status || ': ' || detail from tidemark.verify() where "check" in ('pending', 'partitions') order by "check" desc`,
		"fail: 300 of events that are no longer in the log", "fail: of numbers 0 to 999999 only decision_p0, attempt_p0 is left")
}

const missingLetters = `select concat_ws(' ', min(l.seq), max(l.seq), count(*), l.error_code, count(l.event_id),
	bool_and(l.event_snapshot ->> 'key' = 'k' and l.event_snapshot ->> 'route' = 'app' and (l.event_snapshot ->> 'seq')::bigint = l.seq))
	from tidemark.dead_letter l where l.resolved_at is null group by l.error_code`

func TestEventMissing(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	withoutPartition(t, w, `select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "ordering": "key"}')`)
	// As a daemon would have left them: the first failed and waits, the others wait behind it.
	w.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq > 1`)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	epoch := one[int](w, `select lease_epoch::int from tidemark.heartbeat`)
	read := fmt.Sprintf(`from tidemark.pass_read('default', %d, 100, null, null, '{}', '{}')`, epoch)
	w.wantRows(`select concat_ws(' ', missing, seq) `+read, "300", "1000000", "1000001", "1000002", "1000003", "1000004")
	w.wantRows(`select seq::text from tidemark.pending order by seq`, "1000000", "1000001", "1000002", "1000003", "1000004")
	w.wantRows(missingLetters, "1 300 300 event_missing 0 t")
	w.wantRows(`select concat_ws(' ', attempt_no, outcome, reason, count(*)) from tidemark.attempt group by attempt_no, outcome, reason`, "2 failed event_missing 300")
	w.wantRows(`select concat_ws(' ', outcome, reason, idempotency_key) from tidemark.route_attempt where seq = 7 and attempt_no = 2`,
		"failed event_missing tm:default:app:seq-7")
	w.wantRows(`select kind from tidemark.finding`, "cursor_dlq")
	w.wantRows(`select coalesce(missing::text, 'none') `+read+` limit 1`, "none")

	// There is nothing to replay; the others of a call are.
	w.refused("TM004", "dead letter 1 cannot be replayed: event 1 is no longer in the log", `select tidemark.dead_letter_replay(1)`)
	w.refused("TM004", "cannot be replayed", `select tidemark.dead_letter_replay(1, true)`)
	w.wantRows(`select id::text from tidemark.dead_letter_replay_many()`)
	w.exec(`select tidemark.dead_letter_discard(l.id, 'lost') from tidemark.dead_letter l`)
	w.exec(`drop table tidemark.decision_p0, tidemark.attempt_p0`)
	w.wantRows(`select detail from tidemark.verify() where "check" in ('pending', 'partitions')`, "", "")
}

// Of a target inside the database: what a closed gate left over is not recorded as sent.
func TestEventMissingInside(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	withoutPartition(t, w, `update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}', ordering = 'key'`)
	w.exec(`update tidemark.outbound_route set target_kind = 'sql', target_ref = 'public.receive', options = '{}'`)
	w.pass()
	w.wantReceived(1001, 1002, 1003, 1004, 1005)
	w.wantRows(missingLetters, "1 300 300 event_missing 0 t")
	w.wantRows(`select seq::text from tidemark.pending`)
}

// What is left of a partition that was dropped by hand does not stop the upkeep of all.
func TestMaintainAfterADropByHand(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.pass()
	w.next(1_000_000)
	w.emit(2)
	w.drain()
	w.set("outbox.retention", "0")
	w.exec(`drop table tidemark.decision_p0`)
	w.wantRows(`select concat_ws(' ', action, object) from tidemark.maintain() where action = 'dropped'`, "dropped outbox_p0")
	w.wantRows(`select count(*)::text from pg_class where relnamespace = 'tidemark'::regnamespace and relname like '%\_p0'`, "0")
}
