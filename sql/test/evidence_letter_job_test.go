package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const letterJobs = `select concat_ws(' ', id, action, state, waits_for, done || '/' || letters, outcomes) from tidemark.letter_job_summary order by id`

// manyLetters has 250 dead letters of the route app, with the errors P0001 (200) and P0002 (50).
func manyLetters(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := poisoned(t, db)
	w.exec(`insert into poison select n, case when n <= 200 then 'P0001' else 'P0002' end from generate_series(1, 250) n`)
	w.emitMany(250)
	w.pass()
	w.wantRows(`select count(*)::text from tidemark.dead_letter where resolved_at is null`, "250")
	return w
}

// A job does its letters part by part, each in a transaction of its own; what fails again stays open and is not tried twice.
func TestLetterJobReplays(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`truncate received; alter sequence calls restart`)
	w.exec(`delete from poison where n not in (7, 150)`)
	w.wantRows(`select concat_ws(' ', id, letters) from tidemark.letter_job_add('replay', route => 'app', dry_run => true)`, "250")
	w.exec(`select tidemark.route_set('idle', '{"domain": "none", "target_kind": "sql", "target_ref": "public.receive"}')`)
	w.wantRows(`select concat_ws(' ', id, letters) from tidemark.letter_job_add('replay', route => 'idle', dry_run => true)`, "0")
	w.wantRows(letterJobs)
	w.wantRows(`select concat_ws(' ', id, letters) from tidemark.letter_job_add('replay', 'mended', 'app', error_code => 'P0001')`, "1 200")
	w.exec(`insert into poison values (251, 'P0001')`)
	w.emit(251) // it fails after the job was asked for
	w.pass()
	w.wantRows(letterJobs, "1 replay waiting no daemon runs 0/200 {}")
	for _, want := range []string{
		`1 replay waiting no daemon runs 100/200 {"sent": 99, "failed": 1}`, `1 replay waiting no daemon runs 200/200 {"sent": 198, "failed": 2}`,
		`1 replay finished 200/200 {"sent": 198, "failed": 2}`,
	} {
		w.exec(`select tidemark.letter_job_step()`)
		w.wantRows(letterJobs, want)
	}
	w.wantRows(`select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`, "nothing is due")
	w.wantRows(`select concat_ws(' ', error_code, count(*)) from tidemark.dead_letter where resolved_at is null group by error_code order by 1`, "P0001 3", "P0002 50")
	w.wantRows(`select count(*)::text from received`, "198")
	w.wantRows(`select concat_ws(' ', object, reason, after ->> 'route', after ->> 'letters') from tidemark.audit where action = 'letter_job_replay'`, "letter_job 1 mended app 200")
}

// A discard takes all of a group but those whose replay is under way, in the name of the role that asked for it.
func TestLetterJobDiscards(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`select tidemark.dead_letter_replay(1)`) // it waits for the worker
	w.exec(`select tidemark.letter_job_add('discard', 'not wanted', source => 'outbox', error_code => 'P0001')`)
	for range 3 {
		w.exec(`select tidemark.letter_job_step()`)
	}
	w.wantRows(letterJobs, `1 discard finished 199/200 {"discarded": 199}`)
	w.wantRows(`select concat_ws(' ', error_code, resolution, resolved_by = session_user, resolution_reason, count(*)) from tidemark.dead_letter
		group by error_code, resolution, resolved_by, resolution_reason order by 1`, "P0001 1", "P0001 discarded t not wanted 199", "P0002 50")
}

// Of a target outside the database at most 1,000 letters wait for the worker at a time.
func TestLetterJobWaitsForTheWorker(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay) select 1, 1, 1000 + n, 1, true from generate_series(1, 1000) n`)
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app')`)
	const step = `select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`
	w.wantRows(step, "nothing is due")
	w.exec(`delete from tidemark.pending where seq = 2000`)
	w.wantRows(step, "100")
	w.wantRows(step, "nothing is due")
	w.wantRows(letterJobs, `1 replay waiting no daemon runs 100/250 {"pending": 100}`)
}

