package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// mixed is live, with routes of every outcome and 60 events: of type tick the number n in the payload and a
// key every third time, every fifth of a type that no route claims, every seventh rolled back.
func mixed(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := live(t, db)
	w.exec(`
create function fail_some(event jsonb) returns void language plpgsql as $$
begin
    if (event -> 'payload' ->> 'n')::int % 10 = 0 then raise 'every tenth'; end if;
end $$;
select tidemark.type_set('test', 'tock'), tidemark.route_set('app', '{"type": "tick"}');
select tidemark.route_set(code, jsonb_build_object('domain', 'test', 'type', 'tick', 'target_kind', 'sql', 'target_ref', 'public.fail_some', 'enabled', true, 'dry_run', false) || more)
from (values ('dry', '{"dry_run": true}'::jsonb), ('off', '{"enabled": false}'), ('some_fail', '{}'), ('hook', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}'),
             ('keyed', '{"key_filter": "k*"}'), ('unclear', '{"payload_filter": {"odd": true}}'),
             ('open', '{"fail_closed": false}')) r (code, more);
update tidemark.outbound_route set retry_policy = '[]' where route_code in ('unclear', 'open')`)
	w.mixedEvents(60)
	return w
}

func (s session) mixedEvents(n int) {
	s.t.Helper()
	s.exec(`
do $$
begin
    for n in 1 .. ` + one[string](s, `select $1::int::text`, n) + ` loop
        perform tidemark.emit('test', case n % 5 when 0 then 'tock' else 'tick' end, jsonb_build_object('n', n, 'odd', n % 2 = 1),
                              key => case n % 3 when 0 then 'k' || n end);
        if n % 7 = 0 then rollback; else commit; end if;
    end loop;
end $$`)
}

func (s session) runAll(limit int) {
	s.t.Helper()
	for s.passLimit(limit).Events > 0 {
	}
}

const all = `select concat_ws(' ', seq, coalesce(route_code, '-'), attempt_no, outcome, reason, detail) from tidemark.route_attempt order by 1`

// RW3: one row per event and route, and that row right.
func TestEvidence(t *testing.T) {
	t.Parallel()
	w := mixed(t, tidemarktest.NewDB(t))
	w.runAll(17)
	w.wantRows(`select concat_ws(' ', coalesce(route_code, '-'), outcome, reason, count(*), count(distinct seq), min(attempt_no), max(attempt_no))
		from tidemark.route_attempt group by route_code, outcome, reason order by 1`,
		"- skipped no_route 11 11 1 1", // 12 of 60, one rolled back
		"app sent 41 41 1 1", "dry dry_run 41 41 1 1", "hook pending 41 41 1 1", "keyed sent 14 14 1 1",
		"off disabled 41 41 1 1", "open skipped bad_retry_policy 41 41 1 1",
		"some_fail sent 41 41 1 1", "unclear failed bad_retry_policy 21 21 1 1")
	w.wantRows(`select concat_ws(' ', seq, route_code) from tidemark.route_attempt group by seq, route_code having count(*) > 1`)
	w.wantRows(`select seq::text from tidemark.outbox where seq not in (select seq from tidemark.route_attempt)`)
	w.wantRows(`select distinct concat_ws(' ', a.worker, a.event_id = o.event_id, a.idempotency_key = 'tm:default:' || coalesce(a.route_code, '-') || ':' || o.event_id)
		from tidemark.route_attempt a left join tidemark.outbox o using (seq)`, "default t t")
	w.wantRows(`select concat_ws(' ', attempts_written, events_seen, dead_lettered) from tidemark.worker_cursor`,
		one[string](w, `select concat_ws(' ', count(*), (select count(*) from tidemark.outbox), (select count(*) from tidemark.dead_letter)) from tidemark.route_attempt`))
	w.wantSound()
}

// A range stands for its numbers: no more, no less, each once.
func TestEvidenceRanges(t *testing.T) {
	t.Parallel()
	w := mixed(t, tidemarktest.NewDB(t))
	w.runAll(17)
	w.wantRows(`select d::text from tidemark.decision d
		where first_seq <> lower(seqs) or last_seq <> upper(seqs) - 1 or events <> (select sum(upper(r) - lower(r)) from unnest(seqs) r)`)
	w.wantRows(`select concat_ws(' ', a.worker_id, a.route_id, a.last_seq) from tidemark.decision a join tidemark.decision b
		on a.worker_id = b.worker_id and a.route_id = b.route_id and a.last_seq <> b.last_seq and a.seqs && b.seqs`)
	if rows, events := one[int](w, `select count(*) from tidemark.decision`), one[int](w, `select sum(events) from tidemark.decision`); rows*5 > events {
		t.Errorf("%d rows for %d decisions: not stored as ranges", rows, events)
	}
	// A number that was rolled back lies inside a range's bounds and not in the range.
	w.wantRows(`select seq::text from tidemark.route_attempt where seq not in (select seq from tidemark.outbox)`)
}

