package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO8: what a backtest says of past events is what comes of them once the route is enabled and live and a worker
// reads them again. Random events, random routes beside it, random routes tested, one after the other;
// TIDEMARK_SEED=n repeats a run.
func TestBacktestAgreesWithThePass(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv("TIDEMARK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TIDEMARK_SEED: %v", err)
		}
	}
	t.Logf("TIDEMARK_SEED=%d", seed)
	plain := []string{
		`"target_kind": "sql", "target_ref": "app.a", "exclusive": true`, `"target_kind": "sql", "target_ref": "app.a", "exclusive": true`,
		`"target_kind": "webhook", "target_ref": "own"`, `"target_kind": "river", "target_ref": "own"`, `"target_kind": "pigeon"`,
	}
	for i, target := range plain {
		plain[i] = `{"domain": "shop", "type": "order.*", "stream": null, "key_filter": null, "payload_filter": null, "fail_closed": true, "retry_policy": null, ` + target + `}`
	}
	seen := map[string]bool{}
	t.Run("rounds", func(t *testing.T) {
		for round := range uint64(3) {
			x := newBatchTest(t, true, 0.2, rand.New(rand.NewPCG(seed, round)))
			x.emit(300)
			x.late.commit()
			x.run()
			for i := range 12 {
				fixed := `{}` // the first ones so that each outcome comes up
				if i < len(plain) {
					fixed = plain[i]
				}
				for _, outcome := range x.backtest(fmt.Sprint("new", i), fixed) {
					seen[outcome] = true
				}
			}
		}
	})
	for _, outcome := range []string{"pending", "failed ambiguous_route", "failed unknown_target_kind", "failed 42P01", "not claimed"} {
		if !seen[outcome] && !t.Failed() {
			t.Errorf("no route came to %s: too little to prove anything", outcome)
		}
	}
}

// backtest tests a new random route, lets its worker decide the same events, and returns what outcomes there were.
func (x *batchTest) backtest(code, fixed string) []string {
	x.t.Helper()
	x.exec(`insert into tidemark.outbound_route (route_code, worker, domain, type, stream, key_filter, payload_filter, target_kind, target_ref, exclusive, enabled, dry_run, fail_closed, retry_policy)
		select $1, r.worker, r.domain, r.type, r.stream, r.key_filter, r.payload_filter, r.target_kind, r.target_ref, r.exclusive, false, true, r.fail_closed, r.retry_policy
		from jsonb_populate_record(null::tidemark.outbound_route, $2::text::jsonb || $3::text::jsonb) r`, code, x.route(), fixed)
	const total = `select format('%s events=%s keys=%s without=%s bytes=%s largest=%s first=%s last=%s', coalesce(concat_ws(' ', b.outcome, b.reason), ''), b.events, b.keys, b.without_key, b.payload_bytes, b.largest_payload, b.first_at, b.last_at)
		from tidemark.route_backtest($1, '-infinity') b where b.outcome is not null and b.domain is null order by 1`
	const perType = `select format('%s %s/%s events=%s keys=%s without=%s bytes=%s largest=%s first=%s last=%s newest=%s', coalesce(nullif(concat_ws(' ', b.outcome, b.reason), ''), 'not claimed'), b.domain, b.type, b.events, b.keys, b.without_key, b.payload_bytes, b.largest_payload, b.first_at, b.last_at, b.newest)
		from tidemark.route_backtest($1, '-infinity', samples => 4) b where b.domain is not null order by 1`
	totals, types := column[string](x.session, total, code), column[string](x.session, perType, code)
	outcomes := column[string](x.session, `select distinct coalesce(nullif(concat_ws(' ', b.outcome, b.reason), ''), 'not claimed') from tidemark.route_backtest($1, '-infinity') b`, code)

	x.exec(`update tidemark.outbound_route set enabled = true, dry_run = false where route_code = $1`, code)
	for _, worker := range []string{"default", "other"} {
		x.exec(`select tidemark.worker_rewind($1, 0, 'drill')`, worker)
	}
	x.run()
	// What the passes made of the events of the route's worker. What was delivered in the pass was pending.
	const real = `with real as (
		select o.*, case a.outcome when 'sent' then 'pending' else a.outcome::text end as outcome, a.reason
		from tidemark.outbound_route r
		join tidemark.worker w on w.worker = r.worker
		join tidemark.outbox o on w.domains is null or o.domain = any (w.domains)
		left join tidemark.route_attempt a on a.seq = o.seq and a.route_code = r.route_code
		where r.route_code = $1) `
	const sizes = `keys=%s without=%s bytes=%s largest=%s first=%s last=%s`
	equal(x.t, code+" in all", totals, column[string](x.session, real+`select format('%s events=%s `+sizes+`', concat_ws(' ', outcome, reason), count(*),
		count(distinct key), count(*) filter (where key is null), sum(length(payload::text)), max(length(payload::text)), min(created_at), max(created_at))
		from real where outcome is not null group by outcome, reason order by 1`, code))
	equal(x.t, code+" per type", types, column[string](x.session, real+`select case when outcome is null
		then format('not claimed %s/%s events=%s keys= without= bytes= largest= first=%s last=%s newest={}', domain, type, count(*), min(created_at), max(created_at))
		else format('%s %s/%s events=%s `+sizes+` newest=%s', concat_ws(' ', outcome, reason), domain, type, count(*),
			count(distinct key), count(*) filter (where key is null), sum(length(payload::text)), max(length(payload::text)), min(created_at), max(created_at),
			(array_agg(seq order by seq desc))[:4]) end
		from real group by outcome, reason, domain, type order by 1`, code))
	if x.t.Failed() {
		x.t.Fatal(column[string](x.session, `select to_jsonb(r)::text from tidemark.outbound_route r where r.route_code = $1`, code))
	}
	return outcomes
}

