package governance_test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The guards are on after the installation.
func TestGuards(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	install(t, test)
	g := govern{test, t, test.Connect(t)}
	g.want("gov_backfill_sweep gov_candidate_scan gov_handoff_intake gov_input_gate gov_periodic_full_audit",
		`select string_agg(worker, ' ' order by worker) from tidemark.worker where worker like 'gov%' and off_peak = '20:00-06:00 UTC'
		and peak_pause = '1 second' and lock_wait_limit = 20 and replication_lag_limit = '30 seconds'
		and (page_size = 5000 or worker = 'gov_periodic_full_audit') and page_timeout = '5 seconds'`)
	g.want("gov_handoff_intake", `select string_agg(worker, ' ' order by worker) from tidemark.worker
		where coalesce_window = '10 seconds' and storm_fraction = 0.2`)
	g.want(4, `select count(*) from tidemark.worker where worker like 'gov%' and coalesce_window is null and storm_fraction is null`)
}

// A bulk change of more than a fifth of the candidates is a storm: told, and slowed down. New births are none, however many.
func TestStorm(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.exec(`select tidemark.worker_set('gov_handoff_intake', '{"storm_fraction": 0.2, "page_size": 20}');
		alter table registry_changelog alter timestamp set default now() at time zone 'UTC' - interval '5 seconds'`)
	g.birth(100)
	g.drainAll()
	g.exec(`insert into birth_registry (collection_name, entity_code) select 'bulk', i::text from generate_series(1, 100) i`)
	g.drainAll()
	g.want(200, `select candidates from governance.summary`)
	g.want(0, `select count(*) from tidemark.finding`)

	g.exec(`insert into registry_changelog (collection_name, entity_code) select collection_name, entity_code from birth_registry order by id limit 60`)
	for range 3 {
		g.settle("gov_handoff_intake")
	}
	g.want("group_invalidation_storm gov_handoff_intake/registry_changelog/0 high 60 touches of about 200 groups at once, more than 0.2 of them",
		`select concat_ws(' ', kind, subject, severity, detail) from tidemark.finding where closed_at is null`)
	g.want("gov_handoff_intake/registry_changelog/0 high", `select concat_ws(' ', key, severity) from tidemark.outbox where type = 'group_invalidation_storm'`)
	throttled := false
	for _, r := range g.run("gov_handoff_intake", 0).Runs {
		throttled = throttled || r.Source == "registry_changelog" && r.Status == "throttled" && strings.Contains(r.Detail, "storm")
	}
	if !throttled {
		t.Error("the storm does not slow it down")
	}
}

// Changes of one candidate within the window are one mark.
func TestCoalesce(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(3)
	g.drainAll()
	g.exec(`insert into registry_changelog (collection_name, entity_code, timestamp)
		select 'collection-1', 'entity-1', now() at time zone 'UTC' - i * interval '1 second' from generate_series(5, 24) i`)
	g.settle("gov_handoff_intake")
	g.want("20 1 19", `select concat_ws(' ', events_seen, attempts_written, last_run_summary ->> 'coalesced')
		from tidemark.worker_cursor where source = 'registry_changelog'`)
	g.want(1, `select count(*) from governance.mark`)

	// Without a window too, a page makes one mark of them; the latest change stands in it.
	g.exec(`select tidemark.worker_set('gov_handoff_intake', '{"coalesce_window": null}');
		insert into event_outbox (subject_table, subject_ref, occurred_at)
		select 'collection-2', 'entity-2', now() - i * interval '1 second' from generate_series(5, 9) i`)
	g.settle("gov_handoff_intake")
	g.want(true, `select item_id = (select id::text from event_outbox order by occurred_at desc limit 1) from governance.mark where source = 'event_outbox'`)

	// What comes before the window is over waits.
	g.exec(`select tidemark.worker_set('gov_handoff_intake', '{"coalesce_window": "1 hour"}');
		insert into registry_changelog (collection_name, entity_code, timestamp) values ('collection-1', 'entity-1', now() at time zone 'UTC' - interval '4 seconds')`)
	g.run("gov_handoff_intake", 0)
	g.want("20", `select events_seen::text from tidemark.worker_cursor where source = 'registry_changelog'`)
	g.exec(`update tidemark.worker_cursor set last_run_at = last_run_at - interval '1 hour' where source = 'registry_changelog'`)
	g.run("gov_handoff_intake", 0)
	g.want("21", `select events_seen::text from tidemark.worker_cursor where source = 'registry_changelog'`)
}