func TestEventEvidenceIsTheView(t *testing.T) {
	t.Parallel()
	w := mixed(t, tidemarktest.NewDB(t))
	w.runAll(17)
	w.exec(`select tidemark.dead_letter_replay_many(max_letters => 3)`)
	const view = `select seq, worker, route_code, attempt_no, outcome, reason, detail, decided_at, idempotency_key from tidemark.route_attempt`
	const single = `select s.seq, e.* from generate_series(0, 70) s (seq) cross join lateral tidemark.event_evidence(s.seq) e`
	w.wantRows(`select v::text from (` + view + ` except all ` + single + `) v`)
	w.wantRows(`select v::text from (` + single + ` except all ` + view + `) v`)
	equal(t, "rows", one[int](w, `select count(*) from (`+single+`) e`), one[int](w, `select count(*) from tidemark.route_attempt`))
}

// Events of other domains are passed over and leave nothing.
func TestEvidenceOfAWorkersDomains(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('other', 'tick'), tidemark.route_set('app', '{"domain": "*"}'), tidemark.worker_set('default', '{"domains": ["test"]}')`)
	w.exec(`select tidemark.emit(case n % 2 when 0 then 'test' else 'other' end, 'tick', jsonb_build_object('n', n)) from generate_series(1, 10) n`)
	w.pass()
	w.wantReceived(2, 4, 6, 8, 10)
	w.wantRows(all, "10 app 1 sent", "2 app 1 sent", "4 app 1 sent", "6 app 1 sent", "8 app 1 sent")
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "10")
	w.wantSound()
}

// A cursor that is rewound adds no evidence, delivers nothing again, stages nothing again.
func TestRewind(t *testing.T) {
	t.Parallel()
	w := mixed(t, tidemarktest.NewDB(t))
	w.runAll(17)
	const state = `select md5(string_agg(line, '|' order by line)) from (
		select a::text as line from tidemark.route_attempt a union all select d::text from tidemark.decision d union all select p::text from tidemark.pending p
		union all select l::text from tidemark.dead_letter l union all select r::text from received r) s`
	before := one[string](w, state)
	for _, limit := range []int{1000, 7, 1} {
		for _, to := range []int{0, 1, 31, 59, 60} {
			w.exec(`select tidemark.worker_rewind('default', $1, 'drill')`, to)
			w.wantRows(`select watermark_id from tidemark.worker_cursor`, one[string](w, `select $1::int::text`, to))
			w.runAll(limit)
			equal(t, "evidence after a rewind", one[string](w, state), before)
		}
	}
	// What is new goes on as ever, in the same batch as what is old.
	w.exec(`select tidemark.worker_rewind('default', 50, 'drill')`)
	w.mixedEvents(3)
	w.runAll(1000)
	w.wantRows(`select concat_ws(' ', outcome, count(*)) from tidemark.route_attempt where seq > 60 group by outcome order by outcome`,
		"skipped 3", "disabled 3", "dry_run 3", "pending 3", "sent 7", "failed 2")
	w.wantSound()
}

// After a rewind a new route gets its decisions, also on events that no route claimed before; what was
// disabled or a dry run stays so.
func TestRewindForANewRoute(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('test', 'tock'), tidemark.route_set('app', '{"type": "tick", "enabled": false}')`)
	w.exec(`select tidemark.emit('test', case n % 2 when 0 then 'tick' else 'tock' end, jsonb_build_object('n', n)) from generate_series(1, 4) n`)
	w.pass()
	w.exec(`select tidemark.route_set('app', '{"enabled": true}')`)
	w.exec(`select tidemark.route_set('new', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}')`)
	w.exec(`select tidemark.worker_rewind('default', 0, 'for route new')`)
	w.pass()
	w.wantReceived(1, 2, 3, 4)
	w.wantRows(all, "1 - 1 skipped no_route", "1 new 1 sent", "2 app 1 disabled", "2 new 1 sent",
		"3 - 1 skipped no_route", "3 new 1 sent", "4 app 1 disabled", "4 new 1 sent")
	w.exec(`select tidemark.worker_rewind('default', 0, 'again')`)
	w.pass()
	w.wantReceived(1, 2, 3, 4)
	w.wantSound()
}

