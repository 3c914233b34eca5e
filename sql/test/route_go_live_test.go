package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What stands between a new route and its target is shown, opened in one transaction with a reason, and audited.
func TestRouteGoLive(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.exec(`create table got (n int); create function public.target(e jsonb) returns void language sql as 'insert into public.got values (1)'`)
	s.exec(`select tidemark.route_set('mail', '{"domain": "shop", "type": "*", "target_kind": "sql", "target_ref": "public.target"}')`)
	s.exec(`select tidemark.gate_set('domain.shop.enabled', false), tidemark.worker_pause('default', true, 'test')`)
	s.exec(`select tidemark.emit('shop', 'order')`)
	const switches = `select concat_ws(' ', switch, is_open, state) from tidemark.route_switches('mail')`
	s.wantRows(switches, "stage f dry_run", "gate routes.enabled f closed", "gate worker.default.enabled f closed",
		"gate domain.shop.enabled f closed", "worker default f paused", "route f off", "dry run f on")
	s.wantRows(`select distinct (w.command = any (select g.cli from tidemark.route_switches('mail', 'route why-not') g))::text
		from tidemark.route_why_not('mail') w where w.reason = 'closed'`, "true")
	s.wantRows(`select reason from tidemark.route_why_not('mail') where reason <> 'closed'`, "not read")

	s.refused("TM005", "", `select * from tidemark.route_go_live('mail', ' ')`)
	s.refused("TM004", "", `select * from tidemark.route_go_live('nope', 'test')`)
	s.refused("TM004", "", `select * from tidemark.route_why_not('nope')`)
	s.exec(`select tidemark.worker_set('book.rows', '{"source": "table", "handler": "go"}')`)
	s.refused("TM004", "It is a worker of tables, which has no route: tidemark activate book.rows", `select * from tidemark.route_go_live('book.rows', 'test')`)
	s.wantRows(`select concat_ws(' ', switch, changed, was) from tidemark.route_go_live('mail', 'it''s time')`, "stage t dry_run",
		"gate routes.enabled t closed", "gate worker.default.enabled t closed", "gate domain.shop.enabled t closed",
		"worker default t paused", "route t off", "dry run t on")
	s.wantRows(switches, "stage t live", "gate routes.enabled t open", "gate worker.default.enabled t open", "route t on", "dry run t off")
	s.wantRows(`select distinct reason from tidemark.audit where at >= (select max(changed_at) from tidemark.stage)`, "it's time")
	s.exec(`select tidemark.route_worker_run('default')`)
	s.wantRows(`select n from got`, "1")
	s.wantRows(`select distinct changed::text from tidemark.route_go_live('mail', 'again')`, "false")
	s.wantRows(`select reason || ': ' || regexp_replace(sentence, ' at [^,]*', '') from tidemark.route_why_not('mail')`,
		"sent: Event 1, the latest that it claims: It was delivered, in attempt 1.")
	s.exec(`select tidemark.route_set('mail', '{"key_filter": "x"}')`)
	s.wantRows(`select reason || ': ' || sentence from tidemark.route_why_not('mail')`,
		"no event: None of the latest 1000 events is one of shop/* that its filters let pass.")

	// A route of all domains delivers those whose gate is open: going live opens none of the others, and why-not names them.
	s.exec(`select tidemark.route_set('all', '{"domain": "*", "type": "*", "target_kind": "sql", "target_ref": "public.target"}')`)
	s.exec(`select tidemark.gate_set('domain.shop.enabled', false)`)
	s.wantRows(`select switch from tidemark.route_go_live('all', 'test') where changed`, "route", "dry run")
	s.wantRows(`select sentence || ' ' || command from tidemark.route_why_not('all') where reason = 'closed'`,
		"gate domain.shop.enabled: closed. The route delivers no event of that domain. "+
			"tidemark gate open domain.shop.enabled --reason 'route why-not'")
	s.exec(`select tidemark.gate_set('domain.shop.enabled', true)`)

	// All or nothing: where the last step fails, the gates stay closed.
	s.exec(`select tidemark.gate_set('routes.enabled', false), tidemark.route_set('mail', '{"enabled": false}')`)
	s.exec(`create function public.no() returns trigger language plpgsql as 'begin raise exception using errcode = ''XX001''; end'`)
	s.exec(`create trigger no before update on tidemark.outbound_route for each row when (new.enabled) execute function public.no()`)
	s.refused("XX001", "", `select * from tidemark.route_go_live('mail', 'test')`)
	s.wantRows(`select is_open::text from tidemark.route_switches('mail') where switch in ('gate routes.enabled', 'route')`, "false", "false")
}

