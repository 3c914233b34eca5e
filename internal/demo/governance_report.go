package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// audit lets the fifth worker go through the whole inventory.
func (g *governance) audit(ctx context.Context) error {
	g.say("\n4. A full audit goes through the inventory once more, and takes its snapshot:\n   select governance.audit_start();")
	if _, err := g.conn.Exec(ctx, `select governance.audit_start()`); err != nil {
		return err
	}
	began := time.Now()
	for time.Since(began) < 5*governancePatience {
		var ended bool
		var seen, missing, marked int
		if err := g.conn.QueryRow(ctx, `select ended_at is not null, rows_seen, missing, dirty_marked from governance.snapshot where snapshot_ref = 1`).
			Scan(&ended, &seen, &missing, &marked); err != nil {
			return err
		}
		if ended {
			g.say("   %s rows seen in %.0f s; %d candidates were missing, %d verdicts past their time",
				thousands(seen), time.Since(began).Seconds(), missing, marked)
			return nil
		}
		if err := trial.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the audit does not come to an end")
}

// account is what is in the application's tables, and what came of it.
type governanceAccount struct {
	Births, Changes, Events  int64 // in the tables
	Candidates, Verdicts     int64
	Lost, Invented, Doubled  int64
	Stale                    int64 // verdicts that do not tell what is true now
	Swept, Gated, Scanned    int64 // what the cursors have counted
	Told, Marks, DeadLetters int64
	Audited, Missing         int64
}

// report counts in the application's own tables.
func (g *governance) report(ctx context.Context) error {
	g.daemon.kill()
	var a governanceAccount
	if err := g.conn.QueryRow(ctx, `
with c as materialized (select c.id, c.candidate_key, c.collection_name, c.entity_code, v.candidate_verdict
           from governance.candidate c left join governance.verdict v on v.candidate_id = c.id),
seen as (select worker, source, rows_seen from governance.progress)
select (select count(*) from birth_registry), (select count(*) from registry_changelog),
       (select count(*) from tidemark.outbox where domain = 'registry'),
       (select count(*) from c), (select count(*) from c where candidate_verdict is not null),
       (select count(*) from birth_registry b left join c on c.candidate_key = b.collection_name || ':' || b.entity_code where c.id is null),
       (select count(*) from c left join birth_registry b on c.candidate_key = b.collection_name || ':' || b.entity_code where b.id is null),
       (select count(*) - count(distinct candidate_key) from c),
       (select count(*) from c left join registry_state s on s.collection_name = c.collection_name and s.entity_code = c.entity_code
        where c.candidate_verdict is distinct from 'version ' || coalesce(s.version, 0)),
       (select rows_seen from seen where worker = 'gov_backfill_sweep'), (select rows_seen from seen where worker = 'gov_input_gate'),
       (select rows_seen from seen where source = 'governance_gated'),
       (select sum(rows_seen)::bigint from seen where worker = 'gov_handoff_intake'),
       (select count(*) from governance.mark), (select count(*) from tidemark.dead_letter),
       (select rows_seen from governance.snapshot where snapshot_ref = 1), (select missing from governance.snapshot where snapshot_ref = 1)`).
		Scan(&a.Births, &a.Changes, &a.Events, &a.Candidates, &a.Verdicts, &a.Lost, &a.Invented, &a.Doubled, &a.Stale, &a.Swept, &a.Gated,
			&a.Scanned, &a.Told, &a.Marks, &a.DeadLetters, &a.Audited, &a.Missing); err != nil {
		return err
	}
	w := &g.written
	g.say("\n5. What happened, counted in the application's own tables")
	line := func(n int64, what, note string) {
		g.say("%s", strings.TrimRight(fmt.Sprintf("   %-36s%10s   %s", what, thousands(int(n)), note), " "))
	}
	line(a.Births, "births committed", fmt.Sprintf("%s of them while the workers were at it", thousands(w.births)))
	line(a.Changes, "changes committed", "told by registry_changelog")
	line(a.Events, "changes committed", "told by events of the outbox")
	line(int64(w.rolledBack), "transactions rolled back", "")
	line(int64(w.stayedOpen), "committed late", "up to a second after they wrote")
	line(int64(g.kills), "kill -9", "of the daemon, in the middle")
	g.say("\n   %-36s%10s%11s%11s%11s", "worker", "rows", "done", "doubled", "lost")
	for _, r := range []struct {
		what       string
		rows, done int64
	}{
		{"gov_backfill_sweep", a.Births, a.Swept},
		{"gov_input_gate", a.Births, a.Gated},
		{"gov_candidate_scan", a.Births, a.Scanned},
		{"gov_handoff_intake", a.Births + a.Changes + a.Events, a.Told},
		{"gov_periodic_full_audit", a.Births, a.Audited},
	} {
		g.say("   %-36s%10s%11s%11s%11s", r.what, thousands(int(r.rows)), thousands(int(r.done)), thousands(int(max(0, r.done-r.rows))),
			thousands(int(max(0, r.rows-r.done))))
	}
	g.say("")
	line(a.Candidates, "candidates", "")
	line(a.Lost, "births without a candidate", "")
	line(a.Doubled, "candidates that are there twice", "")
	line(a.Invented, "candidates of a birth rolled back", "")
	line(a.Candidates-a.Verdicts, "candidates without a verdict", "")
	line(a.Stale, "verdicts that are not true now", "a change was told, and the candidate not judged anew")
	line(a.Marks, "marks left", "")
	line(a.DeadLetters, "dead letters", "")
	g.say(`
Look further, in a database of your own:
   tidemark pack install governance             and then: its README
   select * from governance.summary;            how many candidates, of what kind
   select * from governance.progress;           how far each worker has come
`)
	rows := int64(g.options.Rows + w.births)
	if a.Births != rows || a.Changes != int64(w.changes) || a.Events != int64(w.events) {
		return fmt.Errorf("the application has counted %d births, %d changes and %d events, and its tables do not agree", rows, w.changes, w.events)
	}
	for _, wrong := range []int64{
		a.Lost, a.Doubled, a.Invented, a.Candidates - a.Births, a.Verdicts - a.Births, a.Stale, a.Marks, a.DeadLetters, a.Missing,
		a.Swept - a.Births, a.Gated - a.Births, a.Scanned - a.Births, a.Told - a.Births - a.Changes - a.Events, a.Audited - a.Births,
	} {
		if wrong != 0 {
			return errors.New("the result is not what Tidemark promises: please report it")
		}
	}
	return nil
}