// So it is where the job names no route: a cancel stops what is left. It does not wait for a route that does not deliver, or has no such letters.
func TestLetterJobOfASourceWaitsForTheWorker(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`select tidemark.route_set('other', '{"domain": "none", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	const (
		full = `insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay) select 1, r.id, 1000 + n, 1, true
			from tidemark.outbound_route r, generate_series(1, 1000) n where r.route_code = $1`
		step = `select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`
	)
	w.exec(full, "other")
	w.exec(full, "app")
	w.exec(`select tidemark.letter_job_add('replay', 'fixed', source => 'outbox')`)
	w.wantRows(step, "nothing is due")
	w.exec(`delete from tidemark.pending where seq = 2000`)
	w.wantRows(step, "100")
	w.wantRows(step, "nothing is due")
	w.exec(`select tidemark.route_pause('app', 'why')`)
	w.wantRows(step, "100") // left out, as paused
	w.wantRows(letterJobs, `1 replay waiting no daemon runs 200/250 {"paused": 100, "pending": 100}`)
	w.exec(`select tidemark.letter_job_cancel(1, 'enough'), tidemark.route_resume('app', 'why')`)

	// Nor for one whose letters have another code, or wait for the worker already.
	w.exec(`update tidemark.dead_letter set route_id = (select id from tidemark.outbound_route where route_code = 'other') where error_code = 'P0002'`)
	w.exec(`update tidemark.outbound_route set enabled = true, dry_run = false`)
	w.exec(`delete from tidemark.pending where dead_letter_id is null`)
	w.exec(full, "other")
	w.exec(`select tidemark.letter_job_add('replay', 'fixed', source => 'outbox', error_code => 'P0001')`)
	w.wantRows(step, "100")
	w.wantRows(step, "0")
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay, dead_letter_id)
		select 1, l.route_id, 10000 + l.id, 1, true, l.id from tidemark.dead_letter l where l.error_code = 'P0002' and l.seq <> 250`)
	w.exec(`select tidemark.letter_job_add('replay', 'fixed', source => 'outbox')`)
	w.wantRows(step, "nothing is due") // one is left
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay, dead_letter_id)
		select 1, l.route_id, 10000 + l.id, 1, true, l.id from tidemark.dead_letter l where l.seq = 250`)
	w.wantRows(step, "0")
}

// What stops a part is on record; the part is tried again after 10 seconds. Two sessions never do one job at once.
func TestLetterJobStops(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, other := manyLetters(t, db), open(t, db, "other")
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app')`)
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.exec(`select tidemark.letter_job_step()`)
	w.wantRows(letterJobs, "1 replay waiting dead letter 1 is not replayed: closed by routes.enabled 0/250 {}")
	w.begin()
	w.exec(`update tidemark.outbound_route set enabled = false where route_code = 'app'`)
	w.exec(`update tidemark.dead_letter set resolved_at = now(), resolution = 'discarded', resolved_by = 'me', resolution_reason = 'why'`)
	w.refused("TM005", "route app cannot be deleted: job 1 of its dead letters is not over", `select tidemark.route_delete('app', 'why')`)
	w.rollback()
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.wantRows(`select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`, "nothing is due")
	w.exec(`update tidemark.letter_job set due_at = clock_timestamp()`)
	w.begin()
	w.wantRows(`select tidemark.letter_job_step()::text`, "100")
	other.wantRows(`select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`, "nothing is due")
	w.rollback() // the daemon is killed: nothing of the part is left
	w.wantRows(letterJobs, "1 replay waiting dead letter 1 is not replayed: closed by routes.enabled 0/250 {}")
	w.wantRows(`select tidemark.letter_job_step()::text`, "100")
	w.exec(`select tidemark.letter_job_cancel(1, 'enough')`)
	w.wantRows(`select coalesce(tidemark.letter_job_step(1)::text, 'nothing is due')`, "nothing is due")
	w.wantRows(letterJobs, `1 replay cancelled 100/250 {"failed": 100}`)
	w.refused("TM013", "job 1 is over since", `select tidemark.letter_job_cancel(1, 'again')`)
	w.refused("TM004", "there is no job 9", `select tidemark.letter_job_cancel(9, 'again')`)
	w.refused("TM005", "cancelling a job needs a reason", `select tidemark.letter_job_cancel(1, '')`)
}

