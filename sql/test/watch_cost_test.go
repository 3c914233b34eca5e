package test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// many makes 100 workers that run, and 1,000 routes.
func many(s session) {
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true)`)
	s.exec(`select tidemark.type_set('shop', 'order.paid')`)
	s.exec(`select tidemark.worker_set('w' || i) from generate_series(1, 99) i`)
	s.exec(`select tidemark.gate_set('worker.' || w.worker || '.enabled', true) from tidemark.worker w`)
	s.exec(`select tidemark.route_set('r' || i, jsonb_build_object('domain', 'shop', 'worker', case when i % 100 = 0 then 'default' else 'w' || i % 100 end,
		'target_kind', 'webhook', 'target_ref', 'https://example.org/' || i, 'options', '{"unsigned": true}'::jsonb, 'enabled', true, 'dry_run', false)) from generate_series(1, 1000) i`)
	s.exec(`update tidemark.worker_cursor set last_run_at = now(), last_run_summary = '{}'`)
	s.exec(`update tidemark.heartbeat set last_beat_at = now(), last_status = 'idle'`)
	s.exec(`select tidemark.heartbeat_daemon('courier')`)
	s.exec(`analyze`)
}

// cost is how many pages a statement reads.
func (s session) cost(query string) (pages int, took float64) {
	s.t.Helper()
	s.exec(query) // plans are made
	number := func(pattern, text string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			return 0
		}
		n, _ := strconv.ParseFloat(m[1], 64)
		return n
	}
	for _, line := range column[string](s, `explain (analyze, buffers, timing off) `+query) {
		if pages == 0 {
			pages = int(number(`shared hit=(\d+)`, line) + number(`read=(\d+)`, line))
		}
		took += number(`Execution Time: ([0-9.]+) ms`, line)
	}
	return pages, took
}

// The watch of 100 workers and 1,000 routes costs what these cost, and what waits for them costs a bounded part of an index.
func TestWatchCost(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	many(s)
	const watch = `select * from tidemark.watch('courier/1', false)`
	idle, took := s.cost(watch)
	scrape, scraped := s.cost(`select tidemark.scrape()`)
	_, silence := s.cost(`select * from tidemark.stale_check()`)
	_, upkeep := s.cost(`select * from tidemark.maintain()`)
	t.Logf("well: watch %d pages, %.1f ms; scrape %d pages, %.1f ms; silence %.1f ms; maintain %.1f ms", idle, took, scrape, scraped, silence, upkeep)
	s.wantRows(`select cause from tidemark.cause`)
	const most = 25000 // pages; nearly all of them are read again and again
	if idle > most || scrape > most {
		t.Errorf("the watch reads %d pages, and a scrape %d: want at most %d", idle, scrape, most)
	}

	// An outage: each route has what waits, and dead letters.
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, attempt_no, next_attempt_at)
		select w.id, r.id, n, 1, now() from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker cross join generate_series(1, 20) n`)
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select r.id || '/' || n, w.id, r.id, n, gen_random_uuid(), '{}', 'http_400'
		from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker cross join generate_series(1, 100) n`)
	s.exec(`vacuum analyze`)
	outage, took := s.cost(watch)
	t.Logf("1,000 routes with trouble: %d pages, %.1f ms", outage, took)
	s.wantRows(`select count(*)::text from tidemark.cause where cause = 'dead_letters'`, "1000")
	// For each route: its rows, the places of them in an index, and what is written about its cause.
	if most := idle + 1000*100; outage > most {
		t.Errorf("the watch of 1,000 routes with trouble reads %d pages, want at most %d", outage, most)
	}
}

// capturedTables makes captured tables, whose inserts and deletes become events.
func capturedTables(s session, tables int) {
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.exec(`select tidemark.type_set('app', o) from unnest('{insert,delete}'::text[]) o`)
	s.exec(`do $$ begin
		for i in 1 .. ` + strconv.Itoa(tables) + ` loop
			execute format('create table public.t%s (id int primary key, a text, b text, c int, d numeric)', i);
			perform tidemark.inbound_route_set(format('t%s-%s', i, o), jsonb_build_object('source_schema', 'public', 'source_table', 't' || i, 'sql_event', o,
				'domain', 'app', 'type', o, 'payload_columns', '["a", "b", "c", "d"]'::jsonb, 'enabled', true, 'dry_run', false)) from unnest('{insert,delete}'::text[]) o;
			perform tidemark.capture_attach(format('public.t%s', i)::regclass, 'test');
		end loop; end $$`)
}

// The watch of 200 captured tables reads a few rows of the catalogs for each, and finds the one that is broken.
func TestWatchCostOfCapturedTables(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	const tables = 200
	const watch = `select * from tidemark.watch('courier/1', false)`
	before, _ := s.cost(watch)
	capturedTables(s, tables)
	s.exec(`analyze`)
	s.round()
	s.exec(`update tidemark.capture_round set noted_at = noted_at - interval '1 minute'`)
	idle, took := s.cost(watch)
	t.Logf("%d pages without, %d pages and %.1f ms with %d captured tables", before, idle, took, tables)
	// For each of the two routes of a table: the table, its trigger with its function, and its four columns.
	if most := tables * 2 * 20; idle-before > most {
		t.Errorf("%d captured tables cost %d pages, want at most %d", tables, idle-before, most)
	}
	s.wantRows(`select cause from tidemark.cause`)
	s.exec(`alter table public.t77 drop column c`)
	s.exec(`drop trigger tidemark_capture_insert on public.t150; alter table public.t151 disable trigger tidemark_capture_delete`)
	s.wantRows(`select cause || ' ' || subject from tidemark.cause order by 1`,
		"capture_broken t77-delete", "capture_broken t77-insert", "capture_disabled public.t150", "capture_disabled public.t151")

	// With so many, maintain makes their functions anew now and then: one call in ten.
	s.exec(`alter table public.t10 add column f int`)
	calls := 1
	for one[bool](s, `select exists (select from tidemark.capture_stale where table_name = 't10')`) {
		s.exec(`select tidemark.maintain()`)
		if calls++; calls > 300 {
			t.Fatal("maintain does not make the function anew")
		}
	}
	t.Logf("made anew by call %d", calls-1)
}
