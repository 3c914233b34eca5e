package governance_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Requirement PK2: what comes with the pack, all of it closed.
func TestInstall(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	install(t, test)
	g := govern{test, t, test.Connect(t)}
	g.want("gov_backfill_sweep gov_candidate_scan gov_handoff_intake gov_input_gate gov_periodic_full_audit",
		`select string_agg(worker, ' ' order by worker) from tidemark.worker where worker like 'gov%' and tidemark.closed_gate(worker) is not null`)
	g.want(true, `select metadata_only from tidemark.domain where domain = 'governance'`)

	types, err := store.New(test.Pool).EventTypes(t.Context(), "governance", store.Part{})
	if err != nil || len(types) != 20 {
		t.Fatal(len(types), err)
	}
	for _, e := range types {
		if _, err := payload.Compile(e.Schema); err != nil || e.Description == "" {
			t.Error(e.Type, err)
		}
		// Nothing that happens once a candidate or once a page is on before an operator switches it on.
		if often := strings.HasSuffix(e.Type, ".heartbeat") || strings.HasPrefix(e.Type, "candidate_d") || e.Type == "verdict_proposed"; e.Enabled == often {
			t.Errorf("%s: enabled %v", e.Type, e.Enabled)
		}
	}
}

// A second install changes nothing, and keeps what an operator changed and what the workers found.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(10)
	g.drainAll()
	g.exec(`select tidemark.type_set('governance', 'verdict_proposed', '{"enabled": true}'); select tidemark.type_set('governance', 'cursor_dlq', '{"enabled": false}');
		select tidemark.worker_set('gov_input_gate', '{"page_size": 7}'); select governance.ruleset_set('1', '{"stale_after": "1 day"}')`)
	const everything = `select jsonb_build_object(
		'event_type', (select jsonb_agg(e order by e.type) from tidemark.event_type e), 'worker', (select jsonb_agg(w order by w.id) from tidemark.worker w),
		'source', (select jsonb_agg(s order by s.source) from tidemark.source s), 'cursor', (select jsonb_agg(c order by c.worker, c.source) from tidemark.worker_cursor c),
		'audit', (select count(*) from tidemark.audit), 'ruleset', (select jsonb_agg(r) from governance.ruleset r),
		'candidate', (select jsonb_agg(c order by c.id) from governance.candidate c), 'verdict', (select jsonb_agg(v order by v.candidate_id) from governance.verdict v))`
	before := value[map[string]any](g, everything)
	install(t, g.DB)
	if diff := cmp.Diff(before, value[map[string]any](g, everything)); diff != "" {
		t.Error(diff)
	}
}

// From a birth to a verdict; then nothing more happens, and nothing is written.
func TestPipeline(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(1000)
	g.exec(`insert into birth_registry (collection_name, entity_code, canonical_address) values
		('collection-1', 'addressed', 'address-1'), ('collection-1', 'addressed-again', 'address-1'), ('collection-1', ' ', null),
		('collection-1', 'entity-1', null)`)
	g.drainAll()
	g.want(1002, `select count(*) from governance.candidate`)
	g.want("address-1|accepted|propose|f", `select concat_ws('|', candidate_key, input_quality_state, candidate_verdict, dirty) from governance.find('address-1')`)
	g.want("collection-1: |incomplete|hold|f", `select concat_ws('|', candidate_key, input_quality_state, candidate_verdict, dirty) from governance.find('collection-1: ')`)
	// Two rows that came with a key that was there already.
	g.want(0, `select count(*) from governance.mark`)
	g.balance()

	before := value[string](g, `select jsonb_build_array((select jsonb_agg(c) from governance.candidate c), (select jsonb_agg(v) from governance.verdict v))::text`)
	g.exec(`select tidemark.source_rewind('gov_backfill_sweep', 'birth_registry', 'again', to_id => '0'),
		tidemark.source_rewind('gov_input_gate', 'governance_candidate', 'again', to_id => '0'),
		tidemark.source_rewind('gov_candidate_scan', 'governance_gated', 'again', to_id => '0')`)
	g.drainAll()
	if diff := cmp.Diff(before, value[string](g, `select jsonb_build_array((select jsonb_agg(c) from governance.candidate c), (select jsonb_agg(v) from governance.verdict v))::text`)); diff != "" {
		t.Error("done again it is another:", diff)
	}
	g.balance()
	g.want("incremental", `select string_agg(distinct phase, ' ') from governance.progress`)
	g.want(0, `select count(*) from tidemark.finding`)
	// Types that are off are not tried: they would count as typos.
	g.want(0, `select count(*) from tidemark.unregistered_emits`)
}

