package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// register makes an executor that beats every 10 s and is silent after 30.
func (s session) register(executor string) {
	s.t.Helper()
	s.exec(`select tidemark.heartbeat_register($1, 'Agent', cadence => '10 seconds', threshold => '30 seconds')`, executor)
}

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

// LI1, LI2.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "beats")
	s.exec(`select tidemark.domain_set('shop')`)
	s.wantRows(`select concat_ws(' ', executor_id, kind, domain_scope, expected_cadence_seconds, stale_threshold_seconds, last_status, ticks_total, registered_by)
		from tidemark.heartbeat_register('mailer', 'Hermes', '{shop}', '20 seconds', reason => 'new')`, "mailer Hermes {shop} 20 60 registered 0 postgres")
	s.exec(`select tidemark.heartbeat_write('mailer')`)
	s.exec(`select tidemark.heartbeat_write('mailer', 'running', '{"batch": 7}')`)
	row := `select concat_ws(' ', kind, expected_cadence_seconds, stale_threshold_seconds, last_status, ticks_total, payload, state) from tidemark.heartbeat_health where executor_id = 'mailer'`
	s.wantRows(row, `Hermes 20 60 running 2 {"batch": 7} alive`)

	// Kinds are open data; to register again changes what was registered, and not the beats.
	s.exec(`insert into tidemark.heartbeat_kind values ('Cron')`)
	s.exec(`select tidemark.heartbeat_register('mailer', 'Cron', cadence => '1 minute', threshold => '1 minute')`)
	s.wantRows(row, `Cron 60 60 running 2 {} alive`)
	s.exec(`select tidemark.heartbeat_register('mailer')`)
	s.wantRows(row, `Cron 60 180 running 2 {} alive`)
	s.wantRows(`select concat_ws(' ', kind, expected_cadence_seconds, stale_threshold_seconds) from tidemark.heartbeat_register('default/outbox/0', cadence => '10 seconds')`, "PG_worker 10 30")
	s.wantRows(`select executor_id from tidemark.heartbeat_deregister('mailer', 'moved away')`, "mailer")
	s.wantRows(`select concat_ws(' ', action, object, actor, reason, before is null, after is null) from tidemark.audit where action like 'heartbeat%' order by id`,
		"heartbeat_register heartbeat mailer postgres new t f", "heartbeat_register heartbeat mailer postgres f f",
		"heartbeat_register heartbeat mailer postgres f f", "heartbeat_register heartbeat default/outbox/0 postgres f f",
		"heartbeat_deregister heartbeat mailer postgres moved away f t")
}