// CU6: before it moves, a rewind says what it would do, by route and latest outcome.
func TestRewindSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	w := mixed(t, tidemarktest.NewDB(t))
	w.runAll(17)
	w.exec(`
select tidemark.route_set(code, jsonb_build_object('domain', 'test', 'target_kind', 'sql', 'target_ref', 'public.receive', 'type', 'tock') || more)
from (values ('new_live', '{"enabled": true, "dry_run": false}'::jsonb), ('new_dry', '{"enabled": true}'), ('new_off', '{}')) r (code, more);
create or replace function fail_some(event jsonb) returns void language sql as 'select';
select tidemark.dead_letter_replay_many('some_fail', max_letters => 2);
update tidemark.outbound_route set retry_policy = null;
select tidemark.dead_letter_replay_many('unclear', max_letters => 1)`) // their latest attempt counts
	for _, from := range []string{"0", "25", "60"} {
		// The same by another way: the evidence as the view tells it, and the log itself.
		want := column[string](w, `select concat_ws(' ', '-', count(*)) from tidemark.outbox where seq > $1::text::int`, from)
		want = append(want, column[string](w, `
			select concat_ws(' ', coalesce(route_code, '-'), outcome, 't', count(*)) from (
				select distinct on (seq, route_code) * from tidemark.route_attempt
				where seq > $1::text::int order by seq, route_code, attempt_no desc) a
			group by route_code, outcome order by route_code nulls last, outcome`, from)...)
		want = append(want, column[string](w, `
			select concat_ws(' ', code, outcome, 'f', n)
			from (values ('new_dry', 'dry_run'), ('new_live', 'pending'), ('new_off', 'disabled')) r (code, outcome),
			     (select count(*) as n from tidemark.outbox where type = 'tock' and seq > $1::text::int) o where n > 0 order by 1`, from)...)
		w.wantRows(fmt.Sprintf(`select concat_ws(' ', coalesce(route_code, '-'), outcome, decided, events)
			from tidemark.worker_rewind('default', %s, null, true) order by decided desc, route_code nulls last, outcome`, from), want...)
	}
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "60")
	w.wantRows(`select count(*)::text from tidemark.audit where action = 'worker_rewind'`, "0")

	// And so it comes.
	w.exec(`select tidemark.worker_rewind('default', 0, 'why')`)
	w.exec(`truncate received`)
	w.runAll(1000)
	equal(t, "delivered", len(w.received()), one[int](w, `select count(*)::int from tidemark.outbox where type = 'tock'`))
	w.wantSound()
}

