package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A program is one that uses the library: its pool, its client, its table.
type program struct {
	t    *testing.T
	db   *tidemarktest.DB
	stop func()
}

// start runs a program with one handler for shop/*, switched on; change changes its route.
func start(t *testing.T, change string, handler consumer.Handler) program {
	t.Helper()
	p := prepared(t, change)
	p.stop = p.run(handler)
	return p
}

// prepared is a program that does not run yet, with its route switched on.
func prepared(t *testing.T, change string) program {
	t.Helper()
	db := tidemarktest.NewDB(t)
	p := program{t: t, db: db}
	p.exec(`select tidemark.type_set('shop', 'order.paid')`)
	p.exec(`create table effect (n text)`)
	p.exec(`select tidemark.handlers_register('billing', '{shop/*}')`)
	p.exec(`select tidemark.route_set('billing.shop.all', $1::jsonb)`, "{"+change+"}")
	tidemarktest.GoLive(t, db.Pool)
	return p
}

func (p program) run(handler consumer.Handler) (stop func()) {
	p.t.Helper()
	return p.runClient(func(c *consumer.Client) { c.Handle("shop/*", handler) })
}

// runClient runs a program with the handlers that register gives it.
func (p program) runClient(register func(*consumer.Client)) (stop func()) {
	p.t.Helper()
	client, pool := p.client(1)
	register(client)
	return p.runs(client, pool)
}

// client returns a client with its own pool, and with a tracer if one is given.
func (p program) client(concurrency int, tracer ...pgx.QueryTracer) (*consumer.Client, *pgxpool.Pool) {
	p.t.Helper()
	return p.clientWith(concurrency, func(config *pgxpool.Config) {
		for _, t := range tracer {
			config.ConnConfig.Tracer = t
		}
	})
}

// clientWith returns a client with its own pool, which change configures.
func (p program) clientWith(concurrency int, change func(*pgxpool.Config)) (*consumer.Client, *pgxpool.Pool) {
	p.t.Helper()
	config, err := pgxpool.ParseConfig(p.db.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	config.MaxConns = 20
	change(config)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		p.t.Fatal(err)
	}
	client, err := consumer.New(pool, consumer.Config{
		Worker: "billing", Lease: 5 * time.Second, PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond,
		Concurrency: concurrency, Logger: slog.New(slog.NewTextHandler(p.t.Output(), nil)),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return client, pool
}

// runs runs the client.
func (p program) runs(client *consumer.Client, pool *pgxpool.Pool) (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- client.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
		pool.Close()
	})
	p.t.Cleanup(stop)
	return stop
}

func (p program) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.db.Pool.Exec(context.Background(), sql, args...); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p program) emit(key string, n ...string) {
	p.t.Helper()
	for _, text := range n {
		if _, err := tidemark.Emit(context.Background(), p.db.Pool, tidemark.Event{
			Domain: "shop", Type: "order.paid", Key: key, Payload: []byte(`{"n": "` + text + `"}`),
		}); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p program) eventually(sql string, want ...string) {
	p.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		rows, _ := p.db.Pool.Query(context.Background(), sql)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			p.t.Fatal(err)
		}
		if cmp.Equal(want, got) || len(want)+len(got) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s\n(-want +got)\n%s", sql, cmp.Diff(want, got))
		}
	}
}

const (
	effects = `select coalesce(string_agg(n, ' ' order by n), '') from effect`
	// What took longer than its page waits is no attempt.
	attempts = `select concat_ws(' ', seq, row_number() over (partition by route_code, seq order by attempt_no), outcome, reason, detail)
		from tidemark.route_attempt where reason is distinct from 'busy' order by seq, attempt_no`
)

// note is a handler that writes the event down.
func note(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
	_, err := tx.Exec(ctx, `insert into effect select $1::jsonb ->> 'n'`, string(e.Payload))
	return err
}

func is(e tidemark.Event, n string) bool { return string(e.Payload) == `{"n": "`+n+`"}` }

func TestHandle(t *testing.T) {
	t.Parallel()
	p := start(t, "", note)
	p.emit("", "1", "2", "3")
	p.eventually(effects, "1 2 3")
	p.eventually(attempts, "1 1 sent", "2 1 sent", "3 1 sent")
	p.stop()
	p.eventually(`select last_status from tidemark.heartbeat where executor_id = 'billing/outbox/0'`, "released")
	p.eventually(`select "check" || detail from tidemark.verify() where status = 'fail'`)
}

// Spans of a handler belong to the trace of the event.
func TestHandlerIsInTheTrace(t *testing.T) {
	t.Parallel()
	p := start(t, "", func(ctx context.Context, tx pgx.Tx, _ tidemark.Event) error {
		span := trace.SpanContextFromContext(ctx)
		_, err := tx.Exec(ctx, `insert into effect values ($1)`, span.TraceID().String()+" "+span.SpanID().String())
		return err
	})
	p.exec(`select tidemark.emit_strict('shop', 'order.paid', trace => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')`)
	p.eventually(effects, "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331")
}

