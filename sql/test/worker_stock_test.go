package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// With PostgreSQL's default settings no statement of a pass is compiled, and none writes a temporary file: passes inside and
// outside the database, retries, dead letters, holes, a rewind.
func TestPassesOnStockServer(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{
		"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all",
	}})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	w, late := live(t, db), open(t, db, "late")
	w.exec(`create extension pg_stat_statements`)
	w.wantRows(`select name from pg_settings where source = 'configuration file' and (name like 'enable%' or name like 'jit%' or name like '%cost'
		or name in ('work_mem', 'plan_cache_mode', 'autovacuum', 'max_parallel_workers_per_gather', 'synchronous_commit'))`)
	late.begin()
	late.emit(0)
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n, 'text', repeat(md5(n::text), 40)), key => (n % 100)::text)
		from generate_series(1, 6000) n`)

	w.exec(`select pg_stat_statements_reset()`)
	equal(t, "events of a pass inside", w.passLimit(1000).Events, 1000)
	late.commit()
	w.exec(`select tidemark.worker_rewind('default', 500, 'again')`)
	equal(t, "events after the rewind", w.passLimit(1000).Events, 1000)
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	const epoch = `(select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0')`
	for n, result := range []string{"pending", "failed", "sent"} {
		w.exec(`create temp table page as select * from tidemark.pass_read('default', ` + epoch + `, 5000, null, null, '{}', '{}')`)
		w.exec(`select tidemark.pass_settle('default', `+epoch+`, batch::tidemark.batch, evidence::tidemark.evidence[], array(
				select row(1, p.fresh, $2, 'test', 'test', range_agg(int8range(p.seq, p.seq + 1)), 0)::tidemark.result
				from page p where p.seq is not null group by p.fresh), $1)
			from page where batch is not null`, n+1, result)
		w.exec(`drop table page`)
	}
	w.wantRows(`select concat_ws(': ', case when jit_functions > 0 then 'compiled' end, case when temp_blks_written > 0 then 'temporary file' end, query)
		from pg_stat_statements where jit_functions > 0 or temp_blks_written > 0`)
	w.wantRows(`select outcome::text from tidemark.route_attempt group by 1 order by 1`, "failed", "pending", "sent")
}

// After the first passes, no statement of a pass is planned again, from SQL or for a delivery outside: what is planned at each call, as
// an SQL function that is not inlined is, costs a small pass more than its work.
func TestPassesKeepTheirPlans(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{
		"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all", "pg_stat_statements.track_planning": "on", "autovacuum": "off",
	}})
	w := live(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	w.exec(`create extension pg_stat_statements`)
	w.exec(`select tidemark.emit('test', 'tick', '{}', key => n::text) from generate_series(1, 40) n`)
	keep := func(pass func()) {
		t.Helper()
		for range 8 {
			pass()
		}
		w.exec(`select pg_stat_statements_reset()`)
		pass()
		w.wantRows(`select query from pg_stat_statements where not toplevel and plans > 0`)
	}

	w.exec(`update tidemark.outbound_route set dry_run = true`)
	keep(func() { equal(t, "events of a pass", w.passLimit(1).Events, 1) })

	w.exec(`update tidemark.outbound_route set dry_run = false, target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`select tidemark.claim('default', 'a', '10 minutes')`)
	n := 0
	keep(func() {
		n++
		w.exec(`with page as materialized (
				select * from tidemark.pass_read('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), 1, null, '', '{}', '{}'))
			select tidemark.pass_settle('default', h.lease_epoch, p.batch::tidemark.batch, p.evidence::tidemark.evidence[],
				array[row(1, true, 'sent', null, null, int8multirange(int8range(e.seq, e.seq + 1)), 0)::tidemark.result], $1)
			from page p, page e, tidemark.heartbeat h where p.batch is not null and e.seq is not null and h.executor_id = 'default/outbox/0'`, n)
	})
	w.wantRows(`select sum(events)::text from tidemark.decision where outcome = 'sent'`, "9")
}
