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
	t.Logf("well: watch %d pages, %.1f ms; scrape %d pages, %.1f ms", idle, took, scrape, scraped)
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
