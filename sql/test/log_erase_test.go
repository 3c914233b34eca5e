package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// AD3: payloads of a subject go, wherever they are kept; what happened stays on record; and what is still owed is not harmed.
func TestEventsErase(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "owner")
	s.exec(`select tidemark.stage_set('live', 'a test'); select tidemark.type_set('shop', 'order'), tidemark.type_set('other', 'order');
		create table public.inbox (event jsonb);
		create function public.take(event jsonb) returns void language plpgsql as $$
		begin
			if event -> 'payload' ? 'bad' then raise 'no %', event -> 'payload' ->> 'bad'; end if;
			insert into public.inbox values (event);
		end $$;
		select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
		select tidemark.route_set('r', '{"domain": "*", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}');
		select tidemark.emit_strict('shop', 'order', '{"name": "Ada", "erased": false}', subject_ref => 'ada'),
			tidemark.emit_strict('shop', 'order', '{"bad": "Ada"}', subject_ref => 'ada', key => 'k'),
			tidemark.emit_strict('shop', 'order', '{"name": "Bob"}', subject_ref => 'bob'),
			tidemark.emit_strict('other', 'order', '{"name": "Ada"}', subject_ref => 'ada')`)
	admin := login(t, db, "admin", "tidemark_admin")
	const counted = `select concat_ws(' ', events, waiting, dead_letters, complete)`
	admin.wantRows(counted+` from tidemark.events_erase('shop', 'asked', subject => 'ada')`, "0 2 0 t") // not delivered yet
	s.pass()
	s.exec(`select tidemark.emit_strict('shop', 'order', '{"name": "Ada"}', subject_ref => 'ada')`)
	evidence := `select concat_ws(' ', seq, attempt_no, outcome) from tidemark.route_attempt order by 1`
	before := column[string](s, evidence)

	admin.wantRows(counted+` from tidemark.events_erase('shop', 'asked', subject => 'ada', dry_run => true)`, "2 1 1 t")
	s.wantRows(`select count(*)::text from tidemark.outbox where payload - 'erased' = '{}'`, "0")
	admin.wantRows(counted+` from tidemark.events_erase('shop', 'asked', subject => 'ada', most => 1)`, "1 0 0 f")
	admin.wantRows(counted+` from tidemark.events_erase('shop', 'asked', subject => 'ada')`, "1 1 1 t")
	s.wantRows(`select string_agg(key, ',') from (select seq, k as key from tidemark.outbox, jsonb_object_keys(payload) k order by seq) x`, "erased,erased,name,name,name")
	s.wantRows(`select subject_ref from tidemark.outbox order by seq`, "ada", "ada", "bob", "ada", "ada")
	equal(t, "evidence", column[string](s, evidence), before)
	s.wantRows(`select concat_ws(' ', resolution, resolution_reason, error_detail, event_snapshot -> 'payload' ? 'erased', event_snapshot ->> 'subject_ref') from tidemark.dead_letter`,
		"discarded asked erased t ada")
	s.wantRows(`select detail from tidemark.attempt`, "erased")
	for table, text := range map[string]string{"outbox": `o::text`, "dead_letter": `o::text`, "attempt": `o::text`} {
		s.wantRows(`select o.seq::text from tidemark.` + table + ` o where ` + text + ` like '%Ada%' and o.seq < 4`)
	}
	s.wantRows(`select concat_ws(' ', object, reason, after ->> 'subject', after ->> 'events') from tidemark.audit where action = 'events_erase' order by id`,
		"domain shop asked ada 1", "domain shop asked ada 1")

	// What waited is delivered whole, and erased then.
	s.pass()
	s.wantRows(`select string_agg(event -> 'payload' ->> 'name', ' ' order by event ->> 'seq') from public.inbox`, "Ada Bob Ada Ada")
	admin.wantRows(counted+` from tidemark.events_erase('shop', 'asked', subject => 'ada')`, "1 0 0 t")
	// By age: the retention of a domain.
	admin.wantRows(counted+` from tidemark.events_erase('shop', 'old', before => clock_timestamp())`, "1 0 0 t")
	s.wantRows(`select domain from tidemark.outbox where not payload ? 'erased'`, "other")
	s.wantSound()

	for _, sql := range []string{`('shop', ' ', subject => 'ada')`, `('shop', 'why')`, `('shop', 'why', key => 'k', most => 0)`} {
		admin.wantRefused("TM005", `select tidemark.events_erase`+sql)
	}
	admin.wantRefused("TM004", `select tidemark.events_erase('nope', 'why', key => 'k')`)
	login(t, db, "executor", "tidemark_executor").wantRefused("42501", `select tidemark.events_erase('shop', 'why', key => 'k')`)
}

// A letter that outlives its event is reached too; the log takes no other change than this.
func TestEventsEraseLetterWithoutEvent(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := oneLetter(t, db)
	s.exec(`alter table tidemark.outbox disable trigger outbox_append_only; delete from tidemark.outbox; alter table tidemark.outbox enable trigger outbox_append_only`)
	domain := one[string](s, `select event_snapshot ->> 'domain' from tidemark.dead_letter`)
	s.wantRows(`select concat_ws(' ', events, dead_letters) from tidemark.events_erase('`+domain+`', 'why', before => clock_timestamp())`, "0 1")
	s.wantRows(`select resolution from tidemark.dead_letter where event_snapshot -> 'payload' ? 'erased'`, "discarded")
}

// An event that appears in a hole of a cursor, fenced or not yet, is still to be delivered.
func TestEventsEraseLeavesLateEvents(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b, c := live(t, db), open(t, db, "a"), open(t, db, "b"), open(t, db, "c")
	a.begin()
	a.emitKey(1, "k")
	c.emit(2)
	w.pass() // number 1 is in a fenced hole
	b.begin()
	b.emitKey(3, "k")
	c.emit(4)
	w.pass() // and 3 in one that is not fenced yet
	a.commit()
	b.commit()
	const erase = `select concat_ws(' ', events, waiting) from tidemark.events_erase('test', 'asked', key => 'k')`
	c.wantRows(erase, "0 2")
	w.pass()
	w.wantReceived(2, 4, 1, 3)
	c.wantRows(erase, "2 0")
}

// What is pending is looked through once, however many events are looked at: after a night's outage it is long.
func TestEventsEraseBesideABacklog(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "owner")
	s.exec(`select tidemark.type_set('shop', 'order'); select tidemark.worker_set('w');
		select tidemark.route_set('r', '{"worker": "w", "domain": "shop", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}');
		select tidemark.emit_strict('shop', 'order', '{"name": "Ada"}') from generate_series(1, 100);
		insert into tidemark.pending (worker_id, route_id, seq) select w.id, r.id, n from tidemark.worker w, tidemark.outbound_route r, generate_series(100, 20000) n
			where w.worker = 'w';
		update tidemark.worker_cursor set watermark_id = '100', decided_through = '100'`)
	s.exec(`analyze tidemark.pending`)
	s.exec(`set work_mem = '64kB'`) // what is pending does not fit into it, as millions do not into the default
	s.begin()
	s.wantRows(`select concat_ws(' ', events, waiting) from tidemark.events_erase('shop', 'asked', before => 'infinity')`, "99 1")
	s.wantRows(`select (seq_scan + idx_scan < 10)::text from pg_stat_xact_user_tables where relid = 'tidemark.pending'::regclass`, "true")
	s.commit()
}
