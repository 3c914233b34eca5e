package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// world is an API on a database of its own, with a login that is no superuser.
type world struct {
	t    *testing.T
	db   *tidemarktest.DB
	pool *pgxpool.Pool
	api  http.Handler
}

var (
	vera  = Person{"vera", Viewer}
	oscar = Person{"oscar", Operator}
	ada   = Person{"ada", Admin}
)

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t: t, db: tidemarktest.NewDB(t)}
	w.pool = testserver.Login(t, w.db.URL, w.db.Name+"_console", "tidemark_admin")
	w.api = New(Options{Pool: w.pool, Log: slog.New(slog.DiscardHandler)})
	w.exec(`select tidemark.type_set('shop', 'order'), tidemark.type_set('shop', 'paid')`)
	w.exec(`select tidemark.route_set('hook', '{"domain": "shop", "type": "order", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	return w
}

// service makes a service, and returns its name.
func (w world) service() string {
	w.t.Helper()
	name := "s" + strings.ReplaceAll(strings.TrimPrefix(w.db.Name, "tidemark_test_"), "_", "-")
	w.t.Cleanup(func() { // roles are of the cluster
		role := pgx.Identifier{"tidemark_service_" + name}.Sanitize()
		_, _ = w.db.Pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role)
	})
	w.exec(`select tidemark.service_set('` + name + `')`)
	return name
}

func (w world) exec(sql string) {
	w.t.Helper()
	if _, err := w.db.Pool.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](w world, sql string) (v T) {
	w.t.Helper()
	if err := w.db.Pool.QueryRow(w.t.Context(), sql).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// ask makes a request, with headers as name: value.
func (w world) ask(p Person, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(WithPerson(w.t.Context(), p), method, "/api/v1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got := httptest.NewRecorder()
	w.api.ServeHTTP(got, r)
	return got
}

// gets reads the answer of a request that must succeed.
func gets[T any](w world, p Person, method, path, body string, headers ...string) (v T) {
	w.t.Helper()
	got := w.ask(p, method, path, body, headers...)
	if got.Code != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, got.Code, got.Body)
	}
	if err := json.Unmarshal(got.Body.Bytes(), &v); err != nil {
		w.t.Fatalf("%s %s: %v in %s", method, path, err, got.Body)
	}
	return v
}

// refuses wants a problem.
func (w world) refuses(status int, code string, p Person, method, path, body string, headers ...string) Problem {
	w.t.Helper()
	got := w.ask(p, method, path, body, headers...)
	var told Problem
	if err := json.Unmarshal(got.Body.Bytes(), &told); err != nil || got.Code != status || told.Code != code || told.Status != status || told.Detail == "" {
		w.t.Errorf("%s %s %s: %d %s, want %d with the code %q", method, path, body, got.Code, got.Body, status, code)
	}
	if kind := got.Header().Get("Content-Type"); kind != problemType {
		w.t.Errorf("%s %s: Content-Type %s", method, path, kind)
	}
	return told
}

// Every operation asks who it is, and for the role that its description names.
func TestEachOperationIsGuarded(t *testing.T) {
	t.Parallel()
	_, s := build(Options{Log: slog.New(slog.DiscardHandler)})
	_, readOnly := build(Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	handlers := map[bool]http.Handler{false: s.huma.Adapter(), true: readOnly.huma.Adapter()}
	call := func(readOnly bool, p Person, method, path string) int {
		path = strings.NewReplacer("{version}", "1", "{id}", "1", "{", "", "}", "").Replace(path)
		got := httptest.NewRecorder()
		handlers[readOnly].ServeHTTP(got, httptest.NewRequestWithContext(WithPerson(t.Context(), p), method, path, nil))
		return got.Code
	}
	operations := 0
	for path, item := range s.huma.OpenAPI().Paths {
		for method, o := range map[string]*huma.Operation{"GET": item.Get, "PUT": item.Put, "POST": item.Post, "PATCH": item.Patch} {
			if o == nil {
				continue
			}
			operations++
			if code := call(false, Person{}, method, path); code != http.StatusUnauthorized {
				t.Errorf("%s %s: %d without a person", method, path, code)
			}
			needs := Viewer
			for _, role := range []Role{Operator, Admin} {
				if strings.Contains(o.Description, role.String()) {
					needs = role
				}
			}
			if (needs > Viewer) != (method != "GET") {
				t.Errorf("%s %s is for the role %s", method, path, needs)
			}
			for role := Viewer; role < needs; role++ {
				if code := call(false, Person{"p", role}, method, path); code != http.StatusForbidden {
					t.Errorf("%s %s: %d for a %s", method, path, code, role)
				}
			}
			if needs > Viewer {
				if code := call(true, ada, method, path); code != http.StatusForbidden {
					t.Errorf("%s %s: %d on a read-only server", method, path, code)
				}
			}
		}
	}
	if operations < 50 {
		t.Errorf("only %d operations", operations)
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.emit('shop', 'order', '{"secret": "tell no one"}', key => '<b>k</b>') from generate_series(1, 3)`)
	o := gets[Overview](w, vera, "GET", "/status", "")
	if o.You != (You{"vera", "viewer", false}) || len(o.Routes) != 1 || o.Counts.LastSeq != 3 {
		t.Errorf("%+v", o)
	}
	for _, path := range []string{
		"/causes", "/me", "/history", "/history?route=hook&hours=168", "/routes", "/routes/hook", "/routes/hook/backtest", "/replays", "/workers", "/workers/default", "/sources",
		"/captures", "/services", "/heartbeats", "/findings", "/findings?closed=true", "/audit", "/gates", "/outlook", "/stage", "/settings",
		"/domains", "/types", "/packs", "/pending", "/dead-letters", "/dead-letter-groups", "/events",
	} {
		for _, p := range []Person{vera, oscar} {
			got := w.ask(p, "GET", path, "")
			if got.Code != http.StatusOK || strings.Contains(got.Body.String(), "tell no one") {
				t.Errorf("%s for %s: %d %s", path, p.Name, got.Code, got.Body)
			}
		}
	}

	first := gets[List[store.StoredEvent]](w, vera, "GET", "/events?limit=2", "")
	if len(first.Items) != 2 || first.Items[0].Seq != 3 || first.Next == nil || *first.Next != 2 {
		t.Fatalf("%+v", first)
	}
	if rest := gets[List[store.StoredEvent]](w, vera, "GET", fmt.Sprintf("/events?limit=2&before=%d", *first.Next), ""); len(rest.Items) != 1 || rest.Next != nil {
		t.Errorf("%+v", rest)
	}
	w.exec(`select tidemark.emit('shop', 'order', '{}', subject_ref => 'order/7')`)
	if about := gets[List[store.StoredEvent]](w, vera, "GET", "/events?subject=order/7", ""); len(about.Items) != 1 || about.Items[0].Seq != 4 {
		t.Errorf("%+v", about)
	}
	if other := gets[List[store.StoredEvent]](w, vera, "GET", "/events?key=other", ""); len(other.Items) != 0 || other.Next != nil {
		t.Errorf("%+v", other)
	}
	// A search looks at a part of a long log, and goes on where it ended.
	w.exec(`alter sequence tidemark.outbox_seq_seq restart with 250000; select tidemark.emit('shop', 'order', '{}')`)
	before, parts := "", 0
	for found := 0; found < 3; parts++ {
		one := gets[List[store.StoredEvent]](w, vera, "GET", "/events?key=%3Cb%3Ek%3C/b%3E"+before, "")
		if found += len(one.Items); one.Next != nil {
			before = fmt.Sprintf("&before=%d", *one.Next)
		} else if found < 3 {
			t.Fatal("the search ends before the log")
		}
	}
	if parts != 3 {
		t.Errorf("%d parts", parts)
	}
	if seen := gets[store.EventDetails](w, vera, "GET", "/events/1", ""); string(seen.Payload) != "null" {
		t.Errorf("a viewer sees the payload %s", seen.Payload)
	}
	if seen := gets[store.EventDetails](w, oscar, "GET", "/events/"+first.Items[0].EventID, ""); !bytes.Contains(seen.Payload, []byte("tell no one")) {
		t.Errorf("an operator sees the payload %s", seen.Payload)
	}
	if x := gets[Explained](w, vera, "GET", "/events/1/why?route=hook", ""); x.State != "not read" || !strings.Contains(x.Sentence, "routes.enabled") {
		t.Errorf("%+v", x)
	}

	for gate, want := range map[string]int{"": 1, "?gate=routes.enabled": 1, "?gate=worker.default.enabled": 1, "?gate=notify.bridge_enabled": 0} {
		if got := gets[[]GateOutlook](w, vera, "GET", "/outlook"+gate, ""); len(got) != want {
			t.Errorf("%s governs %+v", gate, got)
		}
	}
	w.refuses(404, "TM004", vera, "GET", "/events/99", "")
	w.refuses(404, "TM004", vera, "GET", "/events/"+strings.Repeat("0", 8)+"-0000-0000-0000-000000000000", "")
	w.refuses(422, "", vera, "GET", "/events/x%27", "")
	w.refuses(404, "TM004", vera, "GET", "/routes/nope", "")
	w.refuses(404, "TM004", vera, "GET", "/outlook?gate=nope", "")
	w.refuses(404, "TM004", vera, "GET", "/outlook?gate=worker.other.enabled", "")
	w.refuses(422, "", vera, "GET", "/events?limit=100000", "")
	w.refuses(404, "TM004", vera, "GET", "/services/nope", "")

	got := w.ask(vera, "GET", "/routes", "")
	if again := w.ask(vera, "GET", "/routes", "", "If-None-Match: "+got.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("the same list again: %d %s", again.Code, again.Body)
	}
}

