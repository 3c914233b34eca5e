package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	erasedNumbers = `select coalesce(string_agg(seq::text, ',' order by seq), '') from tidemark.outbox where payload ? 'erased'`
	expired       = `select concat_ws(' ', action, object, detail) from tidemark.payloads_expire()`
)

// retaining has the domain shop, whose payloads stay for an hour, and the domain other, whose payloads stay.
func retaining(t *testing.T) (*tidemarktest.DB, session) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.type_set('shop', 'order'), tidemark.type_set('other', 'order'), tidemark.domain_set('shop', '{"payload_retention": "1 hour"}', 'a test');
		create function public.take_any(event jsonb) returns void language plpgsql as $$
		begin if event -> 'payload' ? 'bad' then raise 'no %', event -> 'payload' ->> 'bad'; end if; end $$;
		select tidemark.route_set('app', '{"domain": "*", "target_kind": "sql", "target_ref": "public.take_any"}')`)
	return db, w
}

// age makes all events three hours old.
func (s session) age() {
	s.t.Helper()
	s.exec(`begin; set local session_replication_role = replica;
		update tidemark.outbox set created_at = clock_timestamp() - interval '3 hours'; commit`)
}

// AD3: payloads past the retention of their domain are erased, each once, and nothing else of the events; those of other domains stay.
func TestPayloadRetention(t *testing.T) {
	t.Parallel()
	_, w := retaining(t)
	emit := func(domain, payload string) {
		t.Helper()
		w.exec(`select tidemark.emit_strict($1, 'order', $2::jsonb, key => 'k')`, domain, payload)
		w.age()
	}
	emit("shop", `{"name": "Ada"}`)
	emit("other", `{"name": "Ada"}`)
	emit("shop", `{"bad": "Ada"}`)
	emit("shop", `{"name": "Bob"}`)
	w.wantRows(expired, "kept payloads of shop event 1 is past the retention, and is needed by the cursor of worker default")
	w.wantRows(erasedNumbers, "")
	w.pass()
	before := column[string](w, `select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.route_attempt order by 1`)
	w.wantRows(`select action from tidemark.payloads_expire(2)`, "erased")
	w.wantRows(erasedNumbers, "1")
	w.wantRows(expired, "erased payloads of shop 2 events, 0 dead letters, up to number 4", "kept payloads of shop 1 dead letters of events past the retention are open")
	w.wantRows(erasedNumbers, "1,3,4")
	w.wantRows(`select detail from tidemark.attempt`, "erased")
	equal(t, "evidence", column[string](w, `select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.route_attempt order by 1`), before)

	// The letter keeps what a replay needs until it is resolved.
	w.wantRows(`select concat_ws(' ', subject, severity, detail) from tidemark.finding where kind = 'payloads_kept' and closed_at is null`, "shop warning 1 dead letters are open")
	w.wantRows(`select event_snapshot -> 'payload' ->> 'bad' from tidemark.dead_letter`, "Ada")
	w.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter`) // fails again, with a new message
	w.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter`)
	w.wantRows(expired, "erased payloads of shop 0 events, 1 dead letters, up to number 4")
	w.wantRows(`select concat_ws(' ', event_snapshot -> 'payload' ? 'erased', error_detail, resolution, event_snapshot ->> 'key') from tidemark.dead_letter`, "t erased discarded k")
	w.wantRows(`select distinct detail from tidemark.attempt`, "erased")
	w.wantRows(`select kind from tidemark.finding where kind = 'payloads_kept' and closed_at is null`)

	// What it has passed is not looked at again, and younger events stay.
	w.wantRows(expired)
	w.exec(`select tidemark.emit_strict('shop', 'order', '{"name": "Eve"}')`)
	w.pass()
	w.wantRows(expired)
	w.wantRows(erasedNumbers, "1,3,4")
	w.wantRows(`select concat_ws(' ', passed_seq, events, dead_letters) from tidemark.payload_retention`, "4 3 1")
	w.wantRows(`select concat_ws(' ', reason, after ->> 'payload_retention') from tidemark.audit where object = 'domain shop' and after ->> 'payload_retention' is not null`, "a test 01:00:00")
	w.wantRows(allVerified)
	w.wantRows(`select action from tidemark.maintain() where object like 'payloads%'`)

	w.exec(`select tidemark.domain_set('shop', '{"payload_retention": null}')`)
	w.wantRows(expired)
	w.wantRows(`select domain from tidemark.payload_retention`)
	for _, retention := range []string{"59 minutes", "-1 day", "101 years"} {
		w.refused("23514", "payload_retention_is_an_hour_or_more", `select tidemark.domain_set('shop', jsonb_build_object('payload_retention', $1::text))`, retention)
	}
}

// The payload of an event that is still to be delivered stays, whatever its age: in a hole of a cursor, pending, ahead of a
// replay, or in a transaction that is still open.
func TestPayloadRetentionKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	db, w := retaining(t)
	const emit = `select tidemark.emit_strict('shop', 'order', '{"name": "Ada"}')`
	late := open(t, db, "late")
	w.exec(emit)
	late.begin()
	late.exec(emit)
	w.exec(emit)
	w.pass()
	w.age()
	w.wantRows(`select detail from tidemark.payloads_expire()`) // Its owner may still commit number 2.
	w.wantRows(erasedNumbers, "")
	late.commit()
	w.age()
	w.wantRows(`select detail from tidemark.payloads_expire()`, "1 events, 0 dead letters, up to number 1", "event 2 is past the retention, and is needed by the cursor of worker default")
	w.pass()
	w.wantRows(`select detail from tidemark.payloads_expire()`, "2 events, 0 dead letters, up to number 3")

	// Pending, since the gate of its domain is closed.
	w.exec(`select tidemark.gate_set('domain.shop.enabled', false)`)
	w.exec(emit)
	w.pass()
	w.age()
	w.wantRows(`select detail from tidemark.payloads_expire()`, "event 4 is past the retention, and is needed by a pending delivery of route app")
	w.exec(`select tidemark.gate_set('domain.shop.enabled', true)`)
	w.pass()
	w.wantRows(`select detail from tidemark.payloads_expire()`, "1 events, 0 dead letters, up to number 4")

	// Ahead of a replay.
	w.exec(emit)
	w.pass()
	w.age()
	w.exec(`select tidemark.route_replay('app', from_seq => 5, reason => 'test')`)
	w.wantRows(`select detail from tidemark.payloads_expire()`, "event 5 is past the retention, and is needed by replay 1")
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select detail from tidemark.finding where kind = 'payloads_kept' and closed_at is null`, "event 5 and later ones are needed by replay 1")
	w.wantRows(erasedNumbers, "1,2,3,4")
	w.exec(`select tidemark.replay_cancel(1, 'test')`)
	w.wantRows(`select detail from tidemark.payloads_expire()`, "1 events, 0 dead letters, up to number 5")

	// Ahead of the replay of a new route, which has no end until passes that do not know the route are over.
	w.exec(emit)
	w.exec(`select tidemark.route_set('new', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.receive"}'),
		tidemark.route_replay('new', 'test', from_seq => 1, outcomes => '{none}')`)
	w.pass()
	w.age()
	w.wantRows(`select detail from tidemark.payloads_expire()`, "event 6 is past the retention, and is needed by replay 2")
	w.wantRows(`select concat_ws(' ', events, waiting) from tidemark.events_erase('shop', 'test', before => now(), dry_run => true)`, "0 1")
	w.exec(`select tidemark.maintain()`)
	w.exec(emit)
	w.pass()
	w.age()
	w.wantRows(`select concat_ws(' ', events, waiting) from tidemark.events_erase('shop', 'test', before => now(), dry_run => true)`, "1 1")
	w.wantRows(allVerified)
}

