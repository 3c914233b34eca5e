package console

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// site is a console on a database of its own, with a login that is no superuser. The header Test-Role says who asks.
type site struct {
	t    *testing.T
	db   *tidemarktest.DB
	pool *pgxpool.Pool
	url  string

	pages map[string]string // by name
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, db: tidemarktest.NewDB(t)}
	s.pool = testserver.Login(t, s.db.URL, s.db.Name+"_console", "tidemark_admin")
	s.serve(s.pool, false)
	return s
}

// serve serves a console of the pool.
func (s *site) serve(pool *pgxpool.Pool, readOnly bool) {
	s.t.Helper()
	h, err := New(pool, Options{
		ReadOnly: readOnly,
		Identify: func(r *http.Request) (Person, bool) {
			for _, role := range []Role{Viewer, Operator, Admin} {
				if r.Header.Get("Test-Role") == role.String() {
					return Person{Name: "ann " + role.String(), Role: role}, true
				}
			}
			return Person{Name: "ada", Role: Admin}, r.Header.Get("Test-Role") == ""
		},
		Logger: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(h)
	s.t.Cleanup(server.Close)
	s.url = server.URL
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
	s.exec(`insert into tidemark.route_minute (route_id, at, sent, retried, failed, waiting)
		select r.id, date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', 40 + 30 * sin(n / 40.0), greatest(0, 9 * sin(n / 11.0)), (n % 97 = 5)::int, abs(50 * sin(n / 60.0))
		from tidemark.outbound_route r, generate_series(1, 1500) n where r.route_code = 'hook'`)
	s.exec(`insert into tidemark.log_minute select date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', 90 * (1500 - n) from generate_series(1, 1500) n`)
	s.exec(`insert into tidemark.letter_job (action, route_id, letters, done, outcomes, due_at, requested_by, reason)
		select 'replay', id, 1200, 300, '{"sent": 298, "failed": 2}', clock_timestamp() + interval '1 hour', 'console', 'the target is mended' from tidemark.outbound_route where route_code = 'hook'`)
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

// columnsOfNew are the columns of things that acts make, before the rest of the form.
var columnsOfNew = map[string]string{
	"worker-new":        `columns={"domains":["shop"]}&`,
	"source-new":        `columns={"table":"public.births","id_column":"id","timestamp_column":"at","safety":"clock"}&`,
	"route-new":         `columns={"domain":"shop","type":"paid","target_kind":"notify","target_ref":"again"}&`,
	"capture-route-new": `columns={"source_schema":"public","source_table":"births","sql_event":"insert","domain":"shop","type":"order","payload_columns":["id"]}&`,
}

// Every act is a button of a page, or of a cause. It has a page of its own that changes nothing, wants the reason and, where it is
// dangerous, the name typed; then it does what it says.
func TestActs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`select tidemark.inbound_route_set('births_in', '{"source_schema": "public", "source_table": "births", "sql_event": "insert", "domain": "shop",
		"type": "order", "payload_columns": ["id", "at"], "enabled": true, "dry_run": false}')`)
	s.exec(`alter table public.births owner to ` + s.db.Name + `_console; delete from tidemark.log_minute`)
	service := s.populateCommands()
	s.exec(`create function public.greet(births[]) returns void language sql as 'select'; alter function public.greet owner to ` + s.db.Name + `_console`)
	s.exec(`select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}'), tidemark.worker_source_add('greeter', 'births')`)
	s.exec(`select tidemark.command_partition('events', 3, 'T', 0, 100)`)
	done := map[string]bool{"pack-install": true, "verify-cancel": true} // TestPackIsInstalled, TestVerifyOnThePage
	before := map[string]string{                                         // what the database wants first
		"command-delete": `update tidemark.command set enabled = false; select tidemark.command_discard('` + service + `', 'tried', 'x'); select tidemark.dead_letter_discard(l.id, 'x') from tidemark.dead_letter l where l.source = 'commands' and l.resolved_at is null`,
		"service-delete": `select tidemark.producer_key_revoke('k2', 'x'); select tidemark.producer_key_delete('k2', 'x'); select tidemark.command_disallow('` + service + `', 'shop');
			select tidemark.route_set('results', '{"enabled": false}'); select tidemark.route_delete('results', 'x')`,
	}
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04")
	for _, a := range []struct {
		page       string // that has its button; empty: a cause has it
		act, given string
		form       string // beside what the link gives
		typed      string
		effect     string // true once it is done
	}{
		{"/settings", "gate-close", "gate=routes.enabled", "", "routes.enabled", `select not tidemark.gate_open('routes.enabled')`},
		{"/settings", "gate-open", "gate=routes.enabled", "", "routes.enabled", `select tidemark.gate_open('routes.enabled')`},
		{"/routes/hook", "route-disable", "route=hook", "", "hook", `select not enabled from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/hook", "route-enable", "route=hook", "", "", `select enabled from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/hook", "route-dry-run", "route=hook", "", "hook", `select dry_run from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/hook", "route-live", "route=hook", "", "hook", `select not dry_run from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/hook", "route-edit", "route=hook", `columns={"concurrency":7}`, "hook", `select concurrency = 7 from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/sql", "route-test", "route=sql", "", "", `select exists (select from tidemark.audit where action = 'route_test' and after ->> 'outcome' = 'failed' and after ->> 'error_code' = 'P0001')`},
		{"/routes/hook", "route-pause", "route=hook", "", "hook", `select paused_at is not null from tidemark.outbound_route where route_code = 'hook'`},
		{"/routes/hook", "route-resume", "route=hook", "", "", `select paused_at is null from tidemark.outbound_route where route_code = 'hook'`},
		{"/workers/default", "worker-pause", "worker=default", "", "default", `select paused_at is not null from tidemark.worker_cursor where worker = 'default'`},
		{"/workers/default", "worker-resume", "worker=default", "", "", `select paused_at is null from tidemark.worker_cursor where worker = 'default'`},
		{"/dead-letters/1", "letter-discard", "id=1", "", "1", `select resolution is not distinct from 'discarded' from tidemark.dead_letter where id = 1`},
		{"/dead-letters/2", "letter-replay", "id=2", "", "", `select attempts = 2 from tidemark.dead_letter where id = 2`},
		{"", "letters-chosen-replay", "ids=2", "", "replay", `select attempts = 3 from tidemark.dead_letter where id = 2`},
		{"", "letters-chosen-discard", "ids=2", "", "discard", `select resolution is not distinct from 'discarded' from tidemark.dead_letter where id = 2`},
		{"/dead-letters", "letters-replay", "route=sql&source=outbox&code=P0001", "rate=500", "replay", `select exists (select from tidemark.dead_letter l, tidemark.letter_job j where l.id = 3 and l.attempts = 2 and j.rate = 500)`},
		{"/dead-letters", "letters-discard", "route=sql&source=outbox&code=P0001", "", "discard", `select resolution is not distinct from 'discarded' from tidemark.dead_letter where id = 3`},
		{"/dead-letters", "letter-job-cancel", "id=1", "", "", `select finished_at is not null from tidemark.letter_job where id = 1`},
		{"", "route-replay", "route=hook&from_seq=1&to_seq=6", "", "hook", `select exists (select from tidemark.replay_summary)`},
		{"/", "replay-cancel", "id=1", "", "", `select state = 'cancelled' from tidemark.replay_summary`},
		{"/settings", "event-erase", "domain=shop", "key=" + url.QueryEscape(hostile), "shop", `select payload ? 'erased' from tidemark.outbox where seq = 1`},
		{"/workers/default", "worker-rewind", "worker=default", "to_seq=0", "default", `select watermark_id = '0' from tidemark.worker_cursor where worker = 'default'`},
		{"/workers/default", "worker-edit", "worker=default", `columns={"hole_limit":7000}`, "default", `select hole_limit = 7000 from tidemark.worker where worker = 'default'`},
		{"/sources/births", "source-edit", "source=births", `columns={"description":"new"}`, "births", `select description = 'new' from tidemark.source where source = 'births'`},
		{"", "type-enable", "domain=shop&type=unknown", "", "", `select exists (select from tidemark.event_type where type = 'unknown' and enabled)`},
		{"", "capture-route-edit", "route=births_in", `columns={"payload_columns":["id"]}`, "births_in", `select payload_columns = '{id}' from tidemark.inbound_route`},
		{"", "capture-attach", "table=public.births", "", "", `select exists (select from pg_trigger where tgrelid = 'public.births'::regclass)`},
		{"/sources", "gap-accept", "id=1", "", "1", `select resolved_at is not null from tidemark.capture_gap where id = 1`},
		{"/sources", "gap-emit", "id=2", "", "2", `select exists (select from tidemark.outbox where key = '2')`},
		{"", "capture-emit", "table=public.births", "", "public.births", `select exists (select from tidemark.outbox where key = '3')`},
		{"/commands/" + service, "command-disable", "command=charge&version=1&service=" + service, "", "charge", `select not enabled from tidemark.command where command = 'charge'`},
		{"/commands/" + service, "command-enable", "command=charge&version=1&service=" + service, "", "", `select enabled from tidemark.command where command = 'charge'`},
		{"/commands/" + service, "command-dry-run", "command=charge&version=1&service=" + service, "", "charge", `select dry_run from tidemark.command where command = 'charge'`},
		{"/commands/" + service, "command-live", "command=charge&version=1&service=" + service, "", "charge", `select not dry_run from tidemark.command where command = 'charge'`},
		{"/commands/" + service, "commands-replay", "service=" + service, "", service, `select exists (select from tidemark.audit where action = 'command_replay')`},
		{"/commands/" + service + "/parked", "command-discard", "key=parked&service=" + service, "", "parked", `select exists (select from tidemark.audit where action = 'command_discard')`},
		{"/workers/commands", "partition-seek", "topic=events&partition=3", "next=7", "events", `select watermark_id = '7' from tidemark.worker_cursor where source = 'kafka:events' and shard = 3`},
		{"/commands/" + service, "key-revoke", "kid=k&service=" + service, "", "k", `select revoked_at is not null from tidemark.producer_key where kid = 'k'`},
		{"/findings", "finding-acknowledge", "id=1", "", "", `select acked_at is not null from tidemark.finding where id = 1`},
		{"", "heartbeat-register", "executor=night&cadence=60&domains=shop", "threshold=90", "", `select exists (select from tidemark.heartbeat
			where executor_id = 'night' and stale_threshold_seconds = 90 and domain_scope = '{shop}' and kind = 'external_worker')`},
		{"", "heartbeat-register", "executor=night&cadence=60&domains=shop", "cadence=30", "", `select expected_cadence_seconds = 30 from tidemark.heartbeat where executor_id = 'night'`},
		{"/heartbeats", "heartbeat-deregister", "executor=job", "", "job", `select not exists (select from tidemark.heartbeat_health where executor_id = 'job')`},
		{"/settings", "setting-set", "setting=lag.warn&value=1+minute", "value=2 minutes", "lag.warn", `select value = '2 minutes' from tidemark.setting where key = 'lag.warn'`},
		{"/workers/greeter", "source-rewind", "worker=greeter&source=births", "to_time=2026-01-31T12:00", "births", `select coalesce(watermark_ts between '2026-01-31 11:59Z' and '2026-01-31 12:00Z', false) from tidemark.worker_cursor where worker = 'greeter'`},
		{"/waiting", "pending-park", "item=6&route=hook", "until=" + tomorrow, "", `select next_attempt_at > now() from tidemark.pending where seq = 6`},
		{"/waiting", "pending-retry", "item=6&route=hook", "", "", `select next_attempt_at <= now() from tidemark.pending where seq = 6`},
		{"/waiting", "pending-park", "item=5&route=hook", "until=" + tomorrow, "", `select next_attempt_at > now() from tidemark.pending where seq = 5`},
		{"/waiting?route=hook", "pending-retry-all", "route=hook", "", "hook", `select next_attempt_at <= now() from tidemark.pending where seq = 5`},
		{"/waiting", "pending-discard", "item=6&route=hook", "", "6", `select exists (select from tidemark.dead_letter where seq = 6 and error_code = 'given_up')`},
		{"/workers/greeter", "worker-detach", "worker=greeter&source=births", "", "births", `select not exists (select from tidemark.worker_cursor where worker = 'greeter')`},
		{"/workers/greeter", "worker-attach", "worker=greeter", "source=births", "", `select exists (select from tidemark.worker_cursor where worker = 'greeter')`},
		{"/workers/greeter", "worker-detach", "worker=greeter&source=births", "", "births", `select not exists (select from tidemark.worker_cursor where worker = 'greeter')`},
		{"/workers/greeter", "worker-delete", "worker=greeter", "", "greeter", `select not exists (select from tidemark.worker where worker = 'greeter')`},
		{"/workers", "worker-new", "", "worker=again", "", `select exists (select from tidemark.worker where worker = 'again')`},
		{"/sources/births", "source-delete", "source=births", "", "births", `select not exists (select from tidemark.source where source = 'births')`},
		{"/sources", "source-new", "", "source=again", "", `select exists (select from tidemark.source where source = 'again')`},
		{"/sources", "capture-detach", "table=public.births", "", "public.births", `select not exists (select from pg_trigger where tgrelid = 'public.births'::regclass)`},
		{"/sources", "capture-route-delete", "route=births_in", "", "births_in", `select not exists (select from tidemark.inbound_route)`},
		{"/sources", "capture-route-new", "", "route=again", "", `select exists (select from tidemark.inbound_route where route_code = 'again')`},
		{"/routes", "route-new", "", "route=again", "", `select exists (select from tidemark.outbound_route where route_code = 'again')`},
		{"/routes/again", "route-go-live", "route=again", "", "again", `select enabled and not dry_run from tidemark.outbound_route where route_code = 'again'`},
		{"/routes/again", "route-disable", "route=again", "", "again", `select not enabled from tidemark.outbound_route where route_code = 'again'`},
		{"/routes/again", "route-delete", "route=again", "", "again", `select not exists (select from tidemark.outbound_route where route_code = 'again')`},
		{"/settings", "domain-set", "", "domain=again", "", `select exists (select from tidemark.domain where domain = 'again')`},
		{"/settings", "domain-grant", "domain=again", "role=tidemark_emitter", "again", `select exists (select from tidemark.domain_emitter where domain = 'again')`},
		{"/settings", "domain-revoke", "domain=again", "role=tidemark_emitter", "again", `select not exists (select from tidemark.domain_emitter where domain = 'again')`},
		{"/settings", "type-set", "", "domain=again&type=there", "", `select exists (select from tidemark.event_type where domain = 'again')`},
		{"/settings", "type-delete", "domain=again&type=there", "", "there", `select not exists (select from tidemark.event_type where domain = 'again')`},
		{"/settings", "domain-delete", "domain=again", "", "again", `select not exists (select from tidemark.domain where domain = 'again')`},
		{"/commands/" + service, "command-erase", "service=" + service, "key=parked", service, `select exists (select from tidemark.audit where action = 'commands_erase')`},
		{"/commands/" + service, "key-delete", "kid=k&service=" + service, "", "k", `select not exists (select from tidemark.producer_key where kid = 'k')`},
		{
			"/commands/" + service, "key-add", "service=" + service, "kid=k2&producer=shop&public_key=" + url.QueryEscape(`{"kty": "OKP", "crv": "Ed25519", "x": "`+strings.Repeat("A", 43)+`"}`), service,
			`select exists (select from tidemark.producer_key where kid = 'k2')`,
		},
		{"/commands/" + service, "command-delete", "command=charge&version=1&service=" + service, "", "charge", `select not exists (select from tidemark.command where command = 'charge')`},
		{"/commands/" + service, "service-delete", "service=" + service, "", service, `select not exists (select from tidemark.service)`},
		{"/settings", "stage-dry-run", "", "", "dry_run", `select stage = 'dry_run' from tidemark.stage`},
		{"/settings", "stage-live", "", "", "live", `select stage = 'live' from tidemark.stage`},
		{"/settings", "maintain", "", "", "", `select exists (select from tidemark.log_minute)`},
		{"/findings", "verify", "", "", "", `select exists (select from tidemark.audit where action = 'verify')`},
	} {
		done[a.act] = true
		s.gap(a.act)
		if sql := before[a.act]; sql != "" {
			s.exec(sql)
		}
		given, err := url.ParseQuery(a.given)
		if err != nil {
			t.Fatal(err)
		}
		if a.page != "" {
			s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}}) // any act makes pages forget what others have asked
			_, page := s.get("", a.page)
			if link := `href="/act/` + a.act + `?` + given.Encode() + `"`; !strings.Contains(html.UnescapeString(page), link) {
				t.Fatalf("%s has no %s: %s", a.page, link, page)
			}
		}
		audited := `select count(*) from tidemark.audit where person = 'ada'`
		entries := value[int](s, audited)
		status, page := s.get("", "/act/"+a.act+"?"+a.given)
		if status != http.StatusOK || strings.Contains(page, `class="problem"`) {
			t.Fatalf("the page of %s: %d %s", a.act, status, page)
		}
		if value[bool](s, a.effect) {
			t.Fatalf("%s is done before it is asked for", a.act)
		}
		form, err := url.ParseQuery(columnsOfNew[a.act] + a.form)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(given, form)
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
		if value[int](s, audited) == entries {
			t.Errorf("%s is not in the audit under the person's name", a.act)
		}
	}
	s.waitVerified()
	for name, a := range acts {
		if a.warn == "" {
			t.Errorf("%s does not say what it means", name)
		}
		if !done[name] {
			t.Errorf("%s was not done", name)
		}
	}
}