// What was recorded while a route was off or in dry run, since it last delivered and not replayed since, is counted in bounds.
func TestRouteMissed(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.exec(`create function public.target(e jsonb) returns void language sql as ''`)
	s.exec(`select tidemark.route_set('mail', '{"domain": "shop", "type": "*", "target_kind": "sql", "target_ref": "public.target"}')`)
	s.exec(`select tidemark.route_go_live('mail', 'test')`)
	events := func(changes string, n int) {
		t.Helper()
		s.exec(`select tidemark.route_set('mail', $1::jsonb)`, changes)
		s.exec(`select tidemark.emit('shop', 'order') from generate_series(1, $1::integer)`, n)
		s.exec(`select tidemark.route_worker_run('default')`)
	}
	const missed = `select concat_ws(' ', outcome, events, first_seq, last_seq, complete) from tidemark.route_missed('mail')`
	events(`{"enabled": false}`, 2) // 1, 2: an earlier time
	events(`{"enabled": true}`, 1)  // 3
	s.wantRows(missed)
	events(`{"dry_run": true}`, 2)  // 4, 5
	events(`{"enabled": false}`, 1) // 6
	events(`{}`, 4)                 // 7 to 10
	s.wantRows(missed, "disabled 5 6 10 t", "dry_run 2 4 5 t")
	s.wantRows(`select concat_ws(' ', outcome, events, first_seq, last_seq, complete) from tidemark.route_missed('mail', 1)`, "disabled 4 7 10 f")
	s.wantRows(`select command from tidemark.route_why_not('mail') where reason = 'disabled'`,
		"tidemark route replay mail --from-seq 6 --to-seq 10 --only disabled --reason 'route why-not'")

	// A replay under way takes what it still has to send; what was sent stays out.
	s.exec(`select tidemark.route_replay('mail', 'test', from_seq => 6, to_seq => 8)`)
	s.wantRows(missed, "disabled 2 7 10 t", "dry_run 2 4 5 t") // the span is of whole batches
	s.exec(`select tidemark.route_set('mail', '{"enabled": true, "dry_run": false}')`)
	s.exec(`select tidemark.route_worker_run('default')`)
	s.wantRows(`select (finished_at is not null)::text from tidemark.replay_job`, "true")
	s.wantRows(missed, "disabled 2 6 10 t", "dry_run 2 4 5 t")

	s.refused("TM004", `there is no route "nope"`, `select tidemark.route_missed('nope')`)
	s.refused("TM005", "most is 0", `select tidemark.route_missed('mail', 0)`)
}

// Shards are at different places: one that is behind records, while the route is off, numbers below those that another has delivered.
func TestRouteMissedOfShards(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(4)
	for n := range 40 {
		w.emitKey(n+1, fmt.Sprintf("k%d", n))
	}
	const missed = `select concat_ws(' ', outcome, events, first_seq, last_seq, complete) from tidemark.route_missed('app')`
	const recorded = `select concat_ws(' ', a.outcome, count(*), min(a.seq), max(a.seq), 't') from tidemark.route_attempt a
		where a.outcome in ('disabled', 'dry_run') group by a.outcome order by a.outcome`
	w.passShard(0, 5000)
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.passShard(1, 5000)
	w.passShard(1, 5000)
	w.exec(`select tidemark.route_set('app', '{"dry_run": true, "enabled": true}')`)
	w.passShard(2, 5000)
	equal(t, "missed", column[string](w, missed), column[string](w, recorded))
	equal(t, "outcomes", len(column[string](w, missed)), 2)
	// A replay sends just these, once the fourth shard has passed them too.
	w.exec(`select tidemark.route_replay('app', 'test', from_seq => 1, outcomes => '{disabled, dry_run}')`)
	w.wantRows(missed)
	w.exec(`select tidemark.route_set('app', '{"dry_run": false}')`)
	w.drainShards(4)
	w.drainShards(4)
	w.wantRows(`select count(*)::text || ' ' || count(distinct n)::text from received`, "40 40")
}

// What many attempts cost is not the evidence of the events after each of them.
func TestRouteMissedCost(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"dry_run": true}')`)
	w.exec(`insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, seqs)
		select w.id, r.id, n, n, 1, 'dry_run', int8multirange(int8range(n, n + 1))
		from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker cross join generate_series(1, 3000, 3) n where r.route_code = 'app'`)
	w.exec(`insert into tidemark.attempt (worker_id, route_id, seq, attempt_no, outcome)
		select w.id, r.id, n, 1, 'sent' from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker
		cross join generate_series(1, 3000) n where r.route_code = 'app' and n % 3 in (1, 2) and n > 1500`)
	w.begin()
	w.wantRows(`select concat_ws(' ', outcome, events, first_seq, last_seq, complete) from tidemark.route_missed('app')`, "dry_run 500 1 2998 t")
	w.wantRows(`select (sum(seq_scan) = 0 and sum(idx_tup_fetch) < 3000)::text from pg_stat_xact_user_tables where relname like 'decision\_%'`, "true")
	w.rollback()
}

// Events whose transform failed in dry run have not been sent either, and a replay sends them.
func TestRouteMissedOfTransforms(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`insert into poison values (2), (3); select tidemark.route_set('each', '{"dry_run": true}')`)
	w.emitUpTo(3)
	w.pass()
	const missed = `select concat_ws(' ', outcome, events, first_seq, last_seq, complete) from tidemark.route_missed('each')`
	w.wantRows(missed, "dry_run 3 1 3 t")
	w.wantRows(`select events::text from tidemark.dry_run_transform('each')`, "3")
	w.wantRows(missed, "dry_run 3 1 3 t")
	w.exec(`delete from poison; select tidemark.route_replay('each', 'test', from_seq => 3, to_seq => 3)`)
	w.wantRows(missed, "dry_run 2 1 2 t")
	w.exec(`select tidemark.route_set('each', '{"dry_run": false}')`)
	w.pass()
	w.wantRows(missed, "dry_run 2 1 2 t")
}
