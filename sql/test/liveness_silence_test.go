package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// silentFor moves the last beat of an executor into the past: nothing here waits.
func (s session) silentFor(executor string, seconds float64) {
	s.t.Helper()
	s.exec(`update tidemark.heartbeat set last_beat_at = clock_timestamp() - make_interval(secs => $2) where executor_id = $1`, executor, seconds)
}

// check runs stale_check and shows what it returns.
func (s session) check(want ...string) {
	s.t.Helper()
	s.wantRows(`select concat_ws(' ', executor_id, state, severity, case when event_id is not null then 'told' end) from tidemark.stale_check()`, want...)
}

const (
	silentEvents = `select concat_ws(' ', o.subject_ref, o.severity, o.stream) from tidemark.outbox o where o.domain = 'system' and o.type = 'queue_worker_silent' order by o.seq`
	openFindings = `select concat_ws(' ', f.kind, f.subject, f.severity, f.count) from tidemark.finding f where f.closed_at is null order by f.id`
)

// One setting disables the check for silent executors, without a change to any executor's own threshold.
func TestSilenceIsSwitchedOff(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	s.register("x")
	s.exec(`select tidemark.heartbeat_write('x', 'busy', current_job_id => 'job-7')`)
	least := func(value string) {
		s.exec(`update tidemark.setting set value = $1 where key = 'queue.heartbeat.stale_threshold_seconds'`, value)
	}
	s.silentFor("x", 100)
	for _, huge := range []string{"3600", "999999999999999999999999999999"} {
		least(huge)
		s.check()
		s.wantRows(silentEvents)
		s.wantRows(`select state from tidemark.heartbeat_health where executor_id = 'x'`, "alive")
	}
	for _, own := range []string{"0", "29", "-1", "soon", ""} { // less, or no number
		least(own)
		s.wantRows(`select concat_ws(' ', state, stale_threshold_seconds) from tidemark.heartbeat_health where executor_id = 'x'`, "silent 30")
	}
	s.exec(`delete from tidemark.setting where key = 'queue.heartbeat.stale_threshold_seconds'`)
	s.check("x silent critical told")
	s.wantRows(silentEvents, "x critical alert")
	s.wantRows(`select substring(detail from 'its last.*') from tidemark.finding where subject = 'x'`, `its last status was "busy", at job job-7`)

	s.exec(`insert into tidemark.setting (key, value) values ('queue.heartbeat.stale_threshold_seconds', '3600')`)
	s.check("x returned critical")
	s.wantRows(openFindings)
}

// LI3, to the letter.
func TestSilenceIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	for _, e := range []string{"a", "b", "c", "d", "e"} {
		s.exec(`select tidemark.heartbeat_register($1, 'Agent', cadence => '1000 seconds', threshold => '3000 seconds')`, e)
		s.exec(`select tidemark.heartbeat_write($1, 'busy')`, e)
	}
	s.exec(`select tidemark.heartbeat_register('e', cadence => '3000 seconds', threshold => '3000 seconds')`)
	s.check()
	s.silentFor("a", 2900)  // not yet
	s.silentFor("b", 3100)  // 3 cadences and more
	s.silentFor("c", 9900)  // fewer than 10
	s.silentFor("d", 10000) // 10
	s.silentFor("e", 6050)  // past its threshold, at 2 cadences
	s.check("b silent warning told", "c silent warning told", "d silent critical told", "e silent critical told")
	s.wantRows(silentEvents, "b warning alert", "c warning alert", "d critical alert", "e critical alert")
	s.wantRows(openFindings, "heartbeat_silent b warning 1", "heartbeat_silent c warning 1", "heartbeat_silent d critical 1", "heartbeat_silent e critical 1")
	s.wantRows(`select concat_ws(' ', domain, type, lane, key, subject_table, actor, payload - 'age_seconds') from tidemark.outbox where subject_ref = 'b' and (payload ->> 'age_seconds')::int between 3100 and 3149`,
		`system queue_worker_silent immediate b tidemark.heartbeat tidemark {"kind": "Agent", "gap_ratio": 3.1, "executor_id": "b", "last_status": "busy", "stale_threshold_seconds": 3000, "expected_cadence_seconds": 1000}`)
	s.wantRows(`select regexp_replace(detail, '00:5[12]:[0-9]+', 'a while') from tidemark.finding where subject = 'b'`, `silent for a while, although a beat is expected every 1000 s; its last status was "busy"`)

	// Not again within twice the threshold, however often it is looked for.
	s.check("b silent warning", "c silent warning", "d silent critical", "e silent critical")
	s.exec(`update tidemark.silence set told_at = told_at - interval '5900 seconds'`)
	s.silentFor("c", 10100) // worse, and still not again; the finding says so
	s.check("b silent warning", "c silent critical", "d silent critical", "e silent critical")
	s.exec(`update tidemark.silence set told_at = told_at - interval '100 seconds'`)
	s.check("b silent warning told", "c silent critical told", "d silent critical told", "e silent critical told")
	s.wantRows(openFindings, "heartbeat_silent b warning 2", "heartbeat_silent c critical 3", "heartbeat_silent d critical 2", "heartbeat_silent e critical 2")

	// The beat returns; if it goes at once, its event is not told again so soon either.
	s.exec(`select tidemark.heartbeat_write('b'), tidemark.heartbeat_deregister('c'), tidemark.heartbeat_deregister('d'), tidemark.heartbeat_deregister('e')`)
	s.check("b returned warning")
	s.check()
	s.wantRows(openFindings)
	s.silentFor("b", 4000)
	s.check("b silent warning")
	s.wantRows(openFindings, "heartbeat_silent b warning 1")
	s.wantRows(`select count(*)::text from tidemark.finding where subject = 'b'`, "2")

	// A clock that was set back does not silence what tells of silence.
	s.exec(`update tidemark.silence set told_at = clock_timestamp() + interval '1 day'`)
	s.check("b silent warning told")
}