// The rules read a table of the application; a change there is told by its change log, by an event, or by a second birth.
func TestChanges(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`create table owner (collection_name text, entity_code text, name text);
		create function quality(c governance.candidate) returns text language sql stable as
			$$ select case when exists (select from public.owner o where (o.collection_name, o.entity_code) = (c.collection_name, c.entity_code)) then 'owned' else 'orphan' end $$;
		create function proposal(c governance.candidate, state text) returns text language sql stable as $$ select case state when 'owned' then 'keep' else 'assign' end $$;
		select governance.ruleset_set('1', '{"input_rule": "public.quality", "verdict_rule": "public.proposal"}', 'a test')`)
	g.exec(`select tidemark.type_set('governance', t, '{"enabled": true}') from unnest(array['candidate_dirtied', 'verdict_proposed', 'gov_candidate_scan.heartbeat']) t`)
	g.birth(3)
	g.drainAll()
	const verdicts = `select string_agg(c.entity_code || ' ' || v.candidate_verdict, ', ' order by c.id) from governance.verdict v join governance.candidate c on c.id = v.candidate_id`
	g.want("entity-1 assign, entity-2 assign, entity-3 assign", verdicts)

	for _, tell := range []string{
		`insert into registry_changelog (collection_name, entity_code) values ('collection-1', 'entity-1'), ('collection-1', 'entity-1'), ('collection-1', 'nobody')`,
		`insert into event_outbox (subject_table, subject_ref) values ('collection-2', 'entity-2')`,
		`insert into birth_registry (collection_name, entity_code) values ('collection-3', 'entity-3')`,
	} {
		g.exec(`insert into owner (collection_name, entity_code) select collection_name, entity_code from governance.candidate c
			where not exists (select from owner o where o.entity_code = c.entity_code) order by entity_code limit 1`)
		g.exec(tell)
		g.settle("gov_handoff_intake")
		g.want(1, `select count(*) from governance.mark`)
		g.want(1, `select count(*) from governance.find((select candidate_key from governance.candidate c join governance.mark m on m.candidate_id = c.id)) f where f.dirty`)
		g.balance()
		g.drain("gov_candidate_scan")
		g.want(0, `select count(*) from governance.mark`)
		g.balance()
	}
	g.want("entity-1 keep, entity-2 keep, entity-3 keep", verdicts)
	g.want(`{"owned": 3}`, `select states::text from governance.summary`)
	g.want("changed 3, proposed 6", `select format('changed %s, proposed %s', count(*) filter (where type = 'candidate_dirtied'), count(*) filter (where type = 'verdict_proposed')) from tidemark.outbox`)
	if n := value[int](g, `select count(*)::int from tidemark.outbox where type = 'gov_candidate_scan.heartbeat' and domain = 'governance'`); n < 4 {
		t.Error("heartbeats:", n)
	}
	g.want(1, `select count(*) from tidemark.audit where object = 'ruleset 1' and reason = 'a test'`)
}