// gap leaves rows of births without an event: one gap for each act on gaps.
func (s *site) gap(act string) {
	s.t.Helper()
	id, known := map[string]int{"gap-accept": 1, "gap-emit": 2, "capture-emit": 3}[act]
	if !known {
		return
	}
	s.exec(`select tidemark.capture_reconcile()`)
	s.exec(`alter table public.births disable trigger user`)
	s.exec(fmt.Sprintf(`insert into public.births values (%d); select pg_stat_force_next_flush()`, id))
	s.exec(`alter table public.births enable trigger user`)
	s.exec(`select tidemark.capture_reconcile()`)
}

// populateCommands makes a service whose command runs, with a key, and returns its name.
func (s *site) populateCommands() string {
	s.t.Helper()
	name := "s" + strings.ReplaceAll(strings.TrimPrefix(s.db.Name, "tidemark_test_"), "_", "-")
	s.t.Cleanup(func() {
		role := pgx.Identifier{"tidemark_service_" + name}.Sanitize()
		_, _ = s.db.Pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role) // roles are of the cluster
	})
	s.exec(`create function public.charge(payload jsonb) returns jsonb language sql as 'select payload'`)
	s.exec(fmt.Sprintf(`select tidemark.service_set('%s')`, name))
	s.exec(fmt.Sprintf(`select tidemark.command_set('%s', 'charge', 1, '{"function": "public.charge", "enabled": true}')`, name))
	s.exec(fmt.Sprintf(`select tidemark.route_set('results', '{"domain": "commands", "type": "result.%s", "target_kind": "notify", "target_ref": "results", "enabled": true, "dry_run": false}')`, name))
	s.exec(fmt.Sprintf(`select tidemark.command_allow('%s', 'shop', tenants => '{*}'), tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.%[1]s.enabled', true)`, name))
	s.exec(fmt.Sprintf(`select tidemark.command_run('{"event_id": "00000000-0000-7000-8000-000000000001", "service": "%s", "command": "charge", "command_version": 1, "schema_version": 1, "payload": {},
		"idempotency_key": "tried", "occurred_at": "2026-01-31T12:00:00Z", "trace_id": "0123456789abcdef0123456789abcdef", "metadata": {"producer": "shop"}}')`, name))
	s.exec(fmt.Sprintf(`select tidemark.command_set('%s', 'charge', 1, '{"dry_run": false}', 'test')`, name))
	s.exec(fmt.Sprintf(`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, producer, via, error_code, error_message, processed_at, expires_at)
		values ('%s', 'parked', '', 'failed_retryable', '00000000-0000-7000-8000-000000000002', 'charge', 1, 'shop', 'jws', 'sql.data', '%s', now(), now() + interval '1 day')`,
		name, strings.ReplaceAll(hostile, "'", "''")))
	s.exec(fmt.Sprintf(`insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at)
		values ('%s', 'parked', 'key', '{"event_id": "00000000-0000-7000-8000-000000000002", "service": "%[1]s", "command": "charge", "command_version": 1, "payload": {},
			"idempotency_key": "parked", "key": "key", "trace_id": "0af7651916cd43dd8448eb211c80319c", "producer": "shop", "via": "jws", "occurred_at": "2026-01-31T12:00:00Z"}', now() + interval '1 hour')`, name))
	s.exec(fmt.Sprintf(`select tidemark.producer_key_add('k', '%s', 'shop', jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', repeat('A', 43)))`, name))
	return name
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
	if seen := s.walk("/routes?q=r1", `href="/routes/r1`); seen != 1000 {
		t.Errorf("the pages show %d routes of 1000", seen)
	}
	// A route that the list of an event does not name can be asked for by its code.
	s.exec(`select tidemark.emit('shop', 'paid', '{}')`)
	event := fmt.Sprintf("/events/%d?why=r1500", value[int64](s, `select max(seq) from tidemark.outbox`))
	if status, text := s.get("", event); status != http.StatusOK || !strings.Contains(text, `<input name="why" required value="r1500">`) || len(text) > 100<<10 {
		t.Errorf("%d, %d bytes: %s", status, len(text), text)
	}
}