// EV5 in heartbeats, LI2.
func TestHeartbeatBadInput(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "beats")
	s.register("x")
	s.exec(`select tidemark.heartbeat_write('x', 'fine', '{"n": 1}')`)
	register := `select tidemark.heartbeat_register(`
	for _, bad := range []struct{ code, text, sql string }{
		{"TM004", `there is no executor "y"`, `select tidemark.heartbeat_write('y')`},
		{"TM004", "heartbeat_register('y')", `select tidemark.heartbeat_write('y')`},
		{"TM004", `there is no executor ""`, `select tidemark.heartbeat_write('')`},
		{"TM004", "there is no executor", `select tidemark.heartbeat_write(null)`},
		{"TM003", `forbidden key "secret"`, `select tidemark.heartbeat_write('x', 'ok', '{"secret": 1}')`},
		{"TM003", `forbidden key "personal_data"`, `select tidemark.heartbeat_write('x', 'ok', '{"a": [{"b": {"Personal-Data": 1}}]}')`},
		{"TM003", `forbidden key "token"`, `select tidemark.heartbeat_write('x', 'ok', '{"a": "{\"TOKEN\": 1}"}')`},
		{"TM003", `forbidden key "raw"`, register + `'z', payload => '{"a": {"raw": 1}}')`},
		{"TM002", "payload is array, not an object", `select tidemark.heartbeat_write('x', 'ok', '[]')`},
		{"TM002", "payload is null, not an object", `select tidemark.heartbeat_write('x', 'ok', null)`},
		{"TM005", "may have 8192", `select tidemark.heartbeat_write('x', 'ok', jsonb_build_object('a', repeat('x', 9000)))`},
		{"TM005", "status has 0 characters", `select tidemark.heartbeat_write('x', '')`},
		{"TM005", "status has 0 characters", `select tidemark.heartbeat_write('x', null)`},
		{"TM005", "status has 201 characters", `select tidemark.heartbeat_write('x', repeat('x', 201))`},
		{"TM005", "is the cursor of a worker", `select tidemark.heartbeat_write('default/outbox/0')`},
		{"TM005", "cadence is 00:00:00", register + `'z', cadence => '0')`},
		{"TM005", "cadence is -00:00:10", register + `'z', cadence => '-10 seconds')`},
		{"TM005", "cadence is 00:00:00.5", register + `'z', cadence => '0.5 seconds')`},
		{"TM005", "cadence is null", register + `'z', cadence => null)`},
		{"TM005", "at least the cadence of 60 s", register + `'z', threshold => '59 seconds')`},
		{"TM005", "threshold is 00:01:00.5", register + `'z', threshold => '60.5 seconds')`},
		{"TM005", "threshold is 100 years", register + `'z', threshold => '100 years')`},
		{"TM004", `no kind of executor "Robot"`, register + `'z', 'Robot')`},
		{"TM004", "no kind of executor", register + `'z', '')`},
		{"TM004", `there is no domain "nowhere"`, register + `'z', domain_scope => '{nowhere}')`},
		{"TM005", "executor_id is null", register + `null)`},
		{"TM005", "without white space", register + `'a b')`},
		{"TM005", "1 to 200 characters", register + `repeat('x', 201))`},
		{"TM004", `there is no executor "y"`, `select tidemark.heartbeat_deregister('y')`},
		{"TM005", "tidemark worker pause NAME", `select tidemark.heartbeat_deregister('default/outbox/0')`},
		{"TM005", "a daemon cannot be named", `select tidemark.heartbeat_daemon('')`},
		{"TM003", `forbidden key "password"`, `select tidemark.heartbeat_daemon('a', 'running', '{"password": 1}')`},
		{"TM005", "daemon a: status", `select tidemark.heartbeat_daemon('a', '')`},
	} {
		s.refused(bad.code, bad.text, bad.sql)
	}
	s.wantRows(`select concat_ws(' ', executor_id, last_status, payload) from tidemark.heartbeat where executor_id <> 'default/outbox/0'`, `x fine {"n": 1}`)
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
	s.wantRows(`select regexp_replace(detail, '00:5[12]:[0-9]+', 'a while') from tidemark.finding where subject = 'b'`, `silent for a while, a beat is expected every 1000 s; its last words were "busy"`)

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

// A worker is waited for once it has run, unless it is switched off; one that somebody registered, at once.
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
		`daemon/a PG_worker 10 30 1 running {"version": "1"}`)
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
	// Nobody else is excused by that word.
	s.register("b")
	s.exec(`select tidemark.heartbeat_write('b', 'stopped')`)
	s.silentFor("b", 3600)
	s.check("b silent critical told")
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

// Many at the same moment: whoever comes second sees what the first has committed.
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