// Findings of the five workers are events of the domain, by S2's names: each once, and again where it has become worse.
func TestFindingsAreTold(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	const told = `select coalesce(string_agg(concat_ws(' ', type, key, severity, payload ->> 'severity'), ', ' order by seq), '') from tidemark.outbox where domain = 'governance'`
	for _, c := range []struct{ kind, subject, want string }{
		{"cursor_lag", "gov_backfill_sweep/birth_registry/0", "cursor_lag"},
		{"cursor_lag", "gov_handoff_intake/birth_registry/0", "handoff_lag"},
		{"cursor_lag", "gov_candidate_scan/governance_mark/0", "candidate_scan_lag"},
		{"cursor_dlq", "gov_input_gate/governance_candidate/0", "cursor_dlq"},
		{"cursor_dlq", "gov_handoff_intake/birth_registry/0", "handoff_dlq"},
		{"cursor_silent_gap", "gov_periodic_full_audit/governance_audit_step/0", "cursor_silent_gap"},
		{"cursor_silent_gap", "gov_handoff_intake/birth_registry/0", "handoff_silent_gap"},
		{"cursor_lease_conflict", "gov_backfill_sweep/birth_registry/0", "cursor_lease_conflict"},
		{"cursor_watermark_regression", "gov_handoff_intake/event_outbox/0", "cursor_watermark_regression"},
		{"dlq_overflow", "gov_candidate_scan", "cursor_dlq_overflow"},
		{"dlq_overflow", "gov_handoff_intake", "handoff_dlq_overflow"},
		{"group_invalidation_storm", "gov_handoff_intake/event_outbox/0", "group_invalidation_storm"},
		// None of S2's, and none of the five.
		{"worker_failing", "gov_input_gate/governance_candidate/0", ""},
		{"cursor_lag", "gov_input_gates/births/0", ""},
		{"cursor_lag", "default", ""},
		{"target_down", "gov_input_gate", ""},
	} {
		before := value[string](g, told)
		g.exec(`select tidemark.finding_open($1, $2, 'warning', 'with a row''s own words')`, c.kind, c.subject)
		g.exec(`select tidemark.finding_open($1, $2, 'warning', 'with other words')`, c.kind, c.subject)
		want := ""
		if c.want != "" {
			want = strings.Join([]string{c.want, c.subject, "warning", "warning"}, " ")
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(value[string](g, told), before), ", "); got != want {
			t.Errorf("%s of %s: got %q, want %q", c.kind, c.subject, got, want)
		}
	}
	n := value[int](g, `select count(*)::int from tidemark.outbox`)
	g.exec(`select tidemark.finding_open('cursor_lag', 'gov_handoff_intake/birth_registry/0', 'high', 'worse');
		select tidemark.finding_open('cursor_lag', 'gov_handoff_intake/birth_registry/0', 'warning', 'better');
		select tidemark.finding_close('cursor_lag', 'gov_handoff_intake/birth_registry/0')`)
	g.want(n+1, `select count(*) from tidemark.outbox`)
	g.want("handoff_lag high", `select concat_ws(' ', type, severity) from tidemark.outbox order by seq desc limit 1`)
	g.want(0, `select count(*) from tidemark.outbox where payload::text like '%words%'`)

	// Whatever an operator makes of the type, the finding stands.
	g.exec(`select tidemark.type_set('governance', 'cursor_dlq', '{"schema": {"type": "object", "required": ["never"]}}'),
		tidemark.finding_open('cursor_dlq', 'gov_backfill_sweep/birth_registry/0', 'warning', 'x')`)
	g.exec(`select tidemark.type_set('governance', 'handoff_dlq', '{"enabled": false}'),
		tidemark.finding_open('cursor_dlq', 'gov_handoff_intake/event_outbox/0', 'warning', 'x')`)
	g.want(n+1, `select count(*) from tidemark.outbox`)
	g.want(2, `select count(*) from tidemark.finding where detail = 'x'`)
}