// Each source of the pack, and what it watches: read it is not behind, however old its rows; unread by the age of the first,
// or since it has been seen. A verdict and a step of the audit that are not due wait for nothing.
func TestLag(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	const behind = `select coalesce(string_agg(format('%s %s %s', s.source, s.status, s.seconds / 60), ', ' order by s.source, s.worker), 'none')
		from tidemark.worker_summary s where s.worker like 'gov%' and (s.status <> 'idle' or s.seconds <> 0)`
	old := func(age string) {
		g.exec(strings.ReplaceAll(`update birth_registry set born_at = born_at - AGE; update registry_changelog set timestamp = timestamp - AGE;
			update event_outbox set occurred_at = occurred_at - AGE; update governance.candidate set scan_time = scan_time - AGE;
			update governance.gated set gated_at = gated_at - AGE; update governance.verdict set scanned_at = scanned_at - AGE`, "AGE", "interval '"+age+"'"))
	}
	// Before anything comes there is nothing to read, but for the plan of the audit, which is for later.
	g.drainAll()
	g.exec(`select tidemark.maintain()`)
	g.want("none", behind)
	g.birth(10)
	g.exec(`insert into registry_changelog (timestamp, collection_name, entity_code) values (now() at time zone 'UTC' - interval '10 seconds', 'collection-1', 'entity-1');
		insert into event_outbox (occurred_at, subject_table, subject_ref) values (now() - interval '10 seconds', 'collection-2', 'entity-2')`)
	g.drainAll()
	g.drainAll() // what the first round has marked
	old("480 hours")
	g.exec(`update tidemark.worker_cursor set watermark_ts = watermark_ts - interval '480 hours',
		decided_through = tidemark.source_place(watermark_ts - interval '480 hours', watermark_id) where source in ('registry_changelog', 'event_outbox')`)
	g.exec(`select tidemark.maintain()`)
	g.want("none", behind)
	g.want(0, `select count(*) from tidemark.finding where kind = 'cursor_lag'`)

	g.exec(`insert into birth_registry (collection_name, entity_code) select 'collection-9', 'new-' || i from generate_series(1, 4000) i;
		insert into registry_changelog (timestamp, collection_name, entity_code) values (now() at time zone 'UTC' - interval '3 minutes', 'collection-1', 'entity-1');
		insert into event_outbox (occurred_at, subject_table, subject_ref) values (now() - interval '4 minutes', 'collection-2', 'entity-2');
		select tidemark.maintain();
		update tidemark.source_unread set since = since - interval '5 minutes' where source = 'birth_registry';
		update governance.verdict set stale_after = clock_timestamp() - interval '6 minutes' where candidate_id = (select min(candidate_id) from governance.verdict);
		select tidemark.maintain()`)
	g.want("birth_registry behind 5, birth_registry behind 5, event_outbox behind 4, governance_verdict behind 6, registry_changelog behind 3", behind)
	g.want(5, `select count(*) from tidemark.finding where kind = 'cursor_lag' and closed_at is null`)
	g.drainAll()
	g.drainAll()
	g.exec(`select tidemark.maintain()`)
	g.want("none", behind)
	g.want(0, `select count(*) from tidemark.finding where kind = 'cursor_lag' and closed_at is null`)
}

// A verdict is remade by itself when its time is over; that of a candidate of another ruleset is not.
func TestStaleVerdicts(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(20)
	g.drainAll()
	g.exec(`update governance.verdict set stale_after = clock_timestamp() - interval '10 seconds', scanned_at = scanned_at - interval '1 day' where candidate_id <= 15`)
	g.drain("gov_candidate_scan")
	g.want(20, `select count(*) from governance.verdict where stale_after between now() + interval '29 days' and now() + interval '31 days' and scanned_at > now() - interval '1 hour'`)
	g.balance()

	g.exec(`select governance.ruleset_set('2', '{"is_current": true, "stale_after": "2 days"}')`)
	g.exec(`update governance.verdict set stale_after = clock_timestamp() - interval '5 seconds'`)
	g.drainAll()
	g.want(0, `select count(*) from governance.verdict where stale_after > now()`)
	g.want(0, `select stale_count from governance.metrics`) // they wait for nothing
	g.want(0, `select count(*) from tidemark.finding where closed_at is null`)

	// The audit is what brings the candidates of the new one.
	g.audit()
	g.drainAll()
	g.want(20, `select candidates from governance.summary where is_current and ruleset_version = '2'`)
	g.want(20, `select count(*) from governance.verdict where stale_after between now() + interval '1 day' and now() + interval '3 days'`)
	g.balance()
}

// Candidates of a ruleset that is not current are left as they are, gated or not, marked or not.
func TestOldRuleset(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(4)
	g.run("gov_backfill_sweep", 0)
	g.exec(`select governance.ruleset_set('2', '{"is_current": true}')`)
	g.birth(2) // the same names: candidates of ruleset 2
	g.drain("gov_backfill_sweep")
	g.drain("gov_input_gate")
	g.drain("gov_candidate_scan")
	const states = `select string_agg(concat_ws(' ', ruleset_version, candidates, pending, states, verdicts), ', ' order by ruleset_version) from governance.summary`
	g.want(`1 4 4 {} {}, 2 2 0 {"accepted": 2} {"propose": 2}`, states)
	g.exec(`insert into governance.mark (candidate_id, reason) select id, 'changed' from governance.candidate where ruleset_version = '1';
		select governance.tally_add('gov_handoff_intake', '1', 'mark', array[''], array[4::bigint])`)
	g.drain("gov_candidate_scan")
	g.want(`1 4 4 {} {}, 2 2 0 {"accepted": 2} {"propose": 2}`, states)
	// The marks are gone: no worker judges these.
	g.want("0 0", `select concat_ws(' ', count(*), (select sum(dirty) from governance.summary)) from governance.mark`)
	g.balance()
}