// A viewer's requests run as tidemark_reader, which may not read payloads, whatever the API forgets.
// While the log is locked, the status tells who has locked it, and does not wait for it.
func TestStatusOfALockedLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder := w.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.outbox in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	o := gets[Overview](w, vera, "GET", "/status", "")
	if !o.Partial || len(o.Causes) == 0 || o.Causes[0].Cause != "tables_locked" || o.Server.Database != w.db.Name {
		t.Errorf("%+v", o)
	}
}

func TestViewersAreReadersInTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, s := build(Options{Pool: w.pool})
	for p, want := range map[Person]bool{vera: false, oscar: true} {
		err := s.transact(WithPerson(t.Context(), p), see, func(db *store.DB) error {
			_, err := db.EventPayload(t.Context(), 1)
			full, _ := db.FullEvents(t.Context(), store.Route{}, []int64{})
			if (full != nil) != want {
				t.Errorf("%s may read payloads: %v", p.Name, full != nil)
			}
			_ = err // there is no event 1
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestActs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	audit := func() string {
		return one[string](w, `select concat_ws(' | ', actor = current_database() || '_console', person, object, reason) from tidemark.audit order by id desc limit 1`)
	}
	gate := gets[store.Gate](w, oscar, "PUT", "/gates/routes.enabled", `{"open": true, "reason": "go"}`)
	if !gate.Open || audit() != "t | oscar | setting routes.enabled | go" {
		t.Errorf("%+v, %s", gate, audit())
	}
	route := gets[store.Route](w, ada, "PATCH", "/routes/hook", `{"set": {"concurrency": 3}, "reason": "faster"}`)
	if route.Concurrency != 3 || audit() != "t | ada | outbound_route hook | faster" {
		t.Errorf("%+v, %s", route, audit())
	}
	w.refuses(404, "TM004", ada, "PATCH", "/routes/other", `{"set": {"concurrency": 3}, "reason": "faster"}`)
	w.refuses(422, "TM005", ada, "PATCH", "/routes/hook", `{"set": {"colour": 3}, "reason": "faster"}`)
	w.refuses(422, "", ada, "PATCH", "/routes/hook", `{"set": {"concurrency": 3}, "reason": ""}`)
	w.refuses(422, "", ada, "PATCH", "/routes/hook", `{"set": {"concurrency": 3}}`)
	w.refuses(409, "TM008", ada, "PATCH", "/routes/hook", `{"set": {"enabled": true, "dry_run": false}, "reason": "go"}`)
	if one[int](w, `select concurrency from tidemark.outbound_route`) != 3 {
		t.Error("a refused change was made")
	}
	gets[Changed](w, oscar, "POST", "/workers/default/pause", `{"reason": "calm"}`)
	if !one[bool](w, `select paused_at is not null from tidemark.worker_cursor where worker = 'default'`) {
		t.Error("the worker runs on")
	}
	for _, change := range []string{"pause", "resume"} {
		for _, changed := range []bool{true, false} {
			if got := gets[Changed](w, oscar, "POST", "/routes/hook/"+change, `{"reason": "`+change+` it"}`); got.Changed != changed {
				t.Errorf("%s: %+v", change, got)
			}
		}
		if audit() != "t | oscar | outbound_route hook | "+change+" it" {
			t.Error(audit())
		}
		if route := gets[store.Route](w, oscar, "GET", "/routes/hook", ""); (route.PausedAt != nil) != (change == "pause") {
			t.Errorf("%+v", route)
		}
	}
	w.refuses(404, "TM004", oscar, "POST", "/routes/other/pause", `{"reason": "x"}`)
	w.refuses(404, "TM004", oscar, "POST", "/dead-letters/7/discard", `{"reason": "old"}`)
	w.refuses(404, "TM004", oscar, "POST", "/pending/retry", `{"route": "hook", "item": "9", "reason": "x"}`)
	w.refuses(404, "TM004", oscar, "POST", "/pending/discard", `{"worker": "default", "source": "births", "item": "../x'", "reason": "x"}`)
	w.refuses(422, "", oscar, "POST", "/pending/discard", `{"route": "hook", "item": "x'", "reason": "x"}`)
	w.refuses(422, "TM005", oscar, "POST", "/pending/discard", `{"route": "hook", "reason": "x"}`)
	w.refuses(422, "TM005", ada, "POST", "/routes/hook/delete", `{"reason": " "}`)
	gets[none](w, ada, "POST", "/routes/hook/delete", `{"reason": "no longer"}`)
	if audit() != "t | ada | outbound_route hook | no longer" {
		t.Error(audit())
	}
	w.refuses(422, "TM005", ada, "PUT", "/gates/routes.enabled", `{"open": true, "reason": "x"}`, "Idempotency-Key: "+strings.Repeat("k", 256))
	w.refuses(400, "", ada, "PUT", "/gates/routes.enabled", `{"open": tr`)
}

// With the same key a write is done once; the key of another request is refused.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body, key = `{"reason": "calm"}`, "Idempotency-Key: a1"
	changes := func() int {
		return one[int](w, `select count(*) from tidemark.audit`)
	}
	before := changes()
	for range 3 {
		if got := gets[Changed](w, oscar, "POST", "/workers/default/pause", body, key); !got.Changed {
			t.Error("answered otherwise the second time")
		}
	}
	if n := changes() - before; n != 1 {
		t.Errorf("done %d times", n)
	}
	w.refuses(422, "TM005", oscar, "POST", "/workers/default/resume", body, key)
	w.refuses(422, "TM005", oscar, "POST", "/workers/default/pause", `{"reason": "another"}`, key)
	gets[Changed](w, ada, "POST", "/workers/default/pause", body, key) // her own key
	w.refuses(404, "TM004", oscar, "POST", "/workers/nope/pause", body, "Idempotency-Key: a2")
	if one[int](w, `select count(*) from tidemark.api_answer where key = 'a2'`) != 0 {
		t.Error("a refusal is kept")
	}
	w.exec(`update tidemark.api_answer set at = at - interval '23 hours'; select tidemark.maintain()`)
	if n := one[int](w, `select count(*) from tidemark.api_answer`); n != 2 {
		t.Errorf("%d answers are kept for a day", n)
	}
	w.exec(`update tidemark.api_answer set at = at - interval '1 hour'; select tidemark.maintain()`)
	if n := one[int](w, `select count(*) from tidemark.api_answer`); n != 0 {
		t.Errorf("%d answers are kept after a day", n)
	}
}

func TestWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool.Close()
	told := w.refuses(503, "", vera, "GET", "/status", "")
	if strings.Contains(told.Detail+told.Hint, "pool") {
		t.Errorf("%+v", told)
	}
}
