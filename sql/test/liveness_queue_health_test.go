package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

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
		tidemark.route_set('out', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	w.pass()
	pane(all, "cursor default/outbox/0 ok 0 ", "backlog default/outbox/0 ok 0 ", "dead_letter_event dead warn 1 ", "pending out ok 1 ",
		"finding cursor_dlq default warn 1 1 more dead-lettered; see tidemark.dead_letter")
	domains := `select concat_ws(' ', kind, domain) from tidemark.queue_health where kind in ('dead_letter_event', 'pending') order by 1`
	w.wantRows(domains, "dead_letter_event test", "pending test")
	w.begin()
	w.exec(`select tidemark.route_set(r, '{"domain": "*"}') from unnest('{dead,out}'::text[]) r`)
	w.wantRows(domains, "dead_letter_event", "pending")
	w.rollback()
	for minutes, status := range map[int]string{2: "warn", 16: "bad"} {
		w.exec(`update tidemark.pending set next_attempt_at = clock_timestamp() - make_interval(mins => $1)`, minutes)
		pane(`'pending'`, "pending out "+status+" 1 ")
	}
	w.wantRows(`select concat_ws(' ', route_code, state, sent, retried, dead, pending, retrying, open_dead_letters) from tidemark.route_summary order by 1`,
		"app live 1 0 0 0 0 0", "dead live 0 0 1 0 0 1", "out live 0 0 0 1 0 0")
	w.wantRows(`select concat_ws(' ', worker, status, events, seconds, holes, pending, open_dead_letters) from tidemark.worker_summary`, "default idle 0 0 0 1 1")
	w.exec(`select tidemark.worker_finding('default', 'target_down', 'out', 'x'), tidemark.worker_finding('default', 'route_misconfigured', 'dead', 'x')`)
	w.wantRows(`select concat_ws(' ', route_code, breaker) from tidemark.route_summary order by 1`, "app", "dead misconfigured", "out open")

	// A source that is not the log has an id of any kind. Where there is no table to look at, it cannot be told.
	w.exec(`insert into tidemark.worker_cursor (worker, source, watermark_id, watermark_ts, last_run_at)
		values ('default', 'orders', 'b5f7-not-a-number', clock_timestamp() - interval '5 minutes', clock_timestamp())`)
	w.wantRows(`select concat_ws(' ', name, status, age_seconds / 60, count, note) from tidemark.queue_health where kind = 'backlog' and name <> 'default/outbox/0' order by 1`,
		"default/orders/0 unknown this role may not read the table, and no role that may read it has called maintain lately")

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

// River's table belongs to River: it may be missing, in another schema, or unreadable for this role.
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

	// What the cause says mends it, whatever the schema is called.
	s.exec(`reset role; create schema "My Jobs"; grant usage on schema "My Jobs" to tidemark_reader; create table "My Jobs".river_job (id int, kind text, errors text[], like river_job);
		insert into "My Jobs".river_job (state) values ('discarded');
		select tidemark.route_set('j', '{"options": {"schema": "My Jobs"}}')`)
	mend := func(cause string) {
		s.exec(`set role tidemark_reader`)
		sql := one[string](s, `select sql[1] from tidemark.cause where cause = $1 and subject = '"My Jobs".river_job'`, cause)
		s.exec(`reset role`)
		s.exec(sql)
	}
	mend("job_backlog")
	mend("dead_letter_job")
	s.exec(`set role tidemark_reader`)
	s.wantRows(jobs+` desc, 1 offset 1`, `job_backlog "My Jobs".river_job ok 0 `, `dead_letter_job "My Jobs".river_job warn 1 `)
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

// Who asks for some columns of the summary of routes, as that of workers does, pays for no others.
func TestRouteSummaryReadsWhatIsAsked(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "reader")
	for table, columns := range map[string]string{"route_minute": "pending, open_dead_letters", "dead_letter": "sent, pending"} {
		asked := `explain (costs off) select ` + columns + ` from tidemark.route_summary`
		reads := regexp.MustCompile(` on (?:tidemark\.)?` + table + `\b`)
		if plan := strings.Join(column[string](s, asked), "\n"); reads.MatchString(plan) {
			t.Errorf("%s reads %s:\n%s", asked, table, plan)
		}
		if plan := strings.Join(column[string](s, `explain (costs off) select * from tidemark.route_summary`), "\n"); !reads.MatchString(plan) {
			t.Errorf("route_summary does not read %s", table)
		}
	}
}
