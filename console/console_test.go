package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// site is a console on a database of its own, with a login that is no superuser. The header Test-Role says who asks.
type site struct {
	t    *testing.T
	db   *tidemarktest.DB
	pool *pgxpool.Pool
	url  string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, db: tidemarktest.NewDB(t)}
	login := s.db.Name + "_console"
	s.exec(`create role ` + login + ` login in role tidemark_admin`)
	t.Cleanup(func() {
		s.pool.Close()
		if _, err := s.db.Pool.Exec(context.WithoutCancel(t.Context()), `drop owned by `+login+`; drop role `+login); err != nil {
			t.Error(err)
		}
	})
	address, err := url.Parse(s.db.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(login)
	if s.pool, err = pgxpool.New(t.Context(), address.String()); err != nil {
		t.Fatal(err)
	}
	h, err := New(s.pool, Options{
		Identify: func(r *http.Request) (Person, bool) {
			for _, role := range []Role{Viewer, Operator, Admin} {
				if r.Header.Get("Test-Role") == role.String() {
					return Person{Name: "ann " + role.String(), Role: role}, true
				}
			}
			return Person{Name: "ada", Role: Admin}, r.Header.Get("Test-Role") == ""
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) exec(sql string) {
	s.t.Helper()
	if _, err := s.db.Pool.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

func value[T any](s *site, sql string) (v T) {
	s.t.Helper()
	if err := s.db.Pool.QueryRow(s.t.Context(), sql).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// get returns the status and the text of a page; role empty: an admin.
func (s *site) get(role, path string) (int, string) {
	return s.request(role, http.MethodGet, path, nil)
}

func (s *site) request(role, method, path string, form url.Values) (int, string) {
	s.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if role != "" {
		r.Header.Set("Test-Role", role)
	}
	jar, _ := cookiejar.New(nil)
	client := http.Client{Jar: jar, CheckRedirect: func(again *http.Request, _ []*http.Request) error {
		again.Header.Set("Test-Role", role)
		return nil
	}}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasPrefix(path, "/api/") && strings.Contains(string(text), "<main") && !strings.Contains(string(text), "</html>") {
		s.t.Errorf("%s: the page ends early", path)
	}
	return answer.StatusCode, string(text)
}

// hostile is text that a page must never take for its own.
const hostile = `<script>alert(1)</script>"'&{{.}}`

// populate makes one of each thing that pages show.
func (s *site) populate() {
	s.exec(`select tidemark.type_set('shop', 'order'), tidemark.type_set('shop', 'paid')`)
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true, 'test'), tidemark.gate_set('worker.default.enabled', true, 'test')`)
	s.exec(`create function public.fails(jsonb) returns void language plpgsql as $f$ begin raise exception 'no: %', $1 ->> 'key'; end $f$`)
	s.exec(`grant execute on function public.fails(jsonb) to public`)
	s.exec(`select tidemark.route_set('sql', '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.fails", "enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}')`)
	s.exec(`select tidemark.route_set('hook', '{"domain": "shop", "type": "paid", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	s.exec(`select tidemark.emit('shop', t, jsonb_build_object('text', '` + strings.ReplaceAll(hostile, "'", "''") + `', 'secret', 'tell no one'), key => '` + strings.ReplaceAll(hostile, "'", "''") + `', actor => 'bob')
		from unnest(array['order', 'paid']) t, generate_series(1, 3)`)
	s.exec(`select tidemark.emit('shop', 'unknown')`)
	s.exec(`select tidemark.route_worker_run('default')`)
	s.exec(`select tidemark.route_worker_run('default')`)
	s.exec(`create table public.births (id bigint primary key, at timestamptz not null default clock_timestamp()); grant select on public.births to tidemark_executor`)
	s.exec(`select tidemark.heartbeat_register('job', 'external_worker', '{}', '10 seconds')`)
	s.exec(`select tidemark.finding_open('disk', 'this', 'high', 'it is full')`)
	s.exec(`select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "timestamp_column": "at", "safety": "clock"}')`)
}

// Every page comes, for each role, names no secret, and takes nothing that is stored for its own text.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	letter := value[int64](s, `select min(id) from tidemark.dead_letter`)
	seq := value[int64](s, `select min(seq) from tidemark.outbox`)
	pages := []string{
		"/routes/sql?backtest=1", "/routes/hook", fmt.Sprintf("/events/%d?why=sql", seq), fmt.Sprintf("/events/%d?why=hook", seq),
		fmt.Sprintf("/dead-letters/%d", letter), "/workers/default", "/sources/births", "/dead-letters?resolved=true", "/events?type=order",
	}
	for path := range views {
		if !strings.Contains(path, "{") {
			pages = append(pages, path)
		}
	}
	pages = append(pages, "/")
	for _, page := range pages {
		for _, role := range []string{"viewer", "operator", "admin"} {
			status, text := s.get(role, page)
			if status != http.StatusOK || !strings.Contains(text, "</html>") {
				t.Errorf("%s for %s: %d %s", page, role, status, text)
			}
			if strings.Contains(text, hostile) || strings.Contains(text, "<script>") || strings.Contains(text, "ZgotmplZ") {
				t.Errorf("%s shows stored text as its own: %s", page, text)
			}
			if role == "viewer" && (strings.Contains(text, "tell no one") || strings.Contains(text, `href="/act/`)) {
				t.Errorf("%s shows a viewer a payload, or an act: %s", page, text)
			}
		}
	}
}

// Every act has a page that changes nothing, wants the reason and, where it is dangerous, the name typed; then it does what it says.
func TestActs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	for _, a := range []struct {
		act, given string
		form       string // beside what the link gives
		typed      string
		effect     string // true once it is done
	}{
		{"gate-close", "gate=routes.enabled", "", "routes.enabled", `select not tidemark.gate_open('routes.enabled')`},
		{"gate-open", "gate=routes.enabled", "", "", `select tidemark.gate_open('routes.enabled')`},
		{"route-disable", "route=hook", "", "hook", `select not enabled from tidemark.outbound_route where route_code = 'hook'`},
		{"route-enable", "route=hook", "", "", `select enabled from tidemark.outbound_route where route_code = 'hook'`},
		{"route-dry-run", "route=hook", "", "hook", `select dry_run from tidemark.outbound_route where route_code = 'hook'`},
		{"route-live", "route=hook", "", "hook", `select not dry_run from tidemark.outbound_route where route_code = 'hook'`},
		{"route-edit", "route=hook", `columns={"concurrency":7}`, "hook", `select concurrency = 7 from tidemark.outbound_route where route_code = 'hook'`},
		{"worker-pause", "worker=default", "", "default", `select paused_at is not null from tidemark.worker_cursor where worker = 'default'`},
		{"worker-resume", "worker=default", "", "", `select paused_at is null from tidemark.worker_cursor where worker = 'default'`},
		{"letter-discard", "id=1", "", "1", `select resolution is not distinct from 'discarded' from tidemark.dead_letter where id = 1`},
		{"letter-replay", "id=2", "", "", `select attempts = 2 from tidemark.dead_letter where id = 2`},
		{"letters-replay", "route=sql&code=P0001", "", "", `select attempts = 2 from tidemark.dead_letter where id = 3`},
		{"route-replay", "route=hook&from_seq=1&to_seq=6", "", "hook", `select exists (select from tidemark.replay_summary)`},
		{"replay-cancel", "id=1&route=hook", "", "", `select state = 'cancelled' from tidemark.replay_summary`},
		{"worker-rewind", "worker=default", "to_seq=0", "default", `select watermark_id = '0' from tidemark.worker_cursor where worker = 'default'`},
		{"worker-edit", "worker=default", `columns={"hole_limit":7000}`, "default", `select hole_limit = 7000 from tidemark.worker where worker = 'default'`},
		{"source-edit", "source=births", `columns={"description":"new"}`, "births", `select description = 'new' from tidemark.source where source = 'births'`},
		{"finding-acknowledge", "id=1", "", "", `select acked_at is not null from tidemark.finding where id = 1`},
		{"heartbeat-deregister", "executor=job", "", "job", `select not exists (select from tidemark.heartbeat_health where executor_id = 'job')`},
		{"stage-dry-run", "", "", "dry-run", `select stage = 'dry_run' from tidemark.stage`},
		{"stage-live", "", "", "live", `select stage = 'live' from tidemark.stage`},
	} {
		audited := `select count(*) from tidemark.audit where person = 'ada'`
		before := value[int](s, audited)
		status, page := s.get("", "/act/"+a.act+"?"+a.given)
		if status != http.StatusOK || strings.Contains(page, `class="problem"`) {
			t.Fatalf("the page of %s: %d %s", a.act, status, page)
		}
		if value[bool](s, a.effect) {
			t.Fatalf("%s is done before it is asked for", a.act)
		}
		given, err := url.ParseQuery(a.given)
		if err != nil {
			t.Fatal(err)
		}
		if name, v, ok := strings.Cut(a.form, "="); ok {
			given.Set(name, v)
		}
		given.Set("reason", "of "+a.act)
		if a.typed != "" {
			if status, page := s.request("", "POST", "/act/"+a.act, given); status != http.StatusUnprocessableEntity || !strings.Contains(page, "nothing was done") || value[bool](s, a.effect) {
				t.Fatalf("%s without its name: %d %s", a.act, status, page)
			}
			given.Set("typed", a.typed)
		}
		for _, role := range []string{"viewer", "operator"} {
			if acts[a.act].role <= Operator && role == "operator" {
				continue
			}
			if status, _ := s.request(role, "POST", "/act/"+a.act, given); status != http.StatusForbidden || value[bool](s, a.effect) {
				t.Fatalf("%s by a %s: %d", a.act, role, status)
			}
		}
		status, page = s.request("", "POST", "/act/"+a.act, given)
		if status != http.StatusOK || !value[bool](s, a.effect) {
			t.Fatalf("%s: %d %s", a.act, status, page)
		}
		if value[int](s, audited) == before && a.act != "letter-replay" && a.act != "letters-replay" {
			t.Errorf("%s is not in the audit under the person's name", a.act)
		}
	}
}

// With a thousand routes a page stays a page: its size and its statements are bounded.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`select tidemark.route_set('r' || n, '{"domain": "shop", "type": "paid", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}') from generate_series(1000, 1999) n`)
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, source, error_code, event_snapshot, idempotency_key)
		select (select id from tidemark.outbound_route where route_code = 'hook'), (select id from tidemark.worker where worker = 'default'), 1000000 + n,
			gen_random_uuid(), 'outbox', 'X' || n % 3, '{}', 'k' || n from generate_series(1, 12000) n`)
	for _, path := range []string{"/", "/routes", "/dead-letters", "/workers", "/audit", "/events"} {
		status, text := s.get("", path)
		if status != http.StatusOK || len(text) > 100<<10 {
			t.Errorf("%s: %d, %d bytes", path, status, len(text))
		}
	}
	if _, text := s.get("", "/routes?q=r1999"); !strings.Contains(text, "/routes/r1999") || strings.Contains(text, "/routes/r1998") {
		t.Errorf("the search finds %s", text)
	}
	seen := 0
	for after := ""; ; {
		_, text := s.get("", "/routes?q=r1&after="+after)
		seen += strings.Count(text, `href="/routes/r1`)
		_, rest, more := strings.Cut(text, "&amp;after=")
		if !more {
			break
		}
		after, _, _ = strings.Cut(rest, `"`)
	}
	if seen != 1000 {
		t.Errorf("the pages show %d routes of 1000", seen)
	}
}
