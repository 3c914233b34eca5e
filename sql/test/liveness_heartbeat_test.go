package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// register makes an executor that beats every 10 s and is silent after 30.
func (s session) register(executor string) {
	s.t.Helper()
	s.exec(`select tidemark.heartbeat_register($1, 'Agent', cadence => '10 seconds', threshold => '30 seconds')`, executor)
}

// LI1, LI2.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "beats")
	s.exec(`select tidemark.domain_set('shop')`)
	s.wantRows(`select concat_ws(' ', executor_id, kind, domain_scope, expected_cadence_seconds, stale_threshold_seconds, last_status, ticks_total, registered_by)
		from tidemark.heartbeat_register('mailer', 'Hermes', '{shop}', '20 seconds', reason => 'new')`, "mailer Hermes {shop} 20 60 registered 0 postgres")
	s.exec(`select tidemark.heartbeat_write('mailer')`)
	s.exec(`select tidemark.heartbeat_write('mailer', 'running', '{"batch": 7}')`)
	s.exec(`select tidemark.heartbeat_write('mailer', 'running', '{"batch": 7}', 'job-12')`)
	s.wantRows(`select current_job_id from tidemark.heartbeat_health where executor_id = 'mailer'`, "job-12")
	s.exec(`select tidemark.heartbeat_write('mailer', 'running', '{"batch": 7}')`) // it works on none
	s.wantRows(`select coalesce(current_job_id, 'none') from tidemark.heartbeat_health where executor_id = 'mailer'`, "none")
	row := `select concat_ws(' ', kind, expected_cadence_seconds, stale_threshold_seconds, last_status, ticks_total, payload, state) from tidemark.heartbeat_health where executor_id = 'mailer'`
	s.wantRows(row, `Hermes 20 60 running 4 {"batch": 7} alive`)

	// Kinds are open data; to register again changes what was registered, and not the beats.
	s.exec(`insert into tidemark.heartbeat_kind values ('Cron')`)
	s.exec(`select tidemark.heartbeat_register('mailer', 'Cron', cadence => '1 minute', threshold => '1 minute')`)
	s.wantRows(row, `Cron 60 60 running 4 {} alive`)
	s.exec(`select tidemark.heartbeat_register('mailer')`)
	s.wantRows(row, `Cron 60 180 running 4 {} alive`)
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
		{"TM005", "current_job_id is ''", `select tidemark.heartbeat_write('x', 'ok', '{}', '')`},
		{"TM005", "current_job_id is 'a b'", `select tidemark.heartbeat_write('x', 'ok', '{}', 'a b')`},
		{"TM005", "1 to 200 characters without white space", `select tidemark.heartbeat_write('x', 'ok', '{}', repeat('x', 201))`},
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
		{"TM005", "executor daemon/a: status", `select tidemark.heartbeat_daemon('a', '')`},
	} {
		s.refused(bad.code, bad.text, bad.sql)
	}
	s.wantRows(`select concat_ws(' ', executor_id, last_status, payload) from tidemark.heartbeat where executor_id not like '%/outbox/0'`, `x fine {"n": 1}`)
}