// What a handler wrote before it failed is gone; what the others wrote is not.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	p := start(t, `"retry_policy": {"base_seconds": 0.01, "max_attempts": 3}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if err := note(ctx, tx, e); err != nil {
			return err
		}
		switch {
		case is(e, "2") && tries.Add(1) <= 2: // the first time together with the others, then alone
			return errors.New("not now")
		case is(e, "3"):
			return consumer.Permanent(errors.New("never"))
		case is(e, "4"):
			_, err := tx.Exec(ctx, `select 1 / 0`)
			return err
		case is(e, "5"):
			panic("oops")
		case is(e, "6") && tries.Load() < 3:
			return consumer.RetryAfter(errors.New("later"), time.Millisecond)
		}
		return nil
	})
	p.exec(`select count(*) from tidemark.emit_many((select jsonb_agg(jsonb_build_object('domain', 'shop', 'type', 'order.paid', 'payload', jsonb_build_object('n', n::text))) from generate_series(1, 7) n))`)
	p.eventually(`select coalesce(string_agg(seq::text, ' ' order by seq), '') from tidemark.dead_letter`, "3 4 5")
	p.eventually(effects, "1 2 6 7")
	p.eventually(`select concat_ws(' ', seq, regexp_replace(error_detail, 'go:\d+', 'go:N'), attempts) from tidemark.dead_letter order by seq`, "3 never 1",
		"4 ERROR: division by zero (SQLSTATE 22012) (given up after 3 attempts) 3", "5 panic: oops (consumer_test.TestHandlerFails.func1, handler_test.go:N) (given up after 3 attempts) 3")
}

// A statement that outlasts the timeout takes the connection with it, not the page.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	p := start(t, `"timeout": "200 ms", "retry_policy": {"max_attempts": 1}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if is(e, "2") {
			_, err := tx.Exec(ctx, `select pg_sleep(30)`)
			return err
		}
		return note(ctx, tx, e)
	})
	p.emit("", "1", "2", "3")
	p.eventually(effects, "1 3")
	p.eventually(`select seq::text from tidemark.dead_letter`, "2")
}

func TestHandlerOrderOfKey(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	p := start(t, `"ordering": "key", "retry_policy": {"base_seconds": 0.01, "max_attempts": 100, "max_seconds": 0.02}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if e.Key == "a" && !open.Load() {
			return errors.New("not now")
		}
		return note(ctx, tx, e)
	})
	p.emit("a", "a1", "a2")
	p.emit("b", "b1")
	p.eventually(effects, "b1")
	p.emit("a", "a3")
	p.eventually(`select count(*)::text from tidemark.pending`, "3")
	open.Store(true)
	p.eventually(`select coalesce(string_agg(n, ' ' order by ctid), '') from effect`, "b1 a1 a2 a3")
}

// The look at what is pending is left out while nothing was. An event that fails then holds up later ones of its key all the same.
func TestHandlerFailsAfterCalm(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	p := start(t, `"ordering": "key"`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if string(e.Payload) == `{"n": "a2"}` && !open.Load() {
			return consumer.RetryAfter(errors.New("not now"), time.Hour)
		}
		return note(ctx, tx, e)
	})
	p.emit("a", "a1")
	p.eventually(effects, "a1")
	p.emit("a", "a2")
	p.eventually(`select count(*)::text from tidemark.pending`, "1")
	p.emit("a", "a3")
	p.emit("b", "b1")
	p.eventually(effects, "a1 b1")
	p.eventually(`select count(*)::text from tidemark.pending`, "2")
	open.Store(true)
	p.exec(`update tidemark.pending set next_attempt_at = clock_timestamp() where error_count > 0`)
	p.eventually(`select coalesce(string_agg(n, ' ' order by ctid), '') from effect`, "a1 b1 a2 a3")
}

// A replay that fails again holds up no live event of its key.
func TestHandlerReplayHoldsUpNoLiveEvent(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	p := start(t, `"ordering": "key", "retry_policy": {"base_seconds": 0.01, "max_attempts": 3, "max_seconds": 0.02}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if string(e.Payload) == `{"n": "a1"}` && !mended.Load() {
			return errors.New("not now")
		}
		return note(ctx, tx, e)
	})
	p.emit("a", "a1")
	p.eventually(`select count(*)::text from tidemark.dead_letter`, "1")
	p.exec(`update tidemark.outbound_route set retry_policy = '{"base_seconds": 0.05, "max_attempts": 100, "max_seconds": 0.05}'`)
	p.exec(`select tidemark.dead_letter_replay(1)`)
	p.eventually(`select (error_count > 2)::text from tidemark.pending`, "true")
	p.emit("a", "a2", "a3")
	p.eventually(effects, "a2 a3")
	p.eventually(`select count(*)::text from tidemark.pending`, "1")
	mended.Store(true)
	p.eventually(`select coalesce(resolution, 'open') from tidemark.dead_letter`, "sent")
}

