package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// The first page names the daemons, what the log holds, and who changed what: also where nothing is wrong.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if _, page := s.get("", "/"); !strings.Contains(page, "no daemon has ever run") || !strings.Contains(page, "Connections") || strings.Contains(page, "ZgotmplZ") {
		t.Errorf("an empty installation: %s", page)
	}
	s.exec(`select tidemark.stage_set('live', 'opening day'), tidemark.gate_set('routes.enabled', true, 'opening day')`)
	s.exec(`select tidemark.sign_in_note('eve', 'refused', 'wrong name or password')`)
	s.exec(`select tidemark.heartbeat_daemon('one'), tidemark.heartbeat_daemon('two'), tidemark.heartbeat_daemon('three', 'stopped')`)
	s.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '10 minutes' where executor_id = 'daemon/two'`)
	s.exec(`select tidemark.finding_open('disk', 'this', 'high', 'it is full'); update tidemark.finding set closed_at = now() where kind = 'disk'`)
	s.exec(`select tidemark.type_set('shop', 'order'), tidemark.emit('shop', 'order')`)
	_, page := s.get("viewer", "/")
	text := strings.Join(strings.Fields(tags.ReplaceAllString(page, " ")), " ")
	for _, want := range []string{"one 0 s ago", "two silent 10 m ago", "three stopped", "routes.enabled = true", "opening day", "finding disk this, over"} {
		if !strings.Contains(text, want) {
			t.Errorf("the overview lacks %q: %s", want, text)
		}
	}
	if strings.Contains(text, "wrong name or password") {
		t.Errorf("sign-ins crowd out what was changed: %s", text)
	}
}

// Of many routes the overview shows those with most dead letters, then those with most that waits, and sums up no others.
func TestOverviewShowsTheWorstRoutes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.exec(`select tidemark.route_set('r' || n, '{"domain": "shop", "type": "order", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}') from generate_series(100, 160) n`)
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, error_code, event_snapshot, idempotency_key)
		select r.id, w.id, n, gen_random_uuid(), 'http_400', '{}', r.id || ' ' || n from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 5) n
		where r.route_code = 'r150' and n < 4 or r.route_code = 'r155'`)
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq) select w.id, r.id, n from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 5) n
		where r.route_code in ('r140', 'r155') or r.route_code = 'r145' and n < 3`)
	shows := func(codes ...string) {
		t.Helper()
		s.serve(s.pool, false) // it has not read anything yet
		_, page := s.get("", "/")
		_, page, _ = strings.Cut(page, `id="flow"`)
		page, _, _ = strings.Cut(page, `id="workers"`)
		at := -1
		for _, code := range codes {
			next := strings.Index(page, fmt.Sprintf("/routes/%s\"", code))
			if next <= at {
				t.Errorf("%s is not where it should be: %s", code, page)
			}
			at = next
		}
		if rows := strings.Count(page, "<tr><td>"); rows != rowsOfOverview || !strings.Contains(page, "All 61 routes") {
			t.Errorf("%d routes: %s", rows, page)
		}
	}
	shows("r155", "r150", "r140", "r145", "r100")
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, error_code, event_snapshot, idempotency_key)
		select r.id, w.id, 9, gen_random_uuid(), 'http_400', '{}', r.id || ' 9' from tidemark.outbound_route r join tidemark.worker w using (worker) where r.route_code < 'r130'`)
	shows("r155", "r150", "r100", "r117")
}

// Of many workers the overview shows those that are furthest behind, and tells that there are more.
func TestOverviewShowsWorkersBehind(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.worker_set('w' || n), tidemark.gate_set('worker.w' || n || '.enabled', true) from generate_series(100, 130) n; select tidemark.gate_set('routes.enabled', true)`)
	s.exec(`select tidemark.type_set('shop', 'order'); select tidemark.emit('shop', 'order') from generate_series(1, 3)`)
	s.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = created_at - interval '1 hour'; reset session_replication_role`)
	s.exec(`update tidemark.worker_cursor set watermark_id = case worker when 'w125' then '1' else '3' end`)
	_, page := s.get("", "/")
	_, page, _ = strings.Cut(page, `id="workers"`)
	behind, first := strings.Index(page, `/workers/w125"`), strings.Index(page, `/workers/w101"`)
	if rows := strings.Count(page, `<td><a href="/workers/`); behind < 0 || first < behind || rows != rowsOfOverview || !strings.Contains(page, "All 32 cursors") {
		t.Errorf("%d workers: %s", rows, page)
	}
}

// The health in the head of the other pages is that of the overview: the causes are not looked for again, until an act.
func TestHealthComesWithTheOverview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	counted := &counter{}
	config := s.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s.serve(pool, false)
	cost := func(path string) int64 {
		before := counted.statements.Load()
		if status, page := s.get("", path); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, page)
		}
		return counted.statements.Load() - before
	}
	alone := cost("/heartbeats")
	s.serve(pool, false)
	cost("/")
	if after := cost("/heartbeats"); after != alone-1 {
		t.Errorf("%d statements after the overview, %d without it", after, alone)
	}
	// What an overview has found before an act is not told after it.
	c := cache{kept: map[string]*kept{}}
	age := c.age()
	c.clear()
	c.put("k", answer{body: []byte("old")}, time.Now().Add(time.Hour), age)
	if len(c.kept) > 0 {
		t.Error("it is kept")
	}
}

// Events are found by number, by id and by time, the audit by time.
func TestSearches(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.type_set('shop', 'order'); select tidemark.emit('shop', 'order', key => 'k1')`)
	id := value[string](s, `select event_id::text from tidemark.outbox`)
	for _, name := range []string{"1", "+" + id + "+"} {
		if status, page := s.get("", "/events/find?event="+name); status != http.StatusOK || !strings.Contains(page, id) || !strings.Contains(page, "What became of it") {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
	if status, page := s.get("", "/events/find?event=..%2Fsettings"); status == http.StatusOK || !strings.Contains(page, "named by its number or its id") {
		t.Errorf("%d %s", status, page)
	}
	for path, found := range map[string]bool{
		"/events?since=2026-01-31T12:00": true, "/events?until=2026-01-31T12:00": false, "/audit?since=2026-01-31T12:00": true, "/audit?until=2026-01-31T12:00": false,
	} {
		if status, page := s.get("", path); status != http.StatusOK || strings.Contains(page, "<tbody>") != found {
			t.Errorf("%s: %d %s", path, status, page)
		}
	}
	if status, _ := s.get("", "/events?since=nonsense"); status != http.StatusUnprocessableEntity {
		t.Errorf("nonsense: %d", status)
	}
}
