package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Why a route delivered an event or did not, through all that can become of one.
func TestWhy(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', t) from unnest(array['order', 'paid']) t`)
	s.exec(`create function public.target(e jsonb) returns void language plpgsql as $f$ begin
		if e -> 'payload' ? 'fail' then raise exception 'tell no one %', e -> 'payload'; end if; end $f$`)
	s.exec(`select tidemark.route_set('inside', '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.target", "retry_policy": {"max_attempts": 1}}')`)
	s.exec(`select tidemark.route_set('hook', '{"domain": "shop", "type": "*", "key_filter": "k*", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	why := func(seq int, route, state, sentence, command string) {
		t.Helper()
		s.wantRows(fmt.Sprintf(`select format('%%s: %%s → %%s', w.state, regexp_replace(w.sentence, '\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]?\d*', 'T', 'g'), coalesce(w.command, '-'))
			from tidemark.outbox o, tidemark.why(o.event_id, '%s') w where o.seq = %d`, route, seq), fmt.Sprintf("%s: %s → %s", state, sentence, command))
	}
	emit := func(payload, key string) {
		t.Helper()
		s.exec(fmt.Sprintf(`select tidemark.emit('shop', 'order', '%s', key => %s)`, payload, key))
	}
	run := func() { t.Helper(); s.exec(`select tidemark.route_worker_run('default')`) }
	const again = `tidemark route replay %s --from-seq %d --to-seq %[2]d --reason 'tidemark why'`

	emit(`{}`, `'k1'`) // 1
	why(1, "inside", "not read", "Its worker waits for a closed gate: routes.enabled.", `tidemark gate open routes.enabled --reason 'tidemark why'`)
	s.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true), tidemark.stage_set('live', 'test')`)
	why(1, "inside", "not read", "Its worker default has never run.", "tidemark status")
	run()
	why(1, "inside", "disabled", "The route was switched off when its worker decided the event, at T.", fmt.Sprintf(again, "inside", 1))

	s.exec(`select tidemark.route_set(r, '{"enabled": true, "dry_run": true}') from unnest(array['inside', 'hook']) r`)
	emit(`{}`, `'k1'`) // 2
	why(2, "inside", "not read", "Its worker default has not read it yet: it ran last at T, up to number 1; the event is number 2.", "tidemark status")
	run()
	why(2, "hook", "dry_run", "The route was in dry run when its worker decided the event, at T.", fmt.Sprintf(again, "hook", 2))

	s.exec(`select tidemark.route_set(r, '{"dry_run": false}') from unnest(array['inside', 'hook']) r`)
	emit(`{}`, `'k1'`)          // 3
	emit(`{"fail": 1}`, `'k1'`) // 4
	emit(`{}`, `'other'`)       // 5
	run()
	why(3, "inside", "sent", "It was delivered at T, in attempt 1.", "-")
	why(4, "inside", "dead letter", `It failed for good after one attempt: P0001, tell no one {"fail": 1}.`, "tidemark dead-letter replay 1")
	why(5, "hook", "not claimed", "The route does not claim it: it is for the keys k*, the event has other.", "tidemark route show hook")
	why(3, "hook", "pending", "It is about to be delivered.", "-")
	s.exec(`update tidemark.pending set error_count = 2, last_error = '503: tell no one' where seq = 3`)
	s.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq = 4`)
	why(3, "hook", "pending", "It has failed 2 times: 503, tell no one, and is tried again at T.", "-")
	why(4, "hook", "pending", "It waits behind event 3 of its key, which has failed 2 times: 503, tell no one.", "-")
	s.exec(`set role tidemark_reader`) // as the console does for viewers
	why(3, "hook", "pending", "It has failed 2 times: 503, the message is for operators, and is tried again at T.", "-")
	why(4, "inside", "dead letter", "It failed for good after one attempt: P0001, the function raised an error.", "tidemark dead-letter replay 1")
	s.exec(`reset role`)
	s.exec(`select tidemark.finding_open('credentials_refused', 'hook', 'high', 'tell no one')`)
	why(3, "hook", "pending", "It has failed 2 times: 503, tell no one, and waits, since the target of the route refuses the credentials: "+
		"the daemon tries one event now and then, and sends the others once that succeeds.", "tidemark route show hook")
	s.exec(`select tidemark.finding_close('credentials_refused', 'hook')`)
	s.exec(`select tidemark.worker_pause('default', true, 'test')`)
	why(3, "hook", "pending", "It waits for a closed gate: paused.", "tidemark worker resume default --reason 'tidemark why'")
	s.exec(`select tidemark.worker_pause('default', false, 'test'), tidemark.route_set('hook', '{"enabled": false}')`)
	why(3, "hook", "pending", "It waits, since the route was switched off.", "tidemark route enable hook --reason 'tidemark why'")
	s.exec(`select tidemark.route_set('hook', '{"enabled": true, "dry_run": true}')`)
	why(3, "hook", "pending", "It waits, since the route was set to dry run.", "tidemark route set hook --dry-run=false --reason 'tidemark why'")
	s.exec(`select tidemark.dead_letter_discard(1, 'test')`)
	why(4, "inside", "discarded", "It failed for good, and postgres discarded it at T.", "-")

	s.exec(`select tidemark.route_set('late', '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.target"}')`)
	why(1, "late", "passed", "Its worker passed it before the route claimed such events, or the record has left by retention.", fmt.Sprintf(again, "late", 1))
	s.exec(`select tidemark.worker_set('default', '{"domains": ["other"]}')`)
	why(1, "late", "not claimed", "The worker default of the route does not decide events of the domain shop.", "tidemark worker show default")

	s.refused("TM004", `there is no route "nope"`, `select tidemark.why(event_id, 'nope') from tidemark.outbox limit 1`)
	s.refused("TM004", "there is no event 00000000-0000-0000-0000-000000000000", `select tidemark.why('00000000-0000-0000-0000-000000000000', 'hook')`)
}

// The event is looked for once, however many partitions the log has.
func TestWhyFindsTheEventOnce(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', 'order'), tidemark.route_set('hook', '{"domain": "shop", "target_kind": "webhook",
		"target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	s.exec(`select tidemark.emit('shop', 'order', '{}')`)
	s.exec(`begin`)
	s.exec(`set local track_functions = 'all'`)
	s.exec(`select w.* from (select o.event_id from tidemark.outbox o where o.seq = 1 offset 0) o, tidemark.why(o.event_id, 'hook') w`)
	s.wantRows(`select pg_stat_get_xact_function_calls('tidemark.event_seq(uuid)'::regprocedure)::text`, "1")
	s.exec(`rollback`)
}

// A number below the watermark that was open when its worker passed is not passed: the worker comes back for it.
func TestWhyOfLateEvent(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	const why = `select concat_ws(' → ', w.state, regexp_replace(w.sentence, '\d{4}-\S+ \S+,', 'T,'), w.command) from tidemark.outbox o, tidemark.why(o.event_id, 'app') w where o.seq = 1`
	a.begin()
	a.emit(1)
	w.emit(2)
	w.pass()
	w.wantRows(`select (fenced @> 1::bigint)::text from tidemark.worker_cursor`, "true")
	a.commit()
	w.wantRows(why, "not read → Its worker default has not read it yet: it ran last at T, up to number 2; the event is number 1, which was committed late. → tidemark status")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.wantRows(why, "not read → Its worker waits for a closed gate: routes.enabled. → tidemark gate open routes.enabled --reason 'tidemark why'")
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.pass()
	w.wantRows(`select w.state from tidemark.outbox o, tidemark.why(o.event_id, 'app') w where o.seq = 1`, "sent")
}

// A pass that ends while why looks does not make it say that the event was passed: a replay would deliver it twice.
func TestWhyBesideAPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, asks := live(t, db), open(t, db, "asks")
	w.emit(1)
	w.rewrite("why", "select * into letter from tidemark.dead_letter l", "perform pg_advisory_xact_lock(1);\n    select * into letter from tidemark.dead_letter l")
	w.exec(`select pg_advisory_lock(1)`)
	state := later[string](asks, `select w.state from tidemark.outbox o, tidemark.why(o.event_id, 'app') w where o.seq = 1`)
	w.waitsFor(asks)
	w.pass()
	w.wantReceived(1)
	w.exec(`select pg_advisory_unlock(1)`)
	got, err := state()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "state", got, "not read")
}
