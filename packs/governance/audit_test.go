package governance_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The audit finds what was lost: candidates, verdicts, marks. It goes on where it was, and plans the next one.
func TestAudit(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(1000)
	g.exec(`alter table birth_registry alter entity_code drop not null; insert into birth_registry (collection_name, entity_code) values ('collection-1', null)`)
	g.drainAll()
	g.exec(`update governance.candidate set scan_time = scan_time - interval '2 hours' where entity_code ~ '^entity-([1-9]|10)$';
		delete from governance.verdict v using governance.candidate c where c.id = v.candidate_id and c.entity_code ~ '^entity-([1-9]|10)$';
		delete from governance.verdict v using governance.candidate c where c.id = v.candidate_id and c.entity_code = 'entity-1000';
		delete from governance.gated g using governance.candidate c where c.id = g.candidate_id and c.entity_code = 'entity-1000';
		delete from governance.candidate where entity_code = 'entity-1000';
		update governance.tally set items = case stage when 'verdict' then 989 else 999 end;
		update governance.verdict v set stale_after = clock_timestamp() - interval '1 minute' from governance.candidate c
			where c.id = v.candidate_id and c.entity_code = 'entity-20';
		select governance.audit_start(page_rows => 100)`)
	g.balance()
	for range 5 {
		g.settle("gov_periodic_full_audit")
	}
	// As after a crash: all there is stands in the tables.
	g.conn = g.Connect(t)
	if seen := value[int](g, `select rows_seen::int from governance.snapshot where snapshot_ref = 1`); seen != 500 {
		t.Error("after five steps of 100 rows:", seen)
	}
	g.audit()
	g.want("1001 1 11", `select concat_ws(' ', rows_seen, missing, dirty_marked) from governance.snapshot where snapshot_ref = 1`)
	g.want(`{"pending": 2, "accepted": 999}`, `select states::text from governance.snapshot where snapshot_ref = 1`)
	g.want(`{"none": 12, "propose": 989}`, `select verdicts::text from governance.snapshot where snapshot_ref = 1`)
	g.drainAll()
	g.want(1000, `select count(*) from governance.verdict`)
	g.want(1, `select snapshot_ref from governance.summary`)
	g.want(1, `select count(*) from tidemark.outbox where domain = 'governance' and type = 'audit_snapshot' and payload ->> 'rows_seen' = '1001'`)
	g.balance()
	// The next one is a week after this one began.
	g.want("2 t", `select concat_ws(' ', s.snapshot_ref, a.due_at = p.started_at + p.every) from governance.snapshot s
		join governance.audit_step a on a.snapshot_ref = s.snapshot_ref join governance.snapshot p on p.snapshot_ref = 1 where s.started_at is null`)
}

// The reconciling audit needs nobody: the first birth table plans it, within a week, and each plans the next.
func TestAuditIsPlanned(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.want("1 t", `select concat_ws(' ', count(*), bool_and(a.due_at between now() + interval '6 days' and now() + interval '7 days'))
		from governance.audit_step a join governance.snapshot s using (snapshot_ref) where s.started_at is null and s.every = '7 days'`)
	g.birth(3)
	g.drainAll()
	g.want(0, `select count(*) from governance.snapshot where started_at is not null`)
	for n := range 2 {
		g.exec(`update governance.audit_step set due_at = clock_timestamp() - interval '10 seconds'`)
		g.drainAll()
		g.want(n+1, `select count(*) from governance.snapshot where ended_at is not null and rows_seen = 3`)
		g.want(1, `select count(*) from governance.audit_step where due_at > now() + interval '6 days'`)
	}
}

// The audit leaves alone what is on its way: candidates of the last hour that wait for gate and scan, and those that are
// dirty already.
func TestAuditLeavesWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(10)
	g.drain("gov_backfill_sweep")
	g.audit()
	g.want("10 0", `select concat_ws(' ', rows_seen, dirty_marked) from governance.snapshot where snapshot_ref = 1`)
	g.drainAll()
	g.exec(`update governance.verdict set stale_after = clock_timestamp() - interval '1 minute' where candidate_id in (select id from governance.candidate order by id limit 3)`)
	g.audit()
	g.audit()
	g.want("3 0", `select string_agg(dirty_marked::text, ' ' order by snapshot_ref) from governance.snapshot where snapshot_ref in (2, 3)`)
	g.want(3, `select count(*) from governance.mark`)
	g.balance()
}

// A row that has a key and still cannot be a candidate is a dead letter of the sweep, and no end of the audit.
func TestAuditPassesOverWhatIsNoCandidate(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`alter table birth_registry alter entity_code drop not null, alter collection_name drop not null;
		select tidemark.worker_set(w, '{"retry_policy": {"max_attempts": 1}}') from unnest(array['gov_backfill_sweep', 'gov_periodic_full_audit']) w`)
	g.birth(3)
	g.exec(`insert into birth_registry (canonical_address, collection_name, entity_code) values ('at/1', 'c', null), ('at/2', null, 'e'), (null, 'a:b', 'e');
		insert into birth_registry (collection_name, entity_code) select 'c', string_agg(md5(n::text), '') from generate_series(1, 200) n`)
	g.birth(1)
	g.drainAll()
	g.audit()
	g.want("8 0", `select concat_ws(' ', rows_seen, missing) from governance.snapshot where snapshot_ref = 1`)
	g.want("4", `select result ->> 'refused' from (select last_run_summary -> 'checkpoint' as result from tidemark.worker_cursor
		where worker = 'gov_periodic_full_audit') c`)
	g.want("birth_registry 4", `select string_agg(distinct source || ' ' || n, ', ') from (
		select source, count(*) over (partition by source) as n from tidemark.dead_letter) l`)
}