// An operator adds rulesets, and cannot claim that another role did.
func TestRulesetNamesItsMaker(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`set role tidemark_admin; select governance.ruleset_set('2', '{"stale_after": "2 days"}'),
		governance.ruleset_set('2', '{"is_current": true, "description": "another"}')`)
	for _, claim := range []string{
		`insert into governance.ruleset (ruleset_version, created_by) values ('3', 'another')`,
		`update governance.ruleset set created_by = 'another'`,
		`select governance.ruleset_set('3', '{"created_by": "another"}')`,
	} {
		if _, err := g.conn.Exec(context.Background(), claim); err == nil {
			t.Errorf("%s: it was not refused", claim)
		}
	}
	g.exec(`reset role`)
	g.want(true, `select bool_and(created_by = session_user) from governance.ruleset`)
}

// Nothing is written to what is watched: the workers run as a role that may not, and triggers would tell.
func TestReadsAndProposesOnly(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(100)
	g.exec(`insert into registry_changelog (collection_name, entity_code) values ('collection-1', 'entity-1')`)
	g.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'somebody writes to %', tg_table_name; end $$;
		create trigger refuse before insert or update or delete or truncate on birth_registry for each statement execute function refuse();
		create trigger refuse before insert or update or delete or truncate on registry_changelog for each statement execute function refuse();
		create trigger refuse before insert or update or delete or truncate on event_outbox for each statement execute function refuse();
		set role tidemark_executor; select governance.find('collection-1:entity-1')`)
	g.settle("gov_handoff_intake")
	g.drainAll()
	g.exec(`reset role`)
	g.audit()
	g.exec(`set role tidemark_executor`)
	g.drainAll()
	g.exec(`reset role`)
	g.want(100, `select count(*) from governance.verdict`)
	g.want(0, `select count(*) from tidemark.finding`)
	g.want("", `select coalesce(string_agg(t, ', '), '') from unnest(array['birth_registry', 'registry_changelog', 'event_outbox']) t
		where has_table_privilege('tidemark_executor', t, 'insert, update, delete, truncate')`)
}

// Two candidates whose keys would read alike are not made one.
func TestAmbiguousKey(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`select tidemark.worker_set('gov_backfill_sweep', '{"retry_policy": {"max_attempts": 1}}');
		insert into birth_registry (collection_name, entity_code, canonical_address) values ('a', 'b:c', null), ('a:b', 'c', null), ('a:b', 'c', 'elsewhere')`)
	g.drainAll()
	g.want("a:b:c elsewhere", `select string_agg(candidate_key, ' ' order by candidate_key) from governance.candidate`)
	g.want(2, `select item_id from tidemark.dead_letter where error_detail like '%collection_has_no_colon%'`)
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`create table other (id int primary key, name text)`)
	for sql, want := range map[string]string{
		`select governance.watch('birth_registry', 'death')`:                                                                                     "kind is death",
		`select governance.watch('other', 'birth')`:                                                                                              "table public.other has no column collection_name, entity_code",
		`select governance.watch('other', 'birth', '{"colour": "name"}')`:                                                                        `no part "colour"`,
		`select governance.watch('other', 'birth', '{"collection": null}')`:                                                                      "has no column",
		`select governance.watch('other', 'birth', '{"collection": "name", "entity": "id"}', '{"safety": "clock", "timestamp_column": "name"}')`: "source other: ",
		`select governance.ruleset_set('1', '{"is_current": false}')`:                                                                            "ruleset 1 is current",
		`select governance.ruleset_set('2', '{"input_rule": "public.nothing"}')`:                                                                 "no function public.nothing(governance.candidate)",
		`select governance.ruleset_set('2', '{"input_rule": "nothing; drop"}')`:                                                                  "",
		`select governance.ruleset_set('2', '{"colour": 1}')`:                                                                                    `no column "colour"`,
	} {
		_, err := g.conn.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", sql, err, want)
		}
	}
	g.exec(`select governance.watch('tidemark.outbox', 'change', '{"collection": "subject_table", "entity": "subject_ref"}')`)
	g.want("domain <> 'governance'", `select filter from tidemark.source where source = 'tidemark_outbox'`)
}

// The house's rules for the schema tidemark hold for the pack's too.
func TestCatalog(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	const ours = `pg_proc p where p.pronamespace = 'governance'::regnamespace`
	for name, sql := range map[string]string{
		"granted to public": `select p.oid::regprocedure::text as x from ` + ours + ` and has_function_privilege('public', p.oid, 'execute')
			union all select c.oid::regclass::text from pg_class c where c.relnamespace = 'governance'::regnamespace and exists (select from aclexplode(c.relacl) a where a.grantee = 0)`,
		"without comment": `select p.oid::regprocedure::text as x from ` + ours + ` and obj_description(p.oid, 'pg_proc') is null
			union all select c.oid::regclass::text from pg_class c where c.relnamespace = 'governance'::regnamespace and c.relkind in ('r', 'v') and obj_description(c.oid, 'pg_class') is null
			union all select c.oid::regclass || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
				where c.relnamespace = 'governance'::regnamespace and c.relkind = 'r' and col_description(c.oid, a.attnum) is null`,
		// Rules are made to be inlined, and qualify what they call.
		"without search path": `select p.oid::regprocedure::text as x from ` + ours + ` and p.proname not in ('input_rule', 'verdict_rule')
			and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)`,
		"of another owner": `select p.oid::regprocedure::text as x from ` + ours + ` and pg_get_userbyid(p.proowner) <> 'tidemark_owner'
			union all select c.oid::regclass::text from pg_class c where c.relnamespace = 'governance'::regnamespace and pg_get_userbyid(c.relowner) <> 'tidemark_owner'`,
	} {
		if got := value[string](g, `select coalesce(string_agg(x, ', '), '') from (`+sql+`) q`); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The checkpoint of a page in last_run_summary.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(10)
	g.run("gov_backfill_sweep", 0)
	var got map[string]any
	if err := json.Unmarshal([]byte(value[string](g, `select (last_run_summary -> 'result')::text from tidemark.worker_cursor where worker = 'gov_backfill_sweep'`)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"rows_seen": 10.0, "added": 10.0, "dirty_marked": 0.0, "ruleset_version": "1"}, got); diff != "" {
		t.Error(diff)
	}
	const progress = `select concat_ws(' ', rows_seen, batch_count, dirty_marked, dlq, ruleset_version, started_at < ended_at) from governance.progress where worker = 'gov_backfill_sweep'`
	g.want("10 1 0 0 1 t", progress)
	// A pass without rows leaves it, and so does one of another worker.
	g.drainAll()
	g.want("0", `select last_run_summary ->> 'rows' from tidemark.worker_cursor where worker = 'gov_backfill_sweep'`)
	g.want("10 1 0 0 1 t", progress)
	g.birth(3)
	g.drainAll()
	g.want("13 2 0 0 1 t", progress)
	g.exec(`insert into registry_changelog (collection_name, entity_code) values ('collection-1', 'entity-1'), ('collection-2', 'entity-2')`)
	g.settle("gov_handoff_intake")
	g.drainAll()
	g.audit()
	g.drainAll()
	g.want("2 1", `select concat_ws(' ', dirty_marked, ruleset_version) from governance.progress where source = 'registry_changelog'`)
	g.want("1 1 0 13", `select concat_ws(' ', snapshot_ref, ruleset_version, dirty_marked, rows_seen) from governance.progress where worker = 'gov_periodic_full_audit'`)
}

// Batches done and total, of a first sweep and of an audit; after it they are equal, whatever comes.
func TestBatches(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(1000)
	const batches = `select concat_ws(' of ', batches_done, batches_total) from governance.progress where source = $1 and worker = $2`
	g.exec(`select tidemark.worker_set('gov_backfill_sweep', '{"page_size": 90}')`)
	g.want("0", batches, "birth_registry", "gov_backfill_sweep") // not known
	g.exec(`analyze birth_registry`)
	g.want("0 of 12", batches, "birth_registry", "gov_backfill_sweep")
	for range 3 {
		g.run("gov_backfill_sweep", 0)
	}
	g.want("3 of 12", batches, "birth_registry", "gov_backfill_sweep")
	g.drainAll()
	g.want("12 of 12", batches, "birth_registry", "gov_backfill_sweep")

	g.want("0", batches, "governance_audit_step", "gov_periodic_full_audit")
	g.exec(`select governance.audit_start(page_rows => 100)`)
	for range 4 {
		g.settle("gov_periodic_full_audit")
	}
	g.want("4 of 10", batches, "governance_audit_step", "gov_periodic_full_audit")
	// The summary has the latest audit that is through.
	g.want(0, `select count(snapshot_ref) from governance.summary`)
	g.audit()
	g.want("10 of 10", batches, "governance_audit_step", "gov_periodic_full_audit")
	g.want(true, `select batches_done = batches_total from governance.metrics`)
}

// governance.metrics shows the figures to watch in one row.
func TestMetrics(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`alter table birth_registry alter entity_code drop not null;
		select tidemark.worker_set('gov_backfill_sweep', '{"retry_policy": {"max_attempts": 1}}')`)
	g.birth(10)
	g.exec(`insert into birth_registry (collection_name, entity_code) values ('c', null)`)
	g.drainAll()
	g.drainAll()
	const metrics = `select concat_ws(' ', dirty_depth, stale_count, dlq_depth, heartbeat_age_seconds < 600) from governance.metrics`
	g.want("0 0 1 t", metrics)
	g.exec(`update governance.verdict set stale_after = clock_timestamp() - interval '10 seconds'
			where candidate_id in (select id from governance.candidate order by id limit 4);
		insert into registry_changelog (collection_name, entity_code) values ('collection-7', 'entity-7')`)
	g.settle("gov_handoff_intake")
	g.want("1 4 1 t", metrics)
	g.drainAll()
	g.want("0 0 1 t", metrics)
	g.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter where resolved_at is null`)
	g.want("0 0 0 t", metrics)
}

