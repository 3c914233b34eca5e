package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// queue_health counts failed rows of tables: those that wait for another attempt, and those that became dead letters.
func TestQueueHealthOfRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin
			if exists (select from unnest(rows) r where r.name like 'poison%') then raise 'poison'; end if; return null; end $$;
		select tidemark.worker_set('w', '{"source": "table", "retry_policy": {"max_attempts": 2, "base_seconds": 60, "jitter": 0}}');
		insert into births (name) values ('a'), ('poison 1'), ('b'), ('poison 2')`)
	const rows = `select kind, name, status, count, status_hint, note from tidemark.queue_health where kind like '%\_row' order by kind`
	s.want(rows)
	s.once()
	s.want(rows, "pending_row w/births/0 ok 2 - ")
	for minutes, status := range map[int]string{2: "warn", 16: "bad"} {
		s.exec(`update tidemark.pending_row set next_attempt_at = clock_timestamp() - make_interval(mins => $1)`, minutes)
		s.want(rows, "pending_row w/births/0 "+status+" 2 - ")
		s.want(`select age_seconds / 60 as age from tidemark.queue_health where kind = 'pending_row'`, fmt.Sprint(minutes))
	}
	s.exec(`select tidemark.gate_set('worker.w.enabled', false)`)
	s.want(rows, "pending_row w/births/0 ok 2 - ")
	s.exec(`select tidemark.gate_set('worker.w.enabled', true)`)

	// A pass that is an attempt, or comes in between.
	s.once()
	s.once()
	s.want(rows, "dead_letter_row w/births/0 warn 2 open ")
	s.want(`select last_seen_at between clock_timestamp() - interval '5 minutes' and clock_timestamp() as seen, age_seconds < 300 as young
		from tidemark.queue_health where kind = 'dead_letter_row'`, "true true")
	s.want(`select pending, oldest_pending_seconds, open_dead_letters from tidemark.worker_summary where worker = 'w'`, "0 - 2")
	s.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter`)
	s.want(rows)
}

// The columns that the source document asks for: domain, last_seen_at, status_hint.
func TestQueueHealthOfS4(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	pane := func(where string, want ...string) {
		w.t.Helper()
		w.wantRows(`select concat_ws(' ', kind, name, coalesce(domain, '-'), coalesce(status_hint, '-'),
			case when last_seen_at > clock_timestamp() - interval '5 minutes' then 'seen' else 'never' end)
			from tidemark.queue_health where `+where+` order by kind, name`, want...)
	}
	pane(`name = 'default/outbox/0'`, "backlog default/outbox/0 - - never", "cursor default/outbox/0 - - never", "heartbeat default/outbox/0 - quiet never")
	w.exec(`select tidemark.domain_set('shop'), tidemark.worker_set('two', '{"domains": ["shop", "test"]}'), tidemark.gate_set('worker.two.enabled', true);
		select tidemark.heartbeat_register('job', 'Agent', array['shop'], '10 seconds', '30 seconds')`)
	w.exec(`select tidemark.heartbeat_write('job')`)
	w.exec(`select tidemark.route_set('dead', '{"domain": "test", "target_kind": "sql", "target_ref": "public.gone", "enabled": true, "dry_run": false}')`)
	w.emit(1)
	w.pass()
	pane(`kind <> 'heartbeat' and name not like 'two/%'`, "backlog default/outbox/0 - - seen", "cursor default/outbox/0 - - seen",
		"dead_letter_event dead test open seen", "finding cursor_dlq default - open seen")
	pane(`name like 'two/%'`, "backlog two/outbox/0 shop,test - never", "cursor two/outbox/0 shop,test - never", "heartbeat two/outbox/0 shop,test quiet never")
	pane(`name = 'job'`, "heartbeat job shop fresh seen")
	w.exec(`update tidemark.heartbeat set last_beat_at = last_beat_at - interval '40 seconds' where executor_id = 'job'`)
	pane(`name = 'job'`, "heartbeat job shop stale seen")
}

// LI5: resolved dead letters of tables cost queue_health nothing, and it counts at most 10000 open ones.
func TestQueueHealthOfManyRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.once()
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, source, item_id, event_snapshot, error_code, resolved_at, resolution, resolved_by)
			select 'k' || n, w.id, 'births', n, '{}', 'x', case when n > 10050 then now() end, case when n > 10050 then 'discarded' end, case when n > 10050 then 'x' end
			from tidemark.worker w, generate_series(1, 50000) n where w.worker = 'w';
		insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at)
			select w.id, 'births', 0, n, '{}', 'x', now() + interval '1 hour' from tidemark.worker w, generate_series(1, 10050) n where w.worker = 'w'`)
	s.exec(`analyze`)
	s.want(`select kind, count, note from tidemark.queue_health where kind like '%\_row' order by kind`,
		"dead_letter_row 10000 10000 or more", "pending_row 10000 10000 or more")
	s.want(`select pending, open_dead_letters from tidemark.worker_summary where worker = 'w'`, "10000 10000")
	s.want(`select pending, open_dead_letters from tidemark.worker_health where worker = 'w'`, "10000 10000")
	s.want(`select pending, open_dead_letters from tidemark.source_cursor where worker = 'w'`, "10000 10000")
	// What is over of one worker costs nothing of the letters of another.
	s.exec(`select pg_stat_force_next_flush()`)
	s.begin()
	s.wantRows(`select k || ' ' || tidemark.letters_over(k, 'default') from unnest('{cursor_dlq,dlq_overflow,event_unreadable}'::text[]) k`,
		"cursor_dlq true", "dlq_overflow true", "event_unreadable true")
	s.wantRows(`select (sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) + pg_stat_get_xact_tuples_returned(i.indrelid) < 100)::text
		from pg_index i where i.indrelid = 'tidemark.dead_letter'::regclass group by i.indrelid`, "true")
	s.commit()
	for _, view := range []string{"queue_health", "worker_summary"} {
		plan := strings.Join(column[string](s.session, `explain (analyze, timing off, costs off) select * from tidemark.`+view), "\n")
		for line := range strings.Lines(plan) {
			var rows, loops float64
			at := strings.Index(line, "rows=")
			if at < 0 {
				continue
			}
			if _, err := fmt.Sscanf(line[at:], "rows=%g loops=%g", &rows, &loops); err == nil && rows > 10000 {
				t.Errorf("%s reads %g rows: %s", view, rows, line)
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