// A step that was given up, for what is mended meanwhile, is done when the audit is asked for again.
func TestAuditGoesOnBehindAStepThatWasGivenUp(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`select tidemark.worker_set('gov_periodic_full_audit', '{"retry_policy": {"max_attempts": 1}}')`)
	g.birth(30)
	g.drainAll()
	g.exec(`select governance.audit_start(page_rows => 10); alter table governance.snapshot add constraint ten check (rows_seen < 11)`)
	deadline := time.Now().Add(3 * time.Minute)
	for value[int](g, `select count(*)::int from tidemark.dead_letter`) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the step is never given up")
		}
		g.run("gov_periodic_full_audit", 0)
	}
	g.exec(`alter table governance.snapshot drop constraint ten`)
	g.audit()
	g.want("30", `select rows_seen::text from governance.snapshot where snapshot_ref = 1`)
	g.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	g.drainAll()
	g.want("30", `select rows_seen::text from governance.snapshot where snapshot_ref = 1`)
	g.want(0, `select count(*) from tidemark.dead_letter where resolved_at is null`)
}

// One audit is open, whatever begins at once: the last step of an audit plans the next one in a transaction of its own, and two tables are
// watched at once.
func TestOneAuditIsOpen(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(3)
	g.drainAll()
	g.exec(`select governance.audit_start()`)
	one, err := g.conn.Begin(t.Context()) // the last step of audit 1
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Exec(t.Context(), `select governance.audit(array_agg(a)) from governance.audit_step a`); err != nil {
		t.Fatal(err)
	}
	other := g.Connect(t)
	started := g.blocked(other, `select governance.audit_start()`)
	if err := one.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	// The one that was planned is due now.
	g.want("1 2 t", `select concat_ws(' ', count(*), min(snapshot_ref), bool_and(due_at <= clock_timestamp())) from governance.audit_step`)
	g.audit()
	g.want(1, `select count(*) from governance.audit_step`)

	for _, sql := range []string{`select governance.audit_start()`, `select governance.watch('birth_registry', 'birth')`} {
		g.exec(`delete from governance.audit_step; delete from governance.snapshot`)
		one, err := g.conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		started := g.blocked(other, sql)
		if err := one.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		g.want(1, `select count(*) from governance.audit_step`)
	}
}

// blocked sends a statement, which waits for a lock.
func (g govern) blocked(conn *pgx.Conn, sql string) <-chan error {
	g.t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(g.t.Context(), sql)
		done <- err
	}()
	watcher, deadline := g.Connect(g.t), time.Now().Add(time.Minute)
	for {
		var waits bool
		if err := watcher.QueryRow(g.t.Context(), `select cardinality(pg_blocking_pids($1)) > 0`, conn.PgConn().PID()).Scan(&waits); err != nil {
			g.t.Fatal(err)
		}
		if waits {
			return done
		} else if time.Now().After(deadline) {
			g.t.Fatal(sql, " does not wait")
		}
	}
}

// An installation that has two chains of audits has one after an install: that under way.
func TestInstallEndsTheSecondAudit(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(30)
	g.drainAll()
	g.exec(`select governance.audit_start(page_rows => 10)`)
	g.settle("gov_periodic_full_audit")
	g.exec(`drop index governance.snapshot_open;
		with s as (insert into governance.snapshot (every, page_rows) select '7 days', 10 from generate_series(1, 2) returning snapshot_ref)
		insert into governance.audit_step (snapshot_ref, due_at) select snapshot_ref, clock_timestamp() + interval '1 day' from s`)
	install(t, g.DB)
	g.want("1 1 10", `select concat_ws(' ', count(*), min(s.snapshot_ref), min(s.rows_seen)) from governance.audit_step a join governance.snapshot s using (snapshot_ref)`)
	g.audit()
	g.want("1 30", `select concat_ws(' ', snapshot_ref, rows_seen) from governance.snapshot where ended_at is not null`)
	g.want(1, `select count(*) from governance.snapshot where ended_at is null`)
}

// A ruleset that becomes current while an audit is under way gets the whole inventory: the audit goes on for its own ruleset, and the next
// one is due at its end.
func TestAuditOfARulesetThatBecomesCurrent(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(30)
	g.drainAll()
	g.exec(`select governance.audit_start(page_rows => 10)`)
	for range 2 {
		g.settle("gov_periodic_full_audit")
	}
	g.exec(`select governance.ruleset_set('2', '{"is_current": true}'), governance.audit_start()`)
	g.audit()
	g.want("1 30 0", `select concat_ws(' ', ruleset_version, rows_seen, missing) from governance.snapshot where snapshot_ref = 1`)
	g.want(true, `select due_at <= clock_timestamp() from governance.audit_step`)
	g.audit()
	g.want("2 30 30", `select concat_ws(' ', ruleset_version, rows_seen, missing) from governance.snapshot where snapshot_ref = 2`)
	g.drainAll()
	g.want(30, `select count(*) from governance.candidate where ruleset_version = '2'`)
	g.want(true, `select due_at > clock_timestamp() + interval '6 days' from governance.audit_step`)
	g.balance()
}