// A worker is waited for once it has run, unless it is switched off; one that an operator registered, at once.
func TestSilentWorkers(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	state := `select concat_ws(' ', executor_id, state, excuse) from tidemark.heartbeat_health`
	w.exec(`update tidemark.heartbeat set registered_at = registered_at - interval '4 days'`)
	w.check()
	w.wantRows(state, "default/outbox/0 quiet never run")
	w.pass()
	w.wantRows(state, "default/outbox/0 alive")
	w.silentFor("default/outbox/0", 95*3600)
	w.check("default/outbox/0 silent critical told")
	w.wantRows(openFindings, "cursor_silent_gap default/outbox/0 critical 1")
	w.wantRows(`select concat_ws(' ', kind, status, note) from tidemark.queue_health where kind in ('cursor', 'heartbeat')`,
		"cursor bad silent", "heartbeat bad silent; it last said ok")
	w.pass()
	w.check("default/outbox/0 returned critical")
	w.wantRows(openFindings)

	for _, off := range []struct{ excuse, close, open string }{
		{"closed by worker.default.enabled", `select tidemark.gate_set('worker.default.enabled', false)`, `select tidemark.gate_set('worker.default.enabled', true)`},
		{"closed by routes.enabled", `select tidemark.gate_set('routes.enabled', false)`, `select tidemark.gate_set('routes.enabled', true)`},
		{"paused", `select tidemark.worker_pause('default', true, 'test')`, `select tidemark.worker_pause('default', false, 'test')`},
	} {
		w.exec(`delete from tidemark.silence`)
		w.silentFor("default/outbox/0", 3600)
		w.check("default/outbox/0 silent critical told")
		w.exec(off.close)
		w.check("default/outbox/0 quiet critical")
		w.wantRows(state, "default/outbox/0 quiet "+off.excuse)
		w.check()
		// Switched on again it has time to come back, and then not.
		w.exec(off.open)
		w.check()
		w.exec(`update tidemark.silence set excused_at = excused_at - interval '301 seconds', told_at = null`)
		w.check("default/outbox/0 silent warning told")
		w.pass()
		w.check("default/outbox/0 returned warning")
	}

	w.exec(`select tidemark.worker_set('second'), tidemark.gate_set('worker.second.enabled', true)`)
	w.exec(`update tidemark.heartbeat set registered_at = registered_at - interval '1 hour'`)
	w.check()
	w.exec(`select tidemark.heartbeat_register('second/outbox/0', 'PG_worker', cadence => '1 minute')`)
	w.check()
	w.exec(`update tidemark.heartbeat set watched_since = watched_since - interval '4 minutes'`)
	w.check("second/outbox/0 silent warning told")
}

func TestStoppedDaemonIsQuiet(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	s.exec(`select tidemark.heartbeat_daemon('a', 'running', '{"version": "1"}')`)
	s.wantRows(`select concat_ws(' ', executor_id, kind, expected_cadence_seconds, stale_threshold_seconds, ticks_total, last_status, payload) from tidemark.heartbeat where executor_id like 'daemon%'`,
		`daemon/a PG_worker 10 30 1 running {"version": "1", "superuser": "postgres"}`)
	s.silentFor("daemon/a", 35)
	s.check("daemon/a silent warning told")
	s.exec(`select tidemark.heartbeat_daemon('a')`)
	s.check("daemon/a returned warning")
	// What an administrator asked of it stays.
	s.exec(`select tidemark.heartbeat_register('daemon/a', 'PG_worker', cadence => '20 seconds')`)
	s.exec(`select tidemark.heartbeat_daemon('a', 'stopped')`)
	s.wantRows(`select concat_ws(' ', expected_cadence_seconds, stale_threshold_seconds, ticks_total, last_status) from tidemark.heartbeat where executor_id like 'daemon%'`, `20 60 3 stopped`)
	s.silentFor("daemon/a", 3600)
	s.check()
	s.silentFor("daemon/a", 25*3600)
	s.wantMaintain("forgot heartbeat daemon/a stopped a day ago")
	// That word excuses no other executor.
	s.register("b")
	s.exec(`select tidemark.heartbeat_write('b', 'stopped')`)
	s.silentFor("b", 3600)
	s.check("b silent critical told")
}

