package consumer_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// trips records what is sent to the server from the begin of a transaction to its commit, which comes with the last of them: one
// entry a round trip.
type trips struct {
	mu   sync.Mutex
	of   map[*pgx.Conn][]string
	done []string
}

func (r *trips) sent(conn *pgx.Conn, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case strings.HasPrefix(what, "begin"):
		r.of[conn] = []string{"begin"}
	case r.of[conn] == nil:
	case what == "commit":
		r.done = append(r.done, strings.Join(r.of[conn], ", "))
		delete(r.of, conn)
	default:
		r.of[conn] = append(r.of[conn], what)
	}
}

func (r *trips) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.sent(conn, data.SQL)
	return ctx
}

func (r *trips) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.sent(conn, "batch")
	return ctx
}

func (r *trips) TraceBatchQuery(_ context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if data.SQL == "commit" {
		r.sent(conn, data.SQL)
	}
}

func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// A pass of events with keys costs two round trips beside its read, however many events it has: a server may be far away. The
// first one of a lease costs two more, to know what is pending.
func TestRoundTripsOfAPass(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	seen := &trips{of: map[*pgx.Conn][]string{}}
	client, pool := p.client(1, seen)
	defer pool.Close()
	client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		seen.sent(tx.Conn(), e.Key)
		if e.Key == "b" { // for the second pass
			_, err := tidemark.Emit(context.WithoutCancel(ctx), p.db.Pool, tidemark.Event{Domain: "shop", Type: "order.paid", Key: "c"})
			return err
		}
		return nil
	})
	p.emit("a", "1", "2")
	p.emit("b", "3")
	if err := client.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	got := strings.Join(seen.done, "; ")
	handled := "select h.route_id, h.seq from tidemark.handled" // once in a lease
	if i := strings.Index(got, handled); i >= 0 {
		j := strings.Index(got[i:], ", batch")
		got = got[:i] + "handled" + got[i+j:]
	}
	if want := "begin, handled, batch, a, a, b, batch; begin, c, batch"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Events that wait behind a paused route's cost the other handlers nothing: no savepoint each.
func TestRoundTripsBesideAPausedRoute(t *testing.T) {
	t.Parallel()
	p := prepared(t, `"ordering": "key"`)
	p.exec(`select tidemark.type_set('depot', 'box.sent'), tidemark.handlers_register('billing', '{shop/*,depot/*}')`)
	tidemarktest.GoLive(t, p.db.Pool)
	p.exec(`select tidemark.route_pause('billing.shop.all', 'test')`)
	seen := &trips{of: map[*pgx.Conn][]string{}}
	client, pool := p.client(1, seen)
	defer pool.Close()
	note := func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		_, err := tx.Exec(ctx, `insert into effect values ($1)`, e.Domain+e.Key)
		return err
	}
	client.Handle("shop/*", note)
	client.Handle("depot/*", note)
	pass := func() {
		t.Helper()
		if err := client.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.emit("a", "1")
	pass()
	p.emit("a", "2")
	p.exec(`select tidemark.emit('depot', 'box.sent', '{}', key => n::text) from generate_series(1, 3) n`)
	pass()
	p.eventually(effects, "depot1 depot2 depot3")
	p.eventually(`select concat_ws(' ', seq, reason) from tidemark.route_attempt where outcome = 'pending' order by 1`, "1 gate_closed", "2 gate_closed")
	seen.mu.Lock()
	for _, sent := range seen.done {
		if strings.Contains(sent, "savepoint") {
			t.Error(sent)
		}
	}
	if len(seen.done) == 0 {
		t.Error("no pass was seen")
	}
	seen.mu.Unlock()
	p.exec(`select tidemark.route_resume('billing.shop.all', 'test')`)
	pass()
	p.eventually(effects, "depot1 depot2 depot3 shopa shopa")
}

// told counts the statements that open or close findings of routes without a handler.
type told struct{ n atomic.Int64 }

func (c *told) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if slices.Contains(data.Args, any("route_misconfigured")) {
		c.n.Add(1)
	}
	return ctx
}

func (*told) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Operators are told of a route once in a lease, also where each page needs another route than the one before it.
func TestRoutesAreToldOnce(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	p.exec(`select tidemark.type_set('depot', 'box.sent'), tidemark.handlers_register('billing', '{shop/*,depot/*}')`)
	tidemarktest.GoLive(t, p.db.Pool)
	counted := &told{}
	client, pool := p.client(1, counted)
	note := func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		_, err := tx.Exec(ctx, `insert into effect values ($1)`, e.Domain+e.Key)
		return err
	}
	client.Handle("shop/*", note)
	client.Handle("depot/*", note)
	stop := p.runs(client, pool)
	for n := range 5 {
		key := strconv.Itoa(n)
		p.emit(key, "1")
		p.eventually(`select n from effect where n = 'shop`+key+`'`, "shop"+key)
		p.exec(`select tidemark.emit('depot', 'box.sent', '{}', key => $1)`, key)
		p.eventually(`select n from effect where n = 'depot`+key+`'`, "depot"+key)
	}
	stop()
	if n := counted.n.Load(); n != 2 {
		t.Errorf("told %d times of 2 routes", n)
	}
}