// What was decided for a route that claims the event no longer is not decided again as claimed by none.
func TestRewindForARouteThatIsGone(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('test', 'tock'), tidemark.route_set('app', '{"type": "tick"}'),
		tidemark.route_set('off', '{"domain": "test", "type": "tock", "target_kind": "notify", "target_ref": "a.b"}')`)
	w.exec(`select tidemark.emit('test', type, '{"n": 1}') from unnest(array['tick', 'tock']) type`)
	w.pass()
	before := column[string](w, all)
	equal(t, "evidence", before, []string{"1 app 1 sent", "2 off 1 disabled"})
	w.exec(`select tidemark.route_set(code, '{"type": "other"}') from unnest(array['app', 'off']) code`)
	w.exec(`select tidemark.worker_rewind('default', 0, 'drill')`)
	w.pass()
	equal(t, "evidence after the rewind", column[string](w, all), before)
}

func TestRewindArguments(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.emit(2)
	w.pass()
	for _, to := range []string{"3", "-1", "null", "9223372036854775807"} {
		w.refused("TM005", "worker default is at 2: rewind it to a place from 0 to 2, not to "+to, `select tidemark.worker_rewind('default', `+to+`, 'why')`)
	}
	for _, reason := range []string{"null", "''", "'  '"} {
		w.refused("TM005", "needs a reason", `select tidemark.worker_rewind('default', 0, `+reason+`)`)
	}
	w.refused("TM004", `there is no worker "nobody"`, `select tidemark.worker_rewind('nobody', 0, 'why')`)
	w.wantRows(`select concat_ws(' ', watermark_id, (select lease_epoch from tidemark.heartbeat)) from tidemark.worker_cursor`, "2 1")

	w.wantRows(`select concat_ws(' ', was, route_code, outcome, events, decided, complete)
		from tidemark.worker_rewind('default', 1, 'lost a target')`, "2 app sent 1 t t", "2 1 t")
	w.wantRows(`select concat_ws(' ', actor = session_user, action, object, reason, before, after) from tidemark.audit where action = 'worker_rewind'`,
		`t worker_rewind worker_cursor default lost a target {"watermark": 2} {"watermark": 1}`)
	w.wantRows(`select concat_ws(' ', watermark_id, decided_through, (select lease_epoch from tidemark.heartbeat)) from tidemark.worker_cursor`, "1 2 2")
}

// What is open below the new watermark stays open, what is above it is met by reading on.
func TestRewindKeepsHoles(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")
	a.begin()
	for n := range 4 { // the first hole has its fence, the others wait for one
		a.emit(2*n + 1)
		b.emit(2*n + 2)
		w.pass()
	}
	w.wantHoles("{[1,2),[3,4),[5,6),[7,8)}")
	w.exec(`select tidemark.worker_rewind('default', 4, 'drill')`)
	w.wantHoles("{[1,2),[3,4)}")
	w.wantRows(`select concat_ws(' ', fenced, holes) from tidemark.worker_cursor`, "{[1,2)} {[3,4)}")
	w.pass()
	w.wantHoles("{[1,2),[3,4),[5,6),[7,8)}")
	a.commit()
	w.drain()
	w.wantReceived(2, 4, 6, 8, 1, 3, 5, 7)
	w.wantSound()
}

// A rewind waits for the pass under way; a pass that has read already then settles nothing.
func TestRewindAndAPassAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, watch := live(t, db), open(t, db, "operator"), open(t, db, "watch")
	w.emit(1)
	w.begin()
	w.pass()
	result := later[int](operator, `select was from tidemark.worker_rewind('default', 0, 'drill') where decided is null`)
	watch.waitsFor(operator)
	w.commit()
	if was, err := result(); err != nil || was != 1 {
		t.Errorf("rewound from %d, %v; want 1", was, err)
	}
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "0")

	epoch := one[int64](w, `select epoch from tidemark.claim('default')`)
	operator.exec(`select tidemark.worker_rewind('default', 0, 'drill')`)
	w.refused("TM011", "another instance has taken the cursor", `select tidemark.settle('default', $1, b, '{}', '{}') from tidemark.read_outbox('default', 10) b`, epoch)
	w.wantReceived(1)
}

// A lease is over where the server writes another timeline, as after the promotion of a standby that has its row, and perhaps not what
// its owner has read.
func TestLeaseEndsWithTheTimeline(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.emit(1)
	const settle = `select tidemark.settle('default', $1, b, '{}', '{}', settle_no => $2) from tidemark.read_outbox('default', 10) b`
	const another = `the server is another one since`
	epoch := one[int64](w, `select epoch from tidemark.claim('default', 'me', '10 seconds')`)
	w.exec(`update tidemark.heartbeat set lease_timeline = '1/00000000'`)
	w.refused("TM011", another, settle, epoch, 1)
	w.refused("TM011", another, `select tidemark.lease_hold('default', $1)`, epoch)
	w.refused("TM011", another, `select from tidemark.pass_read('default', $1, 10, null, null, null, null)`, epoch)
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "0")

	// The promoted standby lacks the claim. The next claim there gets another epoch.
	w.exec(`update tidemark.heartbeat set lease_epoch = $1, lease_owner = null, lease_until = null`, epoch-1)
	w.exec(`select tidemark.claim('default', 'you', '10 seconds')`)
	w.refused("TM011", another, settle, epoch, 1)
	for range 2 { // the second is another worker's, or shard's
		w.exec(`select tidemark.claim('default', 'you', '10 seconds')`)
		w.exec(`update tidemark.heartbeat set lease_timeline = '1/00000000'`)
	}
	w.wantRows(`select concat_ws(' ', object, before ->> 'timeline') from tidemark.audit where action = 'server_changed'`, "installation 1/00000000")

	// Nor is the first epoch of a cursor that the standby has not seen claimed.
	w.exec(`select tidemark.worker_set('second', '{"shards": 2}'), tidemark.gate_set('worker.second.enabled', true)`)
	w.exec(`update tidemark.heartbeat set lease_timeline = '1/00000000' where lease_timeline = tidemark.timeline()`)
	w.wantRows(`select (c.epoch > 1)::text from generate_series(0, 1) n, lateral tidemark.claim('second', 'you', '10 seconds', 'outbox', n) c`, "true", "true")

	// So is a lease whose last settle is missing, as on a server that was put back without a new timeline.
	epoch = one[int64](w, `select epoch from tidemark.claim('default', 'you', '10 seconds')`)
	w.refused("TM011", "the server has lost it", settle, epoch, 2)
	w.exec(settle, epoch, 1)
	w.wantRows(`select watermark_id from tidemark.worker_cursor where worker = 'default'`, "1")
	w.refused("TM011", "the server has lost it", settle, epoch, 3)
	w.exec(settle, epoch, 2)
}