// An open letter keeps its payload when that of its event is erased. A person's request reaches it, and no other letter.
func TestEventsEraseBehindPayloadRetention(t *testing.T) {
	t.Parallel()
	_, w := retaining(t)
	w.exec(`select tidemark.emit_strict('shop', 'order', '{"bad": "Ada"}', subject_ref => 'ada'), tidemark.emit_strict('shop', 'order', '{"bad": "Bob"}', subject_ref => 'bob')`)
	w.pass()
	w.age()
	w.exec(`select tidemark.maintain()`)
	w.wantRows(erasedNumbers, "1,2")
	w.wantRows(`select error_detail from tidemark.dead_letter order by seq`, "no Ada", "no Bob")

	// Other letters are not read: neither those of another domain nor those that are erased. The server believes that there are none.
	const many = `insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code, error_detail)
		select 'many ' || n, worker_id, route_id, 100 + n, gen_random_uuid(), event_snapshot || jsonb_build_object('domain', case when n % 2 = 0 then 'shop' else 'other' end),
			error_code, case when n % 2 = 0 then 'erased' else 'no Eve' end
		from tidemark.dead_letter, generate_series(1, 2000) n where seq = 1`
	w.exec(`alter table tidemark.dead_letter set (autovacuum_enabled = off); analyze tidemark.dead_letter`)
	w.exec(many)
	const erase = `select concat_ws(' ', events, waiting, dead_letters, complete) from tidemark.events_erase('shop', 'asked', subject => 'ada'`
	for _, statistics := range []string{"old", "new"} {
		if n := w.readsOf("dead_letter", func() { w.wantRows(erase+`, dry_run => true)`, "0 0 1 t") }); n > 20 {
			t.Errorf("statistics are %s: %d letters are read", statistics, n)
		}
		w.exec(`analyze tidemark.dead_letter; discard plans`)
	}

	// A replay that is under way needs the payload.
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, replay, dead_letter_id) select worker_id, route_id, seq, 'shop', true, id from tidemark.dead_letter where seq = 1`)
	w.wantRows(erase+`)`, "0 1 0 t")
	w.exec(`delete from tidemark.pending`)
	w.wantRows(erase+`)`, "0 0 1 t")
	w.wantRows(erase+`)`, "0 0 0 t")
	w.wantRows(`select concat_ws(' ', event_snapshot -> 'payload' ? 'erased', error_detail, resolution) from tidemark.dead_letter where seq < 100 order by seq`, "t erased discarded", "f no Bob")
	for _, table := range []string{"outbox", "dead_letter", "attempt"} {
		w.wantRows(`select o.seq::text from tidemark.` + table + ` o where o.seq < 100 and o::text like '%Ada%'`)
	}
	w.wantRows(`select detail from tidemark.attempt order by seq`, "erased", "erased")
}

// Where it cannot erase it says so, and a call looks at so many events at most.
func TestPayloadRetentionArguments(t *testing.T) {
	t.Parallel()
	_, w := retaining(t)
	w.exec(`select tidemark.emit_strict('shop', 'order', '{"name": "Ada"}')`)
	w.age()
	w.pass()
	for _, most := range []string{"null", "0", "-1", "100001"} {
		w.refused("TM005", "most must be from 1 to 100000", `select tidemark.payloads_expire(`+most+`)`)
	}
	for _, level := range []string{"repeatable read", "serializable"} {
		w.exec(`set default_transaction_isolation = '` + level + `'`)
		kept := "kept payloads of shop the isolation level is " + level + ", and must be read committed"
		w.wantRows(expired, kept)
		w.wantRows(`select concat_ws(' ', action, object, detail) from tidemark.maintain() where object like 'payloads%'`, kept)
	}
	w.wantRows(erasedNumbers, "")
	w.exec(`reset default_transaction_isolation`)
	w.wantRows(expired, "erased payloads of shop 1 events, 0 dead letters, up to number 1")
}

// What the documentation says of a rewind behind the erasure: a route that is newer than the events gets them erased.
func TestPayloadRetentionAndRewind(t *testing.T) {
	t.Parallel()
	_, w := retaining(t)
	w.exec(`select tidemark.emit_strict('shop', 'order', '{"name": "Ada"}')`)
	w.pass()
	w.age()
	w.wantRows(expired, "erased payloads of shop 1 events, 0 dead letters, up to number 1")
	w.exec(`create table got (payload jsonb);
		create function public.keep(event jsonb) returns void language sql as 'insert into public.got values (event -> ''payload'')';
		select tidemark.route_set('later', '{"domain": "*", "target_kind": "sql", "target_ref": "public.keep", "enabled": true, "dry_run": false}')`)
	w.wantRows(`select concat_ws(' ', outcome, events) from tidemark.worker_rewind('default', 0, 'test') where route_code = 'later'`, "pending 1")
	w.pass()
	w.wantRows(`select concat_ws(' ', payload ? 'erased', payload ? 'name') from got`, "t f")
	w.wantRows(`select concat_ws(' ', outcome, reason) from tidemark.route_attempt where route_code = 'later'`, "sent")
	w.wantRows(`select concat_ws(' ', domain, count(*), max(seq)) from tidemark.outbox
		where seq > 0 and payload ? 'erased' and payload - 'erased' = '{}' group by domain`, "shop 1 1")
	w.wantRows(allVerified)
}
