package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The signing key of the tests. The receivers here do not verify it; the tests of sink/webhook do.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A receiver is the target of a webhook.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []http.Header
	body []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.body = append(r.got, q.Header), append(r.body, string(body))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

func execSQL(t *testing.T, db *tidemarktest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// live switches a route to url on.
func live(t *testing.T, db *tidemarktest.DB, url string) {
	t.Helper()
	execSQL(t, db, `select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test')`)
	execSQL(t, db, `select tidemark.route_set('app', jsonb_build_object('domain', 'test', 'target_kind', 'webhook', 'target_ref', $1::text,
		'options', '{"secret": "app"}'::jsonb, 'enabled', true, 'dry_run', false))`, url)
	execSQL(t, db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
}

func settings(db *tidemarktest.DB) config.Config {
	c := config.Default()
	c.Name = "test"
	c.Database.URL = config.NewSecret(db.URL)
	c.Lease = 5 * time.Second
	c.Admin.Listen = "127.0.0.1:0"
	c.Secrets = map[string][]config.Secret{"app": {config.NewSecret(secret)}}
	c.Webhook.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	return c
}

// A process is a running daemon.
type process struct {
	*daemon.Daemon
	log  *bytes.Buffer // after stop
	stop func()
}

func run(t *testing.T, c config.Config) process {
	t.Helper()
	p := process{log: &bytes.Buffer{}}
	d, err := daemon.New(t.Context(), c, daemon.Options{Log: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Stdout: io.Discard, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	p.Daemon = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		t.Log(p.log.String())
	})
	t.Cleanup(p.stop)
	return p
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 3 minutes: %s", what)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestDaemon(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	p := run(t, settings(db))
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{"n": 1}', key => 'k')`)
	eventually(t, "a delivery", func() bool { return r.count() == 1 })
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Tidemark-Epoch"} {
		if r.got[0].Get(name) == "" {
			t.Errorf("the request has no %s: %v", name, r.got[0])
		}
	}
	if !strings.Contains(r.body[0], `"data":{"n":1}`) && !strings.Contains(r.body[0], `"data":{"n": 1}`) {
		t.Errorf("the body is %s", r.body[0])
	}

	if status, body := get(t, "http://"+p.Addr()+"/readyz?verbose"); status != 200 || !strings.Contains(body, "database") {
		t.Errorf("ready: %d %s", status, body)
	}
	if status, _ := get(t, "http://"+p.Addr()+"/livez"); status != 200 {
		t.Errorf("live: %d", status)
	}
	for _, want := range []string{
		`tidemark_deliveries_total{outcome="delivered",route="app"} 1`, `tidemark_worker_holds_lease{shard="0",source="outbox",worker="default"} 1`,
		`tidemark_worker_behind{shard="0",source="outbox",worker="default"} 0`, `tidemark_breaker_open{route="app"} 0`,
		`tidemark_behind_seconds{shard="0",source="outbox",worker="default"} 0`,
	} {
		eventually(t, "the metric "+want, func() bool {
			_, metrics := get(t, "http://"+p.Addr()+"/metrics")
			return strings.Contains(metrics, want)
		})
	}

	execSQL(t, db, `select tidemark.worker_set('second'), tidemark.gate_set('worker.second.enabled', true)`)
	eventually(t, "the new worker", func() bool {
		_, metrics := get(t, "http://"+p.Addr()+"/metrics")
		return strings.Contains(metrics, `tidemark_worker_holds_lease{shard="0",source="outbox",worker="second"} 1`)
	})
	p.stop()
	p.stop() // twice is fine
	if strings.Contains(p.log.String(), secret) || strings.Contains(p.log.String(), "ERROR") {
		t.Errorf("the log: %s", p.log)
	}
}

// The database is unreachable for a while: no event is lost, and none arrives twice, since no other
// owner has taken the cursor meanwhile.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	r := newReceiver(t)
	live(t, db, r.URL)
	p := run(t, settings(db))
	for n := range 3 {
		execSQL(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $1::int))`, n)
	}
	eventually(t, "the first deliveries", func() bool { return r.count() == 3 })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon to notice", func() bool {
		status, _ := get(t, "http://"+p.Addr()+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the database to be back", func() bool {
		_, err := db.Pool.Exec(context.Background(), `select tidemark.emit_strict('test', 'tick', '{"n": 9}')`)
		return err == nil
	})
	eventually(t, "the next delivery", func() bool { return r.count() >= 4 })
	eventually(t, "all settled", func() bool {
		var n int
		err := db.Pool.QueryRow(context.Background(), `select count(*) from tidemark.route_attempt where outcome = 'sent'`).Scan(&n)
		return err == nil && n == 4
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	empty := tidemarktest.NewEmptyDB(t)
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `select tidemark.handlers_register('billing', '{a/b}')`)
	for want, c := range map[string]config.Config{
		"tidemark migrate up":                                            settings(empty),
		`workers: there is no worker "x" in the database`:                with(settings(db), func(c *config.Config) { c.Workers = []string{"default", "x"} }),
		`workers: worker "billing" belongs to a Go program (handler go)`: with(settings(db), func(c *config.Config) { c.Workers = []string{"billing"} }),
		"connect": with(settings(db), func(c *config.Config) { c.Database.URL = config.NewSecret("postgres://127.0.0.1:1/x") }),
	} {
		_, err := daemon.New(t.Context(), c, daemon.Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error()+" tidemark migrate up", want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func with(c config.Config, change func(*config.Config)) config.Config {
	change(&c)
	return c
}

// Each mistake in a route opens a finding, and the route's events wait.
func TestMistakesInRoutes(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	mistakes := []struct{ kind, ref, options, want string }{
		{"webhook", r.URL, `{}`, `a route to webhook needs the option secret or unsigned`},
		{"webhook", r.URL, `{"secret": "other"}`, `options: there is no secret "other" in the configuration of this daemon (secrets.other)`},
		{"webhook", r.URL, `{"secret": "app", "unsigned": true}`, `the options secret and unsigned exclude each other`},
		{"webhook", r.URL, `{"secret": "app", "colour": "red"}`, `there is no option "colour" for webhook`},
		{"webhook", r.URL, `{"secret": "app", "rate_per_second": -1}`, `options: rate_per_second is -1, and must be a number above 0`},
		{"kafka", "topic", `{}`, `the configuration of this daemon has no connection of kind kafka`},
		{"kafka", "topic", `{"connection": "main"}`, `options: there is no connection "main" in the configuration of this daemon (connections.main)`},
		{"nats", "subject", `{}`, `the configuration of this daemon has no connection of kind nats`},
		{"go", "a/b", `{}`, `its target is a function of a Go program, which has to run the worker itself`},
	}
	want := map[string]string{}
	execSQL(t, db, `alter table tidemark.outbound_route disable trigger outbound_route_target`) // as a restored dump brings them
	for i, m := range mistakes {
		code := fmt.Sprintf("bad%d", i)
		execSQL(t, db, `select tidemark.route_set($1, jsonb_build_object('domain', 'test', 'target_kind', $2::text, 'target_ref', $3::text,
			'options', $4::jsonb, 'enabled', true, 'dry_run', false))`, code, m.kind, m.ref, m.options)
		want[code] = "worker default: " + m.want
	}
	run(t, settings(db))
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
	eventually(t, "the good route's delivery", func() bool { return r.count() == 1 })
	got := map[string]string{}
	eventually(t, "all findings", func() bool {
		rows, _ := db.Pool.Query(context.Background(), `select subject, detail from tidemark.finding where kind = 'route_misconfigured' and closed_at is null`)
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Subject, Detail string }])
		for _, f := range found {
			got[f.Subject] = f.Detail
		}
		return err == nil && len(found) == len(mistakes)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var pending int
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from tidemark.pending`).Scan(&pending); err != nil || pending != len(mistakes) {
		t.Errorf("%d pending, %v", pending, err)
	}
}
