package main

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// lettersOf gives a database dead letters of a function that takes events from now on.
func lettersOf(t *testing.T, n int) *tidemarktest.DB {
	t.Helper()
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `create table mended (yes boolean);
create table got (n int);
create function public.take(e jsonb) returns void language plpgsql as $$
begin
    if not exists (select from mended) then
        raise exception 'not yet';
    end if;
    perform pg_sleep(0.002);
    insert into got (n) values ((e -> 'payload' ->> 'n')::int);
end $$`); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select tidemark.type_set('test', 'tick')::text`,
		`select tidemark.stage_set('live', 'a test')::text`,
		`select tidemark.gate_set('routes.enabled', true)::text || tidemark.gate_set('worker.default.enabled', true)::text`,
		`select tidemark.route_set('inside', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')::text`,
	} {
		answer(t, db, sql)
	}
	answer(t, db, `select count(tidemark.emit('test', 'tick', jsonb_build_object('n', n)))::text from generate_series(1, $1::int) n`, n)
	answer(t, db, `select tidemark.worker_run()::text`)
	answer(t, db, `insert into mended values (true) returning ''`)
	return db
}

// A daemon comes back for a job with a rate when its next part is due, and no sooner.
func TestDaemonKeepsTheRateOfALetterJob(t *testing.T) {
	t.Parallel()
	db := lettersOf(t, 40)
	if text, err := program(t, db.URL, "dead-letter", "job", "replay", "--route", "inside", "--rate", "10/s", "--reason", "mended").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	d := startDaemonTo(t, db.URL, "d", &lines{})
	eventually(t, "the job to end", func() bool { return answer(t, db, `select state from tidemark.letter_job_summary`) == "finished" })
	kill(t, d)
	// Four parts, and a last one that finds no more.
	var seconds float64
	if err := db.Pool.QueryRow(t.Context(), `select extract(epoch from j.finished_at - min(a.decided_at))::double precision
		from tidemark.letter_job j, tidemark.route_attempt a where a.outcome = 'sent' group by j.finished_at`).Scan(&seconds); err != nil || seconds < 3 || seconds > 15 {
		t.Errorf("40 letters at 10 a second took %v s, %v", seconds, err)
	}
}

// Daemons are killed in the middle of a job of dead letters, and the next one goes on: each letter has its effect once.
func TestLetterJobOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	db := lettersOf(t, 1500)
	if text, err := program(t, db.URL, "dead-letter", "job", "replay", "--route", "inside", "--reason", "mended").CombinedOutput(); err != nil || string(text) != "job 1: a daemon is to replay 1500 dead letters; tidemark dead-letter job list shows how far it is\n" {
		t.Fatalf("%v: %s", err, text)
	}
	for _, until := range []string{"100", "700", "1500"} {
		d := startDaemonTo(t, db.URL, "d", &lines{})
		eventually(t, "the job to get to "+until, func() bool {
			return answer(t, db, `select (done >= $1::int)::text from tidemark.letter_job`, until) == "true"
		})
		if until == "1500" {
			eventually(t, "the job to end", func() bool { return answer(t, db, `select state from tidemark.letter_job_summary`) == "finished" })
		}
		kill(t, d)
	}
	if got := answer(t, db, `select concat_ws(' ', state, done, outcomes) from tidemark.letter_job_summary`); got != `finished 1500 {"sent": 1500}` {
		t.Error(got)
	}
	if got := answer(t, db, `select concat_ws(' ', count(*), count(distinct n)) from got`); got != "1500 1500" {
		t.Errorf("effects and different ones: %s", got)
	}
}