// Of two programs with the same worker one handles, however often they start and stop.
func TestHandlersTakeTurns(t *testing.T) {
	t.Parallel()
	p := start(t, "", note)
	second := p.run(note)
	for range 50 {
		p.emit("", "1")
	}
	p.stop()
	for range 50 {
		p.emit("", "1")
	}
	p.eventually(`select count(*)::text from effect`, "100")
	second()
	// What the first had read when it was told to stop, and had not begun, is no attempt.
	p.eventually(`select outcome || ' ' || count(*) from tidemark.route_attempt where reason is distinct from 'gate_closed' group by outcome`, "sent 100")
}

func TestHandlerGateCloses(t *testing.T) {
	t.Parallel()
	began, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p := start(t, "", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		err := note(ctx, tx, e)
		once.Do(func() { began <- struct{}{}; <-closed })
		return err
	})
	p.emit("", "1")
	<-began
	p.exec(`select tidemark.gate_set('worker.billing.enabled', false)`)
	close(closed)
	p.eventually(`select last_status from tidemark.heartbeat where executor_id = 'billing/outbox/0'`, "closed")
	p.eventually(`select count(*)::text from effect`, "0")
	p.exec(`select tidemark.gate_set('worker.billing.enabled', true)`)
	p.eventually(effects, "1")
}

// A gate of a domain: its events wait, the others of the page are handled; what is under way when it closes is taken back.
func TestHandlerDomainGate(t *testing.T) {
	t.Parallel()
	began, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p := start(t, `"domain": "*", "ordering": "key"`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		err := note(ctx, tx, e)
		once.Do(func() { began <- struct{}{}; <-closed })
		return err
	})
	p.exec(`select tidemark.type_set('bank', 'paid')`)
	p.emit("k", "1")
	<-began
	p.exec(`select tidemark.gate_set('domain.shop.enabled', false)`)
	close(closed)
	p.emit("k", "2")
	p.exec(`select tidemark.emit('bank', 'paid', '{"n": "3"}', key => 'other'), tidemark.emit('bank', 'paid', '{"n": "4"}', key => 'k')`)
	p.eventually(effects, "3")
	p.eventually(`select concat_ws(' ', item, held) from tidemark.waiting order by item`, "1 t", "2 t", "4 f")
	p.exec(`select tidemark.gate_set('domain.shop.enabled', true)`)
	p.eventually(`select n from effect order by ctid`, "3", "1", "2", "4")
}