// Long lists go on on another page.
func TestListsGoOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`create table public.births (id bigint generated always as identity primary key); grant select on public.births to tidemark_executor`)
	s.exec(`create function public.greet(births[]) returns void language sql as 'select'`)
	s.exec(`select tidemark.type_set('many', 't' || n) from generate_series(1, 230) n`)
	s.exec(`select tidemark.heartbeat_register('job' || n, 'external_worker', '{}', '1 minute') from generate_series(1, 230) n`)
	s.exec(`select tidemark.finding_open('disk', 'disk' || n, 'high', 'full') from generate_series(1, 130) n`)
	s.exec(`select tidemark.source_set('s' || n, '{"schema_name": "public", "table_name": "births", "id_column": "id", "safety": "sequence"}') from generate_series(1, 130) n`)
	s.exec(`select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}')`)
	s.exec(`select tidemark.worker_source_add('greeter', 's' || n) from generate_series(1, 130) n`)
	s.exec(`select tidemark.route_set('hook', '{"domain": "many", "type": "t1", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at) select w.id, r.id, n, now() from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 230) n`)
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, error_code, event_snapshot, idempotency_key)
		select r.id, w.id, n, gen_random_uuid(), 'E' || n % 130, '{}', n from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 200) n`)
	s.exec(`select tidemark.stage_set('live', 'test')`)
	service := s.populateCommands()
	s.exec(fmt.Sprintf(`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, via, processed_at, expires_at)
		select '%s', 'no. ' || n, '', 'processed', gen_random_uuid(), 'charge', 1, 'acl', now(), now() from generate_series(1, 230) n`, service))
	s.exec(`update tidemark.worker_cursor set verified_through = now(), watermark_ts = now() where worker = 'greeter'`)
	if _, page := s.get("", "/workers/greeter"); len(page) > 100<<10 || strings.Count(page, `<rect class="counted"`) != 40 || !strings.Contains(page, "40 of 130 cursors") {
		t.Errorf("a worker with 130 cursors: %d bytes: %s", len(page), page)
	}
	for path, list := range map[string]struct {
		mark string
		want int
	}{
		"/waiting?route=hook": {`<a href="/events/`, 230}, "/dead-letters": {`"/act/letters-discard?`, 130}, "/commands/" + service: {"/no.%20", 230},
		"/settings": {"<td>many/t", 230}, "/heartbeats": {"<td>job", 230}, "/findings": {"<td>disk", 130}, "/sources": {`href="/sources/s`, 130},
		"/workers": {`<a href="/workers/greeter">`, 130},
	} {
		if seen := s.walk(path, list.mark); seen != list.want {
			t.Errorf("%s shows %d of %d", path, seen, list.want)
		}
	}
}

// walk follows a list to its end, and counts what has the mark.
func (s *site) walk(path, mark string) (seen int) {
	s.t.Helper()
	for next := path; ; {
		status, text := s.get("", next)
		if status != http.StatusOK || len(text) > 100<<10 {
			s.t.Fatalf("%s: %d, %d bytes", next, status, len(text))
		}
		seen += strings.Count(text, mark)
		before, _, more := strings.Cut(text, `">Next</a>`)
		if !more {
			return seen
		}
		address, _, _ := strings.Cut(path, "?")
		next = address + "?" + html.UnescapeString(before[strings.LastIndex(before, `<a href="?`)+len(`<a href="?`):])
	}
}