// LI6.
func TestFindingEvents(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	events := `select concat_ws(' ', o.type, o.severity, o.subject_ref, o.payload ->> 'kind', o.payload ->> 'subject', o.payload ->> 'detail', o.payload ->> 'count')
		from tidemark.outbox o where o.domain = 'system' order by o.seq`
	seen := func(detail string) {
		s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', $1)`, detail)
	}
	closed := `select tidemark.finding_close('cursor_holes', 'default')`
	seen("not registered")
	s.exec(closed)
	s.wantRows(events)

	s.exec(`select tidemark.type_set('system', 'finding_opened', '{"enabled": true}'), tidemark.type_set('system', 'finding_closed', '{"enabled": true}')`)
	seen("held by pid 7")
	seen("held by pid 8")
	s.exec(closed)
	s.exec(closed)
	s.wantRows(events, "finding_opened high 2 cursor_holes default held by pid 7 1", "finding_closed high 2 cursor_holes default held by pid 8 2")

	// One that maintain closes, and one that nothing can be said of.
	s.exec(`select tidemark.finding_open('cursor_dlq', 'default', 'warning', 'x')`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(events+` offset 2`, "finding_opened warning 4 cursor_dlq default x 1", "finding_closed warning 4 cursor_dlq default x 1")
	s.exec(`select tidemark.type_set('system', 'finding_opened', '{"schema": {"required": ["colour"]}}')`)
	seen("again")
	s.wantRows(openFindings, "cursor_holes default high 1")
	s.wantRows(events + ` offset 4`)
}

func TestFindingAck(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'x')`)
	s.wantRows(`select concat_ws(' ', kind, acked_by, ack_note, acked_at is null, closed_at is null) from tidemark.finding_ack(1, 'ada looks')`,
		"cursor_holes postgres ada looks f t")
	s.wantRows(`select concat_ws(' ', actor, object, reason, before ->> 'ack_note', after ->> 'ack_note') from tidemark.audit where action = 'finding_ack'`,
		"postgres finding 1 ada looks ada looks")
	s.refused("TM005", "a note is missing", `select tidemark.finding_ack(1, ' ')`)
	s.refused("TM005", "a note is missing", `select tidemark.finding_ack(1, null)`)
	s.refused("TM004", "there is no finding 2", `select tidemark.finding_ack(2, 'x')`)
	// Seen again it stays acknowledged; another one is another one.
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'y')`)
	s.wantRows(`select ack_note from tidemark.finding where closed_at is null`, "ada looks")
	s.exec(`select tidemark.finding_close('cursor_holes', 'default')`)
	s.refused("TM005", "finding 1 is closed since", `select tidemark.finding_ack(1, 'x')`)
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'z')`)
	s.wantRows(`select coalesce(ack_note, 'none') from tidemark.finding where closed_at is null`, "none")
}

func TestFindingRetention(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	for n := range 3 {
		s.exec(`select tidemark.finding_open('cursor_holes', $1, 'high', 'x')`, fmt.Sprint(n))
	}
	s.exec(`update tidemark.finding set opened_at = opened_at - interval '1 year', last_seen_at = last_seen_at - interval '1 year'`)
	s.exec(`select tidemark.finding_close('cursor_holes', '0'), tidemark.finding_close('cursor_holes', '1')`)
	s.exec(`update tidemark.finding set closed_at = closed_at - interval '91 days' where subject = '0'`)
	s.wantMaintain("forgot finding 1 closed findings past the setting finding.retention")
	s.set("finding.retention", "1 hour")
	s.exec(`update tidemark.finding set closed_at = closed_at - interval '2 hours' where subject = '1'`)
	s.wantMaintain("forgot finding 1 closed findings past the setting finding.retention")
	s.wantRows(`select subject from tidemark.finding`, "2")
	s.set("finding.retention", "nonsense") // the default holds
	s.exec(`select tidemark.finding_close('cursor_holes', '2')`)
	s.wantMaintain()
}

// LI6: a cursor that falls behind.
func TestLagFinding(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.pass()
	w.emit(1)
	old := func(minutes int) {
		w.exec(`set session_replication_role = replica`) // the log is append-only
		w.exec(`update tidemark.outbox set created_at = clock_timestamp() - make_interval(mins => $1)`, minutes)
		w.exec(`set session_replication_role = origin`)
	}
	w.wantMaintain()
	w.wantRows(openFindings)
	old(2)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 warning 1")
	old(16)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 high 2")
	w.wantRows(`select concat_ws(' ', status, count, age_seconds / 60) from tidemark.queue_health where kind = 'backlog'`, "bad 1 16")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.wantMaintain()
	w.wantRows(openFindings)
	w.wantRows(`select concat_ws(' ', status, note) from tidemark.queue_health where kind = 'backlog'`, "ok closed by routes.enabled")
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 high 1")
	w.pass()
	w.wantMaintain()
	w.wantRows(openFindings)
}

// LI5.
func TestQueueHealth(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	row := `select concat_ws(' ', kind, name, status, count, note) from tidemark.queue_health where kind in (%s)`
	pane := func(kinds string, want ...string) { w.t.Helper(); w.wantRows(fmt.Sprintf(row, kinds), want...) }
	all := `'cursor', 'backlog', 'dead_letter_event', 'pending', 'job_backlog', 'dead_letter_job', 'finding'`
	pane(all, "cursor default/outbox/0 warn 0 never run", "backlog default/outbox/0 ok 0 ")
	w.pass()
	w.emit(1)
	pane(all, "cursor default/outbox/0 ok 0 ", "backlog default/outbox/0 ok 1 ")

	// Dead letters, what is pending, findings.
	w.exec(`select tidemark.route_set('dead', '{"domain": "test", "target_kind": "sql", "target_ref": "public.gone", "enabled": true, "dry_run": false}'),
		tidemark.route_set('out', '{"domain": "test", "target_kind": "webhook", "target_ref": "http://x", "enabled": true, "dry_run": false}')`)
	w.pass()
	pane(all, "cursor default/outbox/0 ok 0 ", "backlog default/outbox/0 ok 0 ", "dead_letter_event dead warn 1 ", "pending out ok 1 ",
		"finding cursor_dlq default warn 1 1 more dead-lettered; see tidemark.dead_letter")
	for minutes, status := range map[int]string{2: "warn", 16: "bad"} {
		w.exec(`update tidemark.pending set next_attempt_at = clock_timestamp() - make_interval(mins => $1)`, minutes)
		pane(`'pending'`, "pending out "+status+" 1 ")
	}
	w.wantRows(`select concat_ws(' ', route_code, state, sent, retried, dead, pending, retrying, open_dead_letters) from tidemark.route_summary order by 1`,
		"app live 1 0 0 0 0 0", "dead live 0 0 1 0 0 1", "out live 0 0 0 1 0 0")
	w.wantRows(`select concat_ws(' ', worker, status, events, seconds, holes, pending, open_dead_letters) from tidemark.worker_summary`, "default idle 0 0 0 1 1")
	w.exec(`select tidemark.worker_finding('default', 'target_down', 'out', 'x'), tidemark.worker_finding('default', 'route_misconfigured', 'dead', 'x')`)
	w.wantRows(`select concat_ws(' ', route_code, breaker) from tidemark.route_summary order by 1`, "app", "dead misconfigured", "out open")

	// A source that is not the log has an id of any kind.
	w.exec(`insert into tidemark.worker_cursor (worker, source, watermark_id, watermark_ts, last_run_at)
		values ('default', 'orders', 'b5f7-not-a-number', clock_timestamp() - interval '5 minutes', clock_timestamp()), ('default', 'fresh', 'x', null, clock_timestamp())`)
	w.wantRows(`select concat_ws(' ', name, status, age_seconds / 60, count, note) from tidemark.queue_health where kind = 'backlog' and name <> 'default/outbox/0' order by 1`,
		"default/fresh/0 ok at the beginning", "default/orders/0 warn 5 ")

	// The rate is that of the last minutes.
	w.exec(`select tidemark.maintain()`)
	w.exec(`update tidemark.cursor_sample set older_at = clock_timestamp() - interval '100 seconds'`)
	w.exec(`update tidemark.worker_cursor set events_seen = events_seen + 2000 where source = 'outbox'`)
	w.wantRows(`select round(rate)::text from tidemark.worker_summary where source = 'outbox'`, "20")
	// Called again at once, as several daemons do, it counts from then all the same; later it moves on.
	kept := `select round(extract(epoch from clock_timestamp() - older_at), -1)::text from tidemark.cursor_sample where source = 'outbox'`
	w.exec(`select tidemark.maintain()`)
	w.wantRows(kept, "100")
	w.exec(`update tidemark.cursor_sample set newer_at = clock_timestamp() - interval '60 seconds'`)
	w.exec(`select tidemark.maintain()`)
	w.wantRows(kept, "60")
}

// River's table is somebody else's: it may be missing, elsewhere, or not for us to read.
func TestQueueHealthOfRiver(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "river")
	jobs := `select concat_ws(' ', kind, name, status, count, note) from tidemark.queue_health where kind like '%job%' order by 1`
	s.wantRows(jobs)
	s.exec(`create table river_job (state text, scheduled_at timestamptz default clock_timestamp(), finalized_at timestamptz);
		insert into river_job (state) values ('available'), ('available'), ('retryable'), ('completed')`)
	s.wantRows(jobs, "job_backlog public.river_job ok 3 ")
	s.exec(`update river_job set scheduled_at = scheduled_at - interval '20 minutes'; insert into river_job values ('discarded', clock_timestamp(), clock_timestamp())`)
	s.wantRows(jobs, "dead_letter_job public.river_job warn 1 ", "job_backlog public.river_job bad 3 ")
	s.exec(`create schema jobs; create table jobs.river_job (like river_job); select tidemark.route_set('j', '{"domain": "test", "target_kind": "river", "target_ref": "mail", "options": {"schema": "jobs"}}')`)
	s.wantRows(jobs+` desc, 1 offset 1`, "job_backlog jobs.river_job ok 0 ", "dead_letter_job public.river_job warn 1 ")
	s.exec(`set role tidemark_reader`)
	s.wantRows(jobs, "job_backlog jobs.river_job unknown this role may not read the table", "job_backlog public.river_job unknown this role may not read the table")
}

// LI5: the pane costs the same when the tables have grown.
func TestQueueHealthReadsNoGrowingTable(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.emit('test', 'tick', '{}') from generate_series(1, 20000)`)
	w.pass()
	w.exec(`insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome) select n, 1, 1, 2, 'sent' from generate_series(1, 20000) n`)
	w.exec(`insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, seqs)
		select 1, 1, 100000 + n, n, 1, 'sent', int8multirange(int8range(n, n + 1)) from generate_series(1, 20000) n`)
	w.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code, resolved_at, resolution, resolved_by)
		select n, 1, 1, n, gen_random_uuid(), '{}', 'x', now(), 'sent', 'x' from generate_series(1, 20000) n`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at) select 1, 1, n, 'infinity' from generate_series(1, 20000) n`)
	w.exec(`analyze`)
	for _, view := range []string{"queue_health", "worker_summary", "route_summary", "heartbeat_health"} {
		plan := strings.Join(column[string](w, `explain (analyze, timing off, costs off) select * from tidemark.`+view), "\n")
		for line := range strings.Lines(plan) {
			var rows, loops int
			at := strings.Index(line, "rows=")
			if at < 0 {
				continue
			}
			var exact float64
			_, _ = fmt.Sscanf(line[at:], "rows=%g loops=%d", &exact, &loops)
			rows = int(exact)
			if rows*loops > 10000 {
				t.Errorf("%s reads %d rows: %s\n%s", view, rows*loops, line, plan)
			}
		}
		for line := range strings.Lines(plan) {
			var removed int
			if _, err := fmt.Sscanf(strings.TrimSpace(line), "Rows Removed by Filter: %d", &removed); err == nil && removed > 1000 {
				t.Errorf("%s: %s\n%s", view, line, plan)
			}
		}
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