// A job that gets nowhere is a cause, with what mends it; one whose worker is at its letters is none.
func TestLetterJobThatWaitsIsACause(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	const (
		causes = `select concat_ws(' ', status, subject, waiting, split_part(found, '; ', 2)) from tidemark.cause where cause = 'letter_job_waiting'`
		cli    = `select cli[1] from tidemark.cause where cause = 'letter_job_waiting'`
	)
	older := func() {
		t.Helper()
		w.exec(`update tidemark.letter_job set waits_since = waits_since - interval '6 minutes', due_at = due_at - interval '6 minutes'`)
	}
	beats := func() { t.Helper(); w.exec(`select tidemark.heartbeat_daemon('d')`) }
	beats()
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app', error_code => 'P0001')`)
	w.wantRows(causes)

	// A closed gate: it is tried, and each try stops at it.
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.exec(`select tidemark.letter_job_step()`)
	w.wantRows(causes)
	older()
	w.exec(`select tidemark.letter_job_step()`)
	w.exec(`set role tidemark_reader`)
	w.wantRows(causes, "warn 1 200 dead letter 1 is not replayed: closed by routes.enabled")
	w.wantRows(cli, "tidemark gate open routes.enabled --reason 'a job waits'")
	w.exec(`reset role; select tidemark.gate_set('routes.enabled', true); update tidemark.letter_job set due_at = clock_timestamp()`)
	w.wantRows(`select tidemark.letter_job_step()::text`, "100")
	w.wantRows(causes)

	// Nothing takes it up.
	older()
	w.wantRows(causes, "warn 1 100 no daemon takes it up")
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/d'`)
	w.wantRows(causes) // daemon_dead tells it
	w.exec(`select tidemark.heartbeat_daemon('d', 'stopped')`)
	w.wantRows(causes, "warn 1 100 no daemon runs")
	w.wantRows(cli, "tidemark run")
	beats()

	// A thousand wait for the worker.
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay) select 1, 1, 1000 + n, 1, true from generate_series(1, 1000) n`)
	w.wantRows(causes)
	w.exec(`delete from tidemark.pending where seq = 2000`) // one has just been delivered
	w.wantRows(causes)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, replay) values (1, 1, 2000, 1, true)`)
	w.exec(`select tidemark.route_pause('app', 'why')`)
	w.wantRows(causes, "warn 1 100 the 1000 that it tried again before wait: closed by route app")
	w.wantRows(cli, "tidemark route resume app --reason 'a job waits'")
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.exec(`update tidemark.outbound_route set paused_at = null`)
	w.wantRows(causes, "warn 1 100 the 1000 that it tried again before wait: the route is off")

	// Of a job that names no route, the route is named. One that is off keeps it waiting no more.
	w.exec(`select tidemark.route_set('app', '{"enabled": true}'), tidemark.gate_set('routes.enabled', false)`)
	w.exec(`update tidemark.letter_job set route_id = null, source = 'outbox'`)
	w.wantRows(causes, "warn 1 100 the 1000 of route app that it tried again before wait: closed by routes.enabled")
	w.wantRows(cli, "tidemark gate open routes.enabled --reason 'a job waits'")

	// Of a route of all domains what waits can be of closed ones.
	w.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('domain.test.enabled', false)`)
	w.exec(`update tidemark.outbound_route set domain = '*'; update tidemark.pending set domain = 'test'`)
	w.exec(`set role tidemark_reader`)
	w.wantRows(causes, "warn 1 100 the 1000 of route app that it tried again before wait: closed by domain.test.enabled")
	w.wantRows(cli, "tidemark gate open domain.test.enabled --reason 'a job waits'")
	w.exec(`reset role; update tidemark.pending set domain = 'none' where seq = 2000`)
	w.wantRows(causes) // the worker is at that one
}

// A job with a rate does the letters of a second at a time, and is not due again before that second is over.
func TestLetterJobKeepsItsRate(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`delete from poison`)
	const step = `select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`
	const dueIn = `select round(extract(epoch from due_at - clock_timestamp()), 0)::text from tidemark.letter_job order by id desc limit 1`
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app', error_code => 'P0001', rate => 40)`)
	w.wantRows(step, "40")
	w.wantRows(dueIn, "1")
	w.wantRows(step, "nothing is due")
	w.exec(`update tidemark.letter_job set due_at = clock_timestamp()`) // a second later
	w.wantRows(step, "40")
	w.wantRows(`select concat_ws(' ', rate, done || '/' || letters, outcomes) from tidemark.letter_job_summary`, `40 80/200 {"sent": 80}`)
	w.exec(`select tidemark.letter_job_cancel(1, 'enough')`)
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app', error_code => 'P0002', rate => 0.01)`)
	w.wantRows(step, "1")
	w.wantRows(dueIn, "100")
	w.wantRows(`select after ->> 'rate' from tidemark.audit where action = 'letter_job_replay' order by id`, "40", "0.01")
}

func TestLetterJobArguments(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.refused("TM005", `a job has no action "burn"`, `select tidemark.letter_job_add('burn', 'x', 'app')`)
	w.refused("TM005", "a job needs a route or a source", `select tidemark.letter_job_add('replay', 'x', error_code => 'P0001')`)
	w.refused("TM005", "a job needs a reason", `select tidemark.letter_job_add('replay', null, 'app')`)
	w.refused("TM005", "rate is 0 letters per second, and must be from 0.001 to 1000000", `select tidemark.letter_job_add('replay', 'x', 'app', rate => 0)`)
	w.refused("TM005", "a job that discards dead letters has no rate", `select tidemark.letter_job_add('discard', 'x', 'app', rate => 1)`)
	w.refused("TM005", "dead letters of commands are not replayed by a job", `select tidemark.letter_job_add('replay', 'x', source => 'commands')`)
	w.refused("TM004", `there is no route "nope"`, `select tidemark.letter_job_add('replay', 'x', 'nope')`)
	w.wantRows(`select concat_ws(' ', coalesce(id::text, 'none'), letters) from tidemark.letter_job_add('discard', 'x', 'app')`, "none 0")
}