// A daemon whose pod was lost never comes back under its name: once another has done its work for a day, it is forgotten. The last one
// is not.
func TestLostDaemonIsForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	const daemons = `select executor_id from tidemark.heartbeat where executor_id like 'daemon/%' order by 1`
	s.exec(`select tidemark.heartbeat_daemon('pod-1')`)
	s.silentFor("daemon/pod-1", 25*3600)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(daemons, "daemon/pod-1")
	s.exec(`select tidemark.heartbeat_daemon('pod-2'), tidemark.heartbeat_daemon('pod-3')`)
	s.silentFor("daemon/pod-2", 23*3600)
	s.wantMaintain("forgot heartbeat daemon/pod-1 silent for a day, and another daemon runs")
	s.wantRows(daemons, "daemon/pod-2", "daemon/pod-3")
	s.wantRows(`select executor_id from tidemark.silence where executor_id like 'daemon/%' order by 1`, "daemon/pod-2", "daemon/pod-3")
}

// Two checks at once tell once. The second does not wait for the first, who may look at his result for hours.
func TestStaleCheckTwoAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b := open(t, db, "a"), open(t, db, "b")
	a.register("x")
	a.silentFor("x", 40)
	a.begin()
	a.check("x silent warning told")
	b.check()
	a.rollback()
	b.check("x silent warning told") // what was taken back was not told
	a.begin()
	a.check("x silent warning")
	b.check()
	a.commit()

	// Behind a claim, whose lock on the heartbeat's row lasts for a pass.
	b.begin()
	b.exec(`select * from tidemark.heartbeat where executor_id = 'x' for update`)
	a.check("x silent warning")
	b.rollback()

	// And the other way round: who looks at a result holds up no worker.
	db = tidemarktest.NewDB(t)
	w, c := live(t, db), open(t, db, "check")
	w.pass()
	w.silentFor("default/outbox/0", 3600)
	c.begin()
	c.check("default/outbox/0 silent critical told")
	if got := w.pass(); got.Status != "ran" {
		t.Errorf("got %+v", got)
	}
	c.rollback()
}

// Many at the same moment: the second sees what the first has committed.
func TestStaleCheckRaces(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "setup")
	for n := range 10 {
		s.register(fmt.Sprint(n))
		s.silentFor(fmt.Sprint(n), 40)
	}
	var all []func() (int, error)
	for n := range 6 {
		all = append(all, later[int](open(t, db, fmt.Sprint("check", n)), `select count(event_id) from tidemark.stale_check()`))
	}
	told := 0
	for _, result := range all {
		n, err := result()
		if err != nil {
			t.Error(err)
		}
		told += n
	}
	if told != 10 {
		t.Errorf("%d events were told, want 10", told)
	}
	s.wantRows(`select count(*) || ' ' || count(distinct subject_ref) from tidemark.outbox`, "10 10")
	s.wantRows(`select count(*) || ' ' || sum(count) from tidemark.finding`, "10 10")
}

func TestStaleCheckRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	for _, level := range []string{"repeatable read", "serializable"} {
		s.exec("begin isolation level " + level)
		s.refused("TM006", "READ COMMITTED", `select tidemark.stale_check()`)
		s.rollback()
	}
}

// Register before emit: a type that is off, or gone, emits nothing; one that refuses the payload neither. The
// finding is there all the same.
func TestSilenceWithoutEvent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"disabled": `select tidemark.type_set('system', 'queue_worker_silent', '{"enabled": false}')`,
		"gone":     `delete from tidemark.event_type where type = 'queue_worker_silent'`,
		"refuses":  `select tidemark.type_set('system', 'queue_worker_silent', '{"schema": {"required": ["colour"]}}')`,
		"forbids":  `insert into tidemark.forbidden_key values ('age_seconds')`,
	} {
		s := open(t, tidemarktest.NewDB(t), name)
		s.register("x")
		s.silentFor("x", 40)
		s.exec(change)
		s.check("x silent warning")
		s.wantRows(silentEvents)
		s.wantRows(openFindings, "heartbeat_silent x warning 1")
	}
}

// LI3: no time that another host's clock told can enter, since nothing takes one.
func TestOnlyTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select p.proname::text from ` + ours + ` and (p.proname like 'heartbeat%' or p.proname = 'stale_check')
		and (p.proargtypes::oid[] && '{timestamptz,timestamp,date,time,timetz}'::regtype[]::oid[])`)
	// Time zones of sessions neither.
	s.register("x")
	for _, zone := range []string{"Pacific/Kiritimati", "Etc/GMT+12"} {
		s.exec(`set timezone = '` + zone + `'`)
		s.exec(`select tidemark.heartbeat_write('x')`)
		s.check()
	}
}
