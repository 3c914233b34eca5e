package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/client"
	"github.com/tidemarkhq/tidemark/internal/runtimes"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// The client in the repository is the one that its generator makes of the committed document.
func TestGenerated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("client.go")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "//go:generate ")
	line, _, _ = strings.Cut(line, "\n")
	command := strings.Fields(line) // go run PACKAGE@VERSION -config …
	module, version, _ := strings.Cut(command[2], "@")
	module, _, _ = strings.Cut(module, "/cmd/")
	if out, err := exec.CommandContext(t.Context(), "go", "mod", "download", module+"@"+version).CombinedOutput(); err != nil {
		t.Skipf("the generator cannot be fetched: %s", out)
	}
	dir := t.TempDir()
	document, err := filepath.Abs(command[len(command)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "generate"), os.DirFS("generate")); err != nil {
		t.Fatal(err)
	}
	runtimes.Run(t, dir, append(command[:len(command)-1:len(command)-1], document)...)
	got, err := os.ReadFile(filepath.Join(dir, "api.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile("api.gen.go"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("api.gen.go is not what openapi.json describes; run: go generate ./client (%v)", err)
	}
}

// world is a console with a route and three events.
func world(t *testing.T) (db *tidemarktest.DB, as func(role string) *client.Client) {
	t.Helper()
	db = tidemarktest.NewDB(t)
	for _, sql := range []string{
		`select tidemark.type_set('shop', 'order')`,
		`select tidemark.route_set('hook', '{"domain": "shop", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`,
		`select tidemark.emit('shop', 'order', jsonb_build_object('n', 9007199254740993), key => 'k & ' || i) from generate_series(1, 3) i`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	at := runtimes.Console(t, db.URL)
	sender := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(sender.CloseIdleConnections)
	return db, func(role string) *client.Client { return &client.Client{Address: at, Token: role, HTTP: sender} }
}

func TestReadings(t *testing.T) {
	t.Parallel()
	db, as := world(t)
	c := as("operator")
	if _, err := db.Pool.Exec(t.Context(), `select tidemark.route_set('again', '{"domain": "shop", "target_kind": "notify", "target_ref": "again"}')`); err != nil {
		t.Fatal(err)
	}
	status, err := c.GetStatus(t.Context(), client.GetStatusParams{Routes: 1})
	if err != nil || status.You.Role != client.Operator || status.Counts.LastSeq != 3 || len(status.Routes) != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	var keys []string
	params := client.GetEventsParams{Domain: "shop", Limit: 2, Since: time.Now().Add(-time.Hour)}
	for {
		part, err := c.GetEvents(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range part.Items {
			keys = append(keys, *e.Key)
		}
		if part.Next == nil {
			break
		}
		params.Before = *part.Next
	}
	if got := strings.Join(keys, ","); got != "k & 3,k & 2,k & 1" {
		t.Error(got)
	}
	if one, err := c.GetEvents(t.Context(), client.GetEventsParams{Key: "k & 2"}); err != nil || len(one.Items) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	summaries, err := c.GetRouteSummaries(t.Context(), client.GetRouteSummariesParams{Routes: []string{"hook", "again"}})
	if err != nil || len(summaries) != 2 {
		t.Errorf("%+v, %v", summaries, err)
	}
	event, err := c.GetEvent(t.Context(), "2")
	if payload, _ := event.Payload.(map[string]any); err != nil || payload["n"] != json.Number("9007199254740993") {
		t.Errorf("%+v, %v", event, err)
	}
	if route, err := c.GetRoute(t.Context(), "hook"); err != nil || route.RouteCode != "hook" {
		t.Errorf("%+v, %v", route, err)
	}
	if why, err := c.GetEventWhy(t.Context(), "2", client.GetEventWhyParams{Route: "hook"}); err != nil || why.State != "not read" {
		t.Errorf("%+v, %v", why, err)
	}
}

func TestActsAndRefusals(t *testing.T) {
	t.Parallel()
	db, as := world(t)
	audited := func() (n int) {
		if err := db.Pool.QueryRow(t.Context(), `select count(*) from tidemark.audit where object = 'outbound_route hook' and person = 'admin'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	change := client.Changes{Set: map[string]any{"concurrency": 3}, Reason: "faster"}
	if route, err := as("admin").PatchRoute(t.Context(), "hook", change); err != nil || route.Concurrency != 3 {
		t.Errorf("%+v, %v", route, err)
	}
	if n := audited(); n != 1 {
		t.Errorf("%d changes", n)
	}
	once := client.WithIdempotencyKey(t.Context(), "k1")
	change.Set["concurrency"] = 4
	for range 3 {
		if route, err := as("admin").PatchRoute(once, "hook", change); err != nil || route.Concurrency != 4 {
			t.Errorf("%+v, %v", route, err)
		}
	}
	if n := audited(); n != 2 {
		t.Errorf("%d changes with one key", n)
	}

	refused := func(err error) client.Problem {
		var p *client.Problem
		if !errors.As(err, &p) {
			t.Fatalf("not a problem: %v", err)
		}
		return *p
	}
	_, err := as("viewer").PatchRoute(t.Context(), "hook", change)
	if p := refused(err); p.Status != http.StatusForbidden || !strings.Contains(err.Error(), "needs the role admin") {
		t.Error(err)
	}
	_, err = as("admin").GetRoute(t.Context(), "no/such route")
	if p := refused(err); p.Status != http.StatusNotFound || p.Code != "TM004" || !strings.Contains(err.Error(), "(TM004)") {
		t.Error(err)
	}
	_, err = as("stranger").GetRoute(t.Context(), "hook")
	if p := refused(err); p.Status != http.StatusUnauthorized {
		t.Error(err)
	}
}

// A worker can be sent back to the beginning of the log, whose number is zero.
func TestRewindToTheBeginning(t *testing.T) {
	t.Parallel()
	db, as := world(t)
	cursor := func() (seq string) {
		if err := db.Pool.QueryRow(t.Context(), `select watermark_id from tidemark.worker_cursor where worker = 'default'`).Scan(&seq); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	if _, err := db.Pool.Exec(t.Context(), `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true), tidemark.route_worker_run('default')`); err != nil || cursor() != "3" {
		t.Fatalf("the worker is at %s: %v", cursor(), err)
	}
	if _, err := as("admin").RewindWorker(t.Context(), "default", client.Rewind{ToSeq: 0, Reason: "read all again"}); err != nil || cursor() != "0" {
		t.Errorf("the worker is at %s: %v", cursor(), err)
	}
}

// Numbers that a program writes reach the database with every digit.
func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	db, as := world(t)
	filter := map[string]any{"account": json.Number("12345678901234567890.10"), "order": int64(9007199254740993)}
	route, err := as("admin").PatchRoute(t.Context(), "hook", client.Changes{Set: map[string]any{"payload_filter": filter}, Reason: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := db.Pool.QueryRow(t.Context(), `select payload_filter::text from tidemark.outbound_route where route_code = 'hook'`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if want := `{"order": 9007199254740993, "account": 12345678901234567890.10}`; stored != want {
		t.Errorf("stored as %s", stored)
	}
	if read, _ := json.Marshal(route.PayloadFilter); string(read) != `{"account":12345678901234567890.10,"order":9007199254740993}` {
		t.Errorf("read as %s", read)
	}
}

// What is not the API is told from it.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "the address of a console?", 502: "answered 502 Bad Gateway: <html>"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>"))
		}))
		sender := server.Client()
		c := client.Client{Address: server.URL + "/", HTTP: sender}
		if _, err := c.GetMe(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tidemark:") {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&client.Client{Address: "http://127.0.0.1:1"}).GetMe(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
