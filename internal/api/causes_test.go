package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// finds counts how often causes are looked for.
type finds struct{ n atomic.Int64 }

func (f *finds) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "from tidemark.cause c") {
		f.n.Add(1)
	}
	return ctx
}

func (f *finds) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Programs that ask what is wrong at once share the answer, but for viewers, until something is changed.
func TestCausesAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counted := &finds{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.api = New(Options{Pool: pool})
	var all sync.WaitGroup
	for range 20 {
		for _, path := range []string{"/health", "/causes", "/status"} {
			all.Go(func() {
				if got := w.ask(oscar, "GET", path, ""); got.Code != http.StatusOK {
					t.Errorf("%s: %d %s", path, got.Code, got.Body)
				}
			})
		}
	}
	all.Wait()
	if n := counted.n.Load(); n > 3 { // one every two seconds
		t.Errorf("60 requests looked for causes %d times", n)
	}
	w.exec(`select tidemark.finding_open('disk', 'this', 'high', 'it is full')`)
	bad := func(p Person) int { return gets[Condition](w, p, "GET", "/health", "").Bad }
	viewers := bad(vera)
	gets[Changed](w, oscar, "POST", "/workers/default/pause", `{"reason": "calm"}`)
	if n := bad(oscar); n != viewers || n == 0 {
		t.Errorf("after an act %d things are wrong; for a viewer, who has not asked before, %d", n, viewers)
	}
}

// The overview takes two connections where there are two. Requests that wait for one of them hold none, so few are enough for many.
func TestFewConnectionsAreEnough(t *testing.T) {
	t.Parallel()
	for _, connections := range []int32{1, 2} {
		w := newWorld(t)
		config := w.pool.Config()
		config.MaxConns = connections
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		mux, s := build(Options{Pool: pool, Log: slog.New(slog.DiscardHandler)})
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				ctx := Share(WithPerson(t.Context(), oscar)) // as a page
				for _, path := range [][]string{{"/gates", "/status"}, {"/gates", "/health", "/causes"}}[i%2] {
					s.causes.forget()
					r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1"+path, nil)
					if got := Ask(mux, r); got.Status != http.StatusOK {
						t.Errorf("%d connections: %s: %d %s", connections, path, got.Status, got.Body.String())
					}
				}
				EndShared(ctx)
			})
		}
		all.Wait()
	}
}

// A request that cannot have its turn ends when its time is over, and a change does not wait for who looks for causes.
func TestCausesWaitNoLonger(t *testing.T) {
	t.Parallel()
	_, s := build(Options{})
	c := s.causes
	c.turn <- struct{}{} // another request finds them
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.wrong(ctx, func() {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.forget()
	if _, changes := c.recent(true); changes != 1 {
		t.Errorf("%d changes", changes)
	}
}
