package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// counter counts statements, and transactions by their beginnings.
type counter struct{ statements, transactions atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	switch word, _, _ := strings.Cut(strings.ToLower(data.SQL), " "); word {
	case "begin":
		c.transactions.Add(1)
	case "commit", "rollback":
	default:
		c.statements.Add(1)
	}
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Whatever there is, a page costs at most ten statements in one transaction, and has at most 100 KB. The overview has two transactions
// beside each other: one for the causes.
func TestPagesCostLittle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.exec(`select tidemark.route_set('r' || i, jsonb_build_object('domain', 'shop', 'target_kind', 'webhook', 'target_ref', 'https://example.org/' || i,
		'options', '{"unsigned": true}'::jsonb)) from generate_series(1, 300) i`)
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select r.id, w.id, r.id, 1, gen_random_uuid(), '{}', 'http_400' from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker`)
	s.exec(`select tidemark.emit('shop', 'order', '{}')`)
	counted := &counter{}
	config := s.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, path := range []string{
		"/", "/?hours=168", "/routes", "/routes/r7?hours=168", "/routes/r7?backtest=1", "/events", "/events/1?why=r7", "/waiting", "/dead-letters", "/dead-letters/7", "/workers",
		"/workers/default", "/sources", "/commands", "/heartbeats", "/findings", "/audit", "/settings",
	} {
		h, err := New(pool, Options{Identify: func(*http.Request) (Person, bool) { return Person{Name: "ada", Role: Admin}, true }})
		if err != nil {
			t.Fatal(err)
		}
		statements, transactions := counted.statements.Load(), counted.transactions.Load()
		got := httptest.NewRecorder()
		h.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		statements, transactions = counted.statements.Load()-statements, counted.transactions.Load()-transactions
		most := int64(1)
		if strings.HasPrefix(path, "/?") || path == "/" {
			most = 2
		}
		if got.Code != http.StatusOK || statements > 10 || transactions != most || got.Body.Len() > 100_000 {
			t.Errorf("%s: %d, %d statements in %d transactions, %d bytes", path, got.Code, statements, transactions, got.Body.Len())
		}
		if n := pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%s keeps %d connections", path, n)
		}
	}
}

// All causes are there to be read on.
func TestCausesOfManyPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.finding_open('disk', 'no. ' || i, 'high', 'it failed') from generate_series(1, 40) i`)
	seen := 0
	for path := "/"; path != ""; {
		_, text := s.get("", path)
		if !strings.Contains(text, "40 things are wrong") && !strings.Contains(text, "41 things are wrong") {
			t.Errorf("%s does not tell how many there are", path)
		}
		seen += strings.Count(text, `<h3><span class="status`)
		_, next, _ := strings.Cut(text, `href="?skip=`)
		next, _, found := strings.Cut(next, `"`)
		if path = ""; found && strings.Contains(text, "more cause") {
			path = "/?skip=" + next
		}
	}
	if all := value[int](s, `select count(*) from tidemark.cause`); seen != all || all < 40 {
		t.Errorf("%d of %d causes are shown", seen, all)
	}
}

// The health in the head of pages is not waited for once it is known: it is asked for meanwhile.
func TestCacheRenews(t *testing.T) {
	t.Parallel()
	c := cache{kept: map[string]*kept{}}
	asked := make(chan bool, 10)
	answers := make(chan string, 10)
	get := func() string {
		return string(c.get("k", time.Hour, func() {}, func(meanwhile bool) answer {
			asked <- meanwhile
			return answer{body: []byte(<-answers)}
		}).body)
	}
	older := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kept["k"].at = time.Now().Add(-cacheFor)
	}
	answers <- "first"
	if got := get(); got != "first" || <-asked {
		t.Error(got)
	}
	if got := get(); got != "first" || len(asked) > 0 {
		t.Error("asked twice at once", got)
	}
	older()
	if got := get(); got != "first" || !<-asked {
		t.Error("an older answer is waited for:", got)
	}
	if got := get(); got != "first" || len(asked) > 0 {
		t.Error("renewed twice", got)
	}
	answers <- "second"
	for got := ""; got != "second"; got = get() {
		if t.Context().Err() != nil {
			t.Fatal("never renewed")
		}
	}
}

// A reading that fails ends the shared transaction; the next one begins another.
func TestSharedTransactionEndsWithAFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	handler := api.New(api.Options{Pool: s.pool})
	ctx := api.Share(api.WithPerson(t.Context(), Person{Name: "ada", Role: Admin}))
	ask := func(path string) int {
		return api.Ask(handler, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1"+path, nil)).Status
	}
	for path, want := range map[string]int{"/stage": 200, "/routes/nope": 404} {
		if got := ask(path); got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := ask("/events/99"); got != 404 {
		t.Error(got)
	}
	if got := ask("/stage"); got != 200 {
		t.Errorf("after a failure: %d", got)
	}
	if n := s.pool.Stat().AcquiredConns(); n != 1 {
		t.Errorf("%d connections", n)
	}
	api.EndShared(ctx)
	if n := s.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// What was asked for before an act is not kept after it.
func TestCacheForgetsAtAnAct(t *testing.T) {
	t.Parallel()
	c := cache{kept: map[string]*kept{}}
	ask := func(text string) func(bool) answer { return func(bool) answer { return answer{body: []byte(text)} } }
	c.get("k", time.Hour, func() {}, ask("old"))
	old := c.kept["k"]
	c.clear()
	c.renew("k", old, func() answer { return answer{body: []byte("before the act")} })
	if got := c.get("k", time.Hour, func() {}, ask("new")); string(got.body) != "new" {
		t.Errorf("%s", got.body)
	}
}

// What was asked for before a change was seen is asked for again after it, but for what may be older.
func TestCacheForgetsAtAChange(t *testing.T) {
	t.Parallel()
	c := cache{kept: map[string]*kept{}}
	ask := func(text string) func(bool) answer { return func(bool) answer { return answer{body: []byte(text)} } }
	ages := map[string]time.Duration{"page": cacheFor, "health": healthAge}
	for key, age := range ages {
		c.get(key, age, func() {}, ask("before"))
	}
	c.forget(time.Now())
	for key, want := range map[string]string{"page": "after", "health": "before"} {
		if got := c.get(key, ages[key], func() {}, ask("after")); string(got.body) != want {
			t.Errorf("%s is from %s the change", key, got.body)
		}
	}
	c.forget(time.Now().Add(-time.Minute))
	if got := c.get("page", cacheFor, func() {}, ask("once more")); string(got.body) != "after" {
		t.Error("what was asked for after a change is asked for again")
	}
}