func TestEmitMany(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := program{t: t, db: db}
	p.exec(`select tidemark.type_set('shop', 'order.paid')`)
	events := []tidemark.Event{{Domain: "shop", Type: "order.paid", IdempotencyKey: "k"}, {Domain: "shop", Type: "order.paid"}}
	ids, err := tidemark.EmitMany(t.Context(), db.Pool, events)
	if err != nil || len(ids) != 2 || ids[0] == ids[1] {
		t.Fatal(ids, err)
	}
	again, err := tidemark.EmitMany(t.Context(), db.Pool, events[:1])
	if err != nil || len(again) != 1 || again[0] != ids[0] {
		t.Errorf("got %v, %v, want %s", again, err, ids[0])
	}
	if none, err := tidemark.EmitMany(t.Context(), db.Pool, nil); err == nil && len(none) != 0 {
		t.Errorf("got %v, %v", none, err)
	}
	// Without a transaction, too, what is refused leaves nothing behind.
	sqldb := stdlib.OpenDBFromPool(db.Pool)
	defer func() { _ = sqldb.Close() }()
	const stored = `select (select count(*) from tidemark.outbox) || ' ' || (select count(*) from tidemark.emit_key)`
	for want, bad := range map[error]tidemark.Event{
		tidemark.ErrUnknownType: {Domain: "shop", Type: "never"},
		tidemark.ErrArgument:    {Domain: "shop", Type: "order.paid", OccurredAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		batch := []tidemark.Event{{Domain: "shop", Type: "order.paid", IdempotencyKey: "new"}, bad}
		if ids, err := tidemark.EmitMany(t.Context(), db.Pool, batch); !errors.Is(err, want) || !strings.Contains(err.Error(), "event 2: ") || ids != nil {
			t.Errorf("got %v, %v, want %v of event 2", ids, err, want)
		}
		tx, err := sqldb.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := tidemark.EmitManySQL(t.Context(), tx, batch); !errors.Is(err, want) || ids != nil {
			t.Errorf("got %v, %v, want %v", ids, err, want)
		}
		_ = tx.Commit() // what cannot be committed is rolled back
		if _, err := tidemark.Emit(t.Context(), db.Pool, bad); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		p.eventually(stored, "2 1")
	}
	if _, err := tidemark.Emit(t.Context(), db.Pool, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: []byte(`[]`)}); !errors.Is(err, tidemark.ErrPayload) {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	for want, c := range map[string]consumer.Config{
		"tidemark: Config.Worker is empty":                           {},
		"tidemark: Config.Lease is 1s, and must be from 3 s to 1 h":  {Worker: "w", Lease: time.Second},
		"tidemark: Config.Batch is 9000, and must be from 1 to 5000": {Worker: "w", Batch: 9000},
	} {
		if _, err := consumer.New(db.Pool, c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	client, err := consumer.New(db.Pool, consumer.Config{Worker: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Run(t.Context()); err == nil {
		t.Error("it runs without a handler")
	}
	client.Handle("shop/*", note)
	if err := client.Run(t.Context()); !errors.Is(err, tidemark.ErrArgument) {
		t.Errorf("got %v", err)
	}
}

// A second Run, and a handler that comes too late, are refused and leave the first Run alone; after it the client runs again.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	p := start(t, "", note)
	p.stop()
	client, err := consumer.New(p.db.Pool, consumer.Config{Worker: "billing", PollMax: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{})
	client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		handled <- struct{}{}
		return note(ctx, tx, e)
	})
	for _, n := range []string{"1", "2"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- client.Run(ctx) }()
		p.emit("", n)
		<-handled

		if err := client.Run(t.Context()); err == nil || err.Error() != "tidemark: the client runs already" {
			t.Errorf("got %v", err)
		}
		for want, register := range map[string]func(){
			"tidemark: Handle(bank/*) while the client runs: register handlers before Run": func() { client.Handle("bank/*", note) },
			"tidemark: HandleRows(births) while the client runs: register handlers before Run": func() {
				client.HandleRows("births", func(context.Context, pgx.Tx, []consumer.Row) error { return nil })
			},
		} {
			if got := panics(register); got != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
		p.eventually(`select outcome::text from tidemark.route_attempt where seq = `+n, "sent")
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	p.eventually(effects, "1 2")
}

// What is registered twice, or is no handler, is a mistake of the program.
func TestHandleRefuses(t *testing.T) {
	t.Parallel()
	client, err := consumer.New(tidemarktest.NewDB(t).Pool, consumer.Config{Worker: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	client.Handle("shop/*", note)
	for want, register := range map[string]func(){
		"tidemark: Handle(shop/*) twice":                  func() { client.Handle("shop/*", note) },
		"tidemark: Handle(bank/*) with a nil handler":     func() { client.Handle("bank/*", nil) },
		"tidemark: HandleRows(births) with a nil handler": func() { client.HandleRows("births", nil) },
	} {
		if got := panics(register); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func panics(f func()) (with any) {
	defer func() { with = recover() }()
	f()
	return nil
}

// A handler that ends the transaction itself, or keeps an error of the database to itself, has failed: its effects are
// taken back, and the others' stay.
func TestHandlerBreaksTheTransaction(t *testing.T) {
	t.Parallel()
	p := start(t, `"retry_policy": {"base_seconds": 0.01, "max_attempts": 2}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if err := note(ctx, tx, e); err != nil {
			return err
		}
		switch {
		case is(e, "2"):
			return tx.Commit(ctx)
		case is(e, "3"):
			_ = tx.Rollback(ctx)
		case is(e, "5"):
			_, _ = tx.Exec(ctx, `select 1 / 0`)
		}
		return nil
	})
	p.emit("", "1", "2", "3", "4", "5")
	p.eventually(effects, "1 4")
	p.eventually(`select seq::text from tidemark.dead_letter order by seq`, "2", "3", "5")
}

// What a handler defers to the commit is its event's fault, not the page's.
func TestHandlerDefers(t *testing.T) {
	t.Parallel()
	p := start(t, `"retry_policy": {"max_attempts": 1}`, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if is(e, "2") {
			if _, err := tx.Exec(ctx, `insert into child values (7)`); err != nil {
				return err
			}
		}
		return note(ctx, tx, e)
	})
	p.exec(`create table parent (id int primary key)`)
	p.exec(`create table child (parent int references parent deferrable initially deferred)`)
	p.emit("", "1", "2", "3")
	p.eventually(effects, "1 3")
	p.eventually(`select seq || ' ' || substring(error_detail from 'foreign key constraint') from tidemark.dead_letter`, "2 foreign key constraint")
}