const backtested = `select concat_ws(' ', coalesce(outcome::text, 'not claimed'), reason, domain, type, events) from tidemark.route_backtest`

// paid is an installation with a route that is off, and a log of which it claims some.
func paid(t *testing.T) session {
	t.Helper()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', type) from unnest(array['order.paid', 'order.sent', 'stock']) type;
		select tidemark.route_set('paid', '{"domain": "shop", "type": "order.*", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	s.exec(`select tidemark.emit('shop', case when n % 4 = 0 then 'stock' when n % 2 = 0 then 'order.sent' else 'order.paid' end,
		jsonb_build_object('n', n), key => case when n % 3 > 0 then 'k' || n % 3 end) from generate_series(1, 20) n`)
	return s
}

// It writes nothing, it needs no more than to read, and it leaves the log as it was.
func TestBacktestOnlyReads(t *testing.T) {
	t.Parallel()
	s := paid(t)
	want := []string{"pending 15", "pending shop order.paid 10", "pending shop order.sent 5", "not claimed shop stock 5"}
	const state = `select md5(query_to_xml('select * from tidemark.outbox', true, true, '')::text || query_to_xml('select * from tidemark.worker_cursor', true, true, '')::text
		|| query_to_xml('select * from tidemark.attempt', true, true, '')::text || query_to_xml('select * from tidemark.decision', true, true, '')::text
		|| query_to_xml('select * from tidemark.outbound_route', true, true, '')::text || query_to_xml('select * from tidemark.audit', true, true, '')::text)`
	before := one[string](s, state)
	s.exec(`begin transaction isolation level repeatable read read only; set local role tidemark_reader`)
	s.wantRows(backtested+`('paid', now() - interval '1 hour')`, want...)
	s.rollback()
	s.exec(`begin transaction read only`)
	s.wantRows(backtested+`('paid', now() - interval '1 hour')`, want...)
	s.wantRows(`select coalesce(pg_current_xact_id_if_assigned()::text, 'none')`, "none")
	s.commit()
	equal(t, "state", one[string](s, state), before)
}

// A reader gets numbers of events and their sizes, and no way to a payload.
func TestBacktestShowsNoPayload(t *testing.T) {
	t.Parallel()
	s := paid(t)
	s.exec(`select tidemark.emit('shop', 'order.paid', '{"secret_word": "plugh"}', key => 'k9')`)
	s.exec(`set role tidemark_reader`)
	if got := one[string](s, `select string_agg(b::text, ' ') from tidemark.route_backtest('paid', '-infinity') b`); strings.Contains(got, "plugh") || !strings.Contains(got, "21") {
		t.Error(got)
	}
	s.refused("42501", "permission denied for table outbox", `select tidemark.event_json(o) from tidemark.outbox o`)
	s.exec(`reset role; set role tidemark_emitter`)
	s.refused("42501", "permission denied for function route_backtest", `select * from tidemark.route_backtest('paid', '-infinity')`)
}

func TestBacktestArguments(t *testing.T) {
	t.Parallel()
	s := paid(t)
	for _, c := range []struct{ code, text, arguments string }{
		{"TM004", `there is no route "nope"`, `'nope', now()`},
		{"TM004", `there is no route`, `null, now()`},
		{"TM005", "covers the past", `'paid', now() + interval '1 minute'`},
		{"TM005", "covers the past", `'paid', 'infinity'`},
		{"TM005", "since is null", `'paid', null`},
		{"TM005", "does not begin at", `'paid', now(), now()`},
		{"TM005", "does not begin at", `'paid', now(), now() - interval '1 second'`},
		{"TM005", "samples is -1", `'paid', now(), samples => -1`},
		{"TM005", "samples is 101", `'paid', now(), samples => 101`},
		{"TM005", "samples is null", `'paid', now(), samples => null`},
	} {
		s.refused(c.code, c.text, `select * from tidemark.route_backtest(`+c.arguments+`)`)
	}
	s.wantRows(backtested + `('paid', now())`)
	s.wantRows(`select newest::text from tidemark.route_backtest('paid', '-infinity', samples => 0)`, "{}", "{}", "{}", "{}")
	s.wantRows(`select newest::text from tidemark.route_backtest('paid', '-infinity', samples => 2)`, "{}", "{19,17}", "{18,14}", "{}")
	s.wantRows(`select cardinality(newest)::text from tidemark.route_backtest('paid', '-infinity', samples => 100)`, "0", "10", "5", "0")
	s.wantRows(`select events::text from tidemark.route_backtest('paid', '-infinity', 'infinity') where domain is null`, "15")
}

// The window is [since, until), and is found by the index on created_at.
func TestBacktestWindow(t *testing.T) {
	t.Parallel()
	s := paid(t)
	for _, c := range []struct{ since, until, want string }{
		{`(select created_at from tidemark.outbox where seq = 3)`, `(select created_at from tidemark.outbox where seq = 7)`, "3,5,6"},
		{`(select created_at from tidemark.outbox where seq = 19)`, `null`, "19"},
		{`'-infinity'`, `(select created_at from tidemark.outbox where seq = 2)`, "1"},
	} {
		s.wantRows(`select string_agg(n::text, ',' order by n) from tidemark.route_backtest('paid', `+c.since+`, `+c.until+`) b cross join lateral unnest(b.newest) n`, c.want)
	}
	s.begin()
	s.exec(`select * from tidemark.route_backtest('paid', now() - interval '1 minute')`)
	s.wantRows(`select (sum(seq_scan) = 0 and sum(idx_scan) > 0)::text from pg_stat_xact_user_tables where relname like 'outbox\_%'`, "true")
}

// The busiest minute of all types is none of a type's own.
func TestBacktestBusiestMinute(t *testing.T) {
	t.Parallel()
	s := paid(t)
	s.exec(`alter table tidemark.outbox disable trigger all;
		delete from tidemark.outbox where type = 'stock';
		update tidemark.outbox set created_at = '2026-01-31 12:00:59.9+00' where seq in (1, 3, 5);
		update tidemark.outbox set created_at = '2026-01-31 12:01:00+00' where seq in (7, 9, 2, 6);
		update tidemark.outbox set created_at = '2026-01-31 12:02:00+00' where seq in (10, 14, 18);
		update tidemark.outbox set created_at = '2026-01-31 12:03:00+00' where seq in (11, 13, 15);
		update tidemark.outbox set created_at = '2026-02-01 00:00:00+00' where seq in (17, 19)`)
	s.exec(`set time zone 'UTC'`)
	s.wantRows(`select concat_ws(' ', type, busiest_events, busiest_minute) from tidemark.route_backtest('paid', '2026-01-01')`,
		"4 2026-01-31 12:01:00+00", "order.paid 3 2026-01-31 12:00:00+00", "order.sent 3 2026-01-31 12:02:00+00")
}

// A target inside the database that is not there fails, as it would; of others nothing is known.
func TestBacktestWithoutTarget(t *testing.T) {
	t.Parallel()
	s := paid(t)
	s.exec(`update tidemark.outbound_route set target_kind = 'notify', options = '{}'`)
	s.allowAnyTarget()
	for change, want := range map[string]string{
		`{"target_kind": "sql", "target_ref": "app.nowhere"}`:                     "failed 42883 route paid: there is no function app.nowhere(jsonb)",
		`{"target_kind": "river", "target_ref": "x"}`:                             "failed 42P01 route paid: there is no table public.river_job",
		`{"target_kind": "river", "target_ref": "x", "options": {"priority": 9}}`: `failed 22023 route paid: option "priority" is 9, must be a whole number from 1 to 4`,
		`{"target_kind": "pigeon"}`:                                               "failed unknown_target_kind",
		`{"target_kind": "pigeon", "fail_closed": false}`:                         "skipped unknown_target_kind",
		`{"target_kind": "kafka", "target_ref": "no topic"}`:                      "pending",
		`{"target_kind": "notify", "target_ref": "orders", "fail_closed": true}`:  "pending",
	} {
		s.begin()
		// As a plain statement can: route_set refuses some of these.
		s.exec(`update tidemark.outbound_route r set (target_kind, target_ref, options, fail_closed) = (
			select n.target_kind, n.target_ref, n.options, n.fail_closed from jsonb_populate_record(r, $1::text::jsonb) n) where route_code = 'paid'`, change)
		s.wantRows(`select concat_ws(' ', outcome, reason, detail) from tidemark.route_backtest('paid', '-infinity') where domain is null`, want)
		s.rollback()
	}
}

// What the worker does not read is not examined.
func TestBacktestOfAWorkersDomains(t *testing.T) {
	t.Parallel()
	s := paid(t)
	s.exec(`select tidemark.type_set('bank', 'order.paid'), tidemark.route_set('paid', '{"domain": "*"}')`)
	s.exec(`select tidemark.emit('bank', 'order.paid')`)
	s.wantRows(backtested+`('paid', '-infinity')`, "pending 16", "pending bank order.paid 1", "pending shop order.paid 10", "pending shop order.sent 5", "not claimed shop stock 5")
	s.exec(`select tidemark.worker_set('default', '{"domains": ["bank"]}')`)
	s.wantRows(backtested+`('paid', '-infinity')`, "pending 1", "pending bank order.paid 1")
}