// The owner of a watched table makes a cast of her column's type, and later an index: neither runs as the workers' role.
func TestForeignCodeNeverRuns(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	owner := "tm_eve_" + strings.TrimPrefix(g.Name, "tidemark_test_")
	g.exec(`create role ` + owner + `; create schema e authorization ` + owner + `; set role ` + owner + `;
		create sequence e.runs; create type e.kind as enum ('a');
		create function e.run() returns integer language plpgsql immutable as $$ begin
			if current_user <> '` + owner + `' then perform nextval('e.runs'); end if; return 1; end $$;
		create function e.to_text(e.kind) returns text language plpgsql as $$ begin perform e.run(); return 'a'; end $$;
		create cast (e.kind as text) with function e.to_text(e.kind) as implicit;
		create table e.births (id integer generated by default as identity primary key, collection_name e.kind not null, entity_code e.kind not null,
			canonical_address e.kind);
		insert into e.births (collection_name, entity_code) values ('a', 'a');
		reset role; select governance.watch('e.births', 'birth')`)
	t.Cleanup(func() {
		if _, err := g.conn.Exec(context.Background(), `drop owned by `+owner+` cascade; drop role `+owner); err != nil {
			t.Error(err)
		}
	})
	g.drainAll()
	g.audit()
	g.want("a:a", `select candidate_key from governance.candidate`)
	g.exec(`set role ` + owner + `; create index on e.births ((e.run())); insert into e.births (collection_name, entity_code) values ('a', 'a'); reset role`)
	_, err := runOn(t.Context(), g.conn, "gov_backfill_sweep", 100)
	if err != nil {
		t.Error(err)
	}
	g.exec(`select governance.audit_start()`)
	for range 3 {
		if _, err := runOn(t.Context(), g.conn, "gov_periodic_full_audit", 100); err != nil {
			t.Error(err)
		}
	}
	g.want(false, `select is_called from e.runs`)
	g.want(true, `select exists (select from tidemark.finding where detail like 'reading e.births would run code%' and closed_at is null)`)
}

// The pack owns schemas beside that of Tidemark: a database that has it is named once where roles are shared.
func TestVerifyNamesADatabaseOnce(t *testing.T) {
	t.Parallel()
	other := tidemarktest.NewDB(t)
	install(t, other)
	name := other.Pool.Config().ConnConfig.Database
	g := govern{tidemarktest.NewDB(t), t, nil}
	g.conn = g.Connect(t)
	g.want(1, `select count(*) from tidemark.verify() v, regexp_matches(v.detail, $1 || '\M', 'g') where v."check" = 'roles'`, name)
}
