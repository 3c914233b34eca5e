package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What is due is found without a look at all that is pending, also in a session that planned it when nothing was, and where most
// of it waits behind a few keys: else a worker whose targets were away for an hour needs longer for a page than its lease.
func TestDueIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`alter table tidemark.pending set (autovacuum_enabled = off)`)
	w.exec(`select tidemark.route_set('keyed', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true},
		"ordering": "key", "enabled": true, "dry_run": false}'), tidemark.route_set('plain', '{"domain": "test", "target_kind": "webhook",
		"target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	const due = `select cardinality(tidemark.pending_due('default', (select id from tidemark.worker where worker = 'default'), null, null, 0))`
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at) select w.id, r.id, n, 'infinity'
		from tidemark.worker w, tidemark.outbound_route r, generate_series(1, 3) n where w.worker = 'default'`)
	w.exec(`analyze tidemark.pending; delete from tidemark.pending`)
	for range 6 {
		equal(t, "due", one[int](w, due), 0)
	}
	const events = 20_000
	w.exec(`select tidemark.emit_strict('test', 'tick', '{}', key => 'k' || n % 10) from generate_series(1, $1::integer) n`, events)
	for one[int](w, `select (tidemark.route_worker_run(batch_limit => 5000) ->> 'events')::integer`) > 0 {
	}
	equal(t, "pending", one[int](w, `select count(*) from tidemark.pending`), 2*events)

	equal(t, "due", one[int](w, due), 200)
	var pages int
	plan := one[string](w, `explain (analyze, buffers, costs off, timing off, summary off, format json) `+due)
	_, hits, _ := strings.Cut(plan, `"Shared Hit Blocks": `)
	if _, err := fmt.Sscan(hits, &pages); err != nil || pages > 4_000 {
		t.Errorf("%d pages were touched for 200 of %d (%v)", pages, 2*events, err)
	}
}

// However many events wait for a time to come, a pass and a poll read those that are due.
func TestWhatIsNotDueIsNotRead(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.outAndInside("none")
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, replay, next_attempt_at)
		select w.id, r.id, n, 'test', n % 5 = 0, case when n % 2 = 0 then now() + interval '1 hour' else 'infinity' end
		from tidemark.worker w, tidemark.outbound_route r, generate_series(1, 20000) n where w.worker = 'default' and r.route_code in ('out', 'inside')
		order by random()`)
	reads := func(of, sql, want string) {
		t.Helper()
		if n := w.readsOfPending(func() { w.wantRows(sql, want) }); n > 200 {
			t.Errorf("%s: %d rows are read", of, n)
		}
	}
	for _, statistics := range []string{"old", "new"} {
		reads(statistics+" pending_due", `select cardinality(tidemark.pending_due('default', (select id from tidemark.worker where worker = 'default'), null, null, 0))::text`, "0")
		reads(statistics+" live_inside", `select cardinality(tidemark.live_inside('default', '{}', 0))::text`, "0")
		reads(statistics+" log_next", `select coalesce(tidemark.log_next('default', 0), 'nothing')`, "nothing")
		w.exec(`analyze tidemark.pending; discard plans`)
	}
	w.exec(`update tidemark.pending set next_attempt_at = now() where seq in (7, 10)`)
	reads("due: pending_due", `select cardinality(tidemark.pending_due('default', (select id from tidemark.worker where worker = 'default'), null, null, 0))::text`, "2")
	reads("due: live_inside", `select cardinality(tidemark.live_inside('default', '{}', 0))::text`, "1")
	reads("due: log_next", `select tidemark.log_next('default', 0)`, "retry")
}

// outAndInside makes two live routes of the domain test: out leads to a webhook, and inside to a function.
func (s session) outAndInside(ordering string) {
	s.t.Helper()
	s.exec(`create function public.book(event jsonb) returns void language sql as 'select'`)
	for code, target := range map[string]string{"out": `"webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}`, "inside": `"sql", "target_ref": "public.book"`} {
		s.exec(fmt.Sprintf(`select tidemark.route_set('%s', '{"domain": "test", "ordering": "%s", "target_kind": %s, "enabled": true, "dry_run": false}')`, code, ordering, target))
	}
}

// readsOfPending is how many rows of what waits are read by do, which is rolled back.
func (s session) readsOfPending(do func()) int { s.t.Helper(); return s.readsOf("pending", do) }

// readsOf is how many rows of these tables, with their partitions, are read by do, which is rolled back.
func (s session) readsOf(tables string, do func()) int {
	s.t.Helper()
	const read = `with t as (select ('tidemark.' || t)::regclass as id from string_to_table($1, ', ') t)
		select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables
		where relid in (select id from t union all select inhrelid from pg_inherits where inhparent in (select id from t))`
	s.begin()
	before := one[int](s, read, tables)
	do()
	n := one[int](s, read, tables) - before
	s.exec(`rollback`)
	return n
}
