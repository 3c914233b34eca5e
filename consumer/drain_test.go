package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Drain handles all events, those that a handler emits too, and returns; failures stay pending.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		p := prepared(t, "")
		client, pool := p.client(concurrency)
		defer pool.Close()
		client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
			switch {
			case is(e, "bad"):
				return errors.New("not now")
			case is(e, "first"):
				if _, err := tidemark.Emit(ctx, tx, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: []byte(`{"n": "second"}`)}); err != nil {
					return err
				}
			}
			return note(ctx, tx, e)
		})
		if err := client.Drain(t.Context()); err != nil { // there is nothing
			t.Fatal(err)
		}
		p.emit("a", "bad", "behind")
		p.emit("", "first")
		if err := client.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.eventually(effects, "first second")
		p.eventually(`select concat_ws(' ', seq, error_count, last_error) from tidemark.pending order by seq`, "1 1 handler: not now", "2 0 behind_key")

		p.exec(`select tidemark.gate_set('worker.billing.enabled', false)`)
		if err := client.Drain(t.Context()); !errors.Is(err, tidemark.ErrGateClosed) ||
			err.Error() != "TM009: nothing was handled: closed: worker.billing.enabled" {
			t.Errorf("got %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := client.Drain(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// A handler that ends its goroutine, as FailNow of a test does, fails; the others are called, and Drain returns.
func TestDrainOfHandlersThatEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		p := prepared(t, "")
		client, pool := p.client(concurrency)
		defer pool.Close()
		client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
			if is(e, "gone") {
				runtime.Goexit()
			}
			return note(ctx, tx, e)
		})
		p.emit("", "gone", "1")
		done := make(chan error, 1)
		go func() { done <- client.Drain(t.Context()) }()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("Drain does not return")
		}
		p.eventually(effects, "1")
		p.eventually(`select concat_ws(' ', seq, error_count, left(last_error, 54)) from tidemark.pending`, "1 1 handler: tidemark: the handler ended its goroutine, as")
	}
}

// Drain does not wait for another instance.
func TestDrainBesideAnother(t *testing.T) {
	t.Parallel()
	p := start(t, "", note)
	p.emit("", "1")
	p.eventually(effects, "1")
	client, pool := p.client(1)
	defer pool.Close()
	client.Handle("shop/*", note)
	if err := client.Drain(t.Context()); !errors.Is(err, tidemark.ErrGateClosed) {
		t.Errorf("got %v", err)
	}
}

// Drain of rows reads all pages of a table.
func TestDrainOfRows(t *testing.T) {
	t.Parallel()
	p := startRows(t, `"page_size": 2`, noteRows)
	p.stop()
	p.born("1", "2", "3", "4", "5")
	client, pool := p.client(1)
	defer pool.Close()
	client.HandleRows("births", noteRows)
	if err := client.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.eventually(effects, "1 2 3 4 5")
}

// A handler that is switched off is logged once, by Register or by the first Run, and again after it was on.
func TestSwitchedOffIsSaidOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	var log strings.Builder
	client, err := consumer.New(db.Pool, consumer.Config{Worker: "billing", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	client.Handle("shop/*", func(context.Context, pgx.Tx, tidemark.Event) error { return nil })
	said := func(want int) {
		t.Helper()
		if err := client.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "a handler is switched off"); got != want {
			t.Errorf("said %d times, want %d\n%s", got, want, log.String())
		}
	}
	said(1)
	if err := client.Drain(t.Context()); !errors.Is(err, tidemark.ErrGateClosed) {
		t.Fatal(err)
	}
	said(1)
	tidemarktest.GoLive(t, db.Pool, client)
	said(1)
	p := program{t: t, db: db}
	p.exec(`select tidemark.route_set('billing.shop.all', '{"enabled": false}')`)
	said(2)
}

// A settle that waits for a lock does not keep a program from stopping; what it has not recorded takes no effect, and comes again.
func TestStopWhileASettleWaits(t *testing.T) {
	t.Parallel()
	p := start(t, "", note)
	p.stop()
	locked, err := p.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.Exec(t.Context(), `lock table tidemark.decision in share row exclusive mode`); err != nil {
		t.Fatal(err)
	}
	p.emit("", "1")
	client, err := consumer.New(p.db.Pool, consumer.Config{
		Worker: "billing", PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond, StopTimeout: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	client.Handle("shop/*", note)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- client.Run(ctx) }()
	p.eventually(`select 'waits' from pg_locks where not granted and relation = 'tidemark.decision'::regclass`, "waits")
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the program does not stop")
	}
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.eventually(effects, "")
	p.stop = p.runClient(func(c *consumer.Client) { c.Handle("shop/*", note) })
	p.eventually(effects, "1")
}

// An event whose handler this program does not have, as after a release was rolled back, waits for one that has it: it uses up no attempt,
// operators are told, and the others are handled.
func TestEventsWithoutAHandlerWait(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		p := program{t: t, db: tidemarktest.NewDB(t)}
		p.exec(`select tidemark.type_set('shop', 'order.paid'), tidemark.type_set('shop', 'order.sent'); create table effect (n text)`)
		p.exec(`select tidemark.handlers_register('billing', '{shop/order.paid,shop/order.sent}')`)
		tidemarktest.GoLive(t, p.db.Pool)
		client, pool := p.client(concurrency)
		client.Handle("shop/order.paid", note)
		stop := p.runs(client, pool)
		p.exec(`select tidemark.emit('shop', 'order.sent', '{"n": "sent"}')`)
		p.emit("", "paid")
		p.eventually(effects, "paid")
		p.eventually(`select concat_ws(' ', item, error_count) from tidemark.waiting`, "1 0")
		p.eventually(`select detail from tidemark.finding where kind = 'route_misconfigured' and closed_at is null`, "worker billing: this program has no handler for shop/order.sent")
		stop()
		p.eventually(attempts, "1 1 pending misconfigured", "2 1 sent")
		p.exec(`update tidemark.pending set next_attempt_at = clock_timestamp()`)
		client, pool = p.client(concurrency)
		client.Handle("shop/order.paid", note)
		client.Handle("shop/order.sent", note)
		stop = p.runs(client, pool)
		p.eventually(effects, "paid sent")
		p.eventually(`select detail from tidemark.finding where kind = 'route_misconfigured' and closed_at is null`)
		stop()
	}
}

// A program that is told to stop in the middle of a page begins no other handler, and keeps what the page's handlers have done, however
// long the one takes that is under way. One that obeys its context is cut off, and the page comes again.
func TestStopInTheMiddleOfAPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop    time.Duration
		goes    func(ctx context.Context, tx pgx.Tx, told <-chan struct{}) error // the rest of the handler
		kept    string
		pending []string
	}{
		"in time": {
			time.Hour,
			func(_ context.Context, _ pgx.Tx, told <-chan struct{}) error { <-told; return nil },
			"1",
			[]string{"2 0 gate_closed"},
		},
		"outlasts the settle's last word": {
			100 * time.Millisecond,
			func(ctx context.Context, tx pgx.Tx, _ <-chan struct{}) error {
				<-ctx.Done()
				_, err := tx.Exec(context.WithoutCancel(ctx), `select pg_sleep(3.5)`)
				return err
			},
			"1",
			[]string{"2 0 gate_closed"},
		},
		"cut off": {
			100 * time.Millisecond,
			func(ctx context.Context, _ pgx.Tx, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
			"",
			[]string{"1 0 gate_closed", "2 0 gate_closed"},
		},
		"cut off in a statement": {
			100 * time.Millisecond,
			func(ctx context.Context, tx pgx.Tx, _ <-chan struct{}) error {
				_, err := tx.Exec(ctx, `select pg_sleep(3600)`)
				return err
			},
			"",
			[]string{"1 0 gate_closed", "2 0 gate_closed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prepared(t, "")
			p.exec(`alter table effect add unique (n) deferrable initially deferred`)
			client, err := consumer.New(p.db.Pool, consumer.Config{
				Worker: "billing", PollMin: 5 * time.Millisecond, PollMax: 20 * time.Millisecond, StopTimeout: c.stop,
				Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			began, told := make(chan struct{}, 9), make(chan struct{})
			client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
				if err := note(ctx, tx, e); err != nil {
					return err
				}
				began <- struct{}{}
				return c.goes(ctx, tx, told)
			})
			p.exec(`select count(*) from tidemark.emit_many((select jsonb_agg(jsonb_build_object('domain', 'shop', 'type', 'order.paid', 'payload', jsonb_build_object('n', n::text))) from generate_series(1, 2) n))`)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- client.Run(ctx) }()
			<-began
			cancel()
			close(told)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if len(began) != 0 {
				t.Error("a handler began after the stop")
			}
			p.eventually(effects, c.kept)
			p.eventually(`select concat_ws(' ', seq, error_count, last_error) from tidemark.pending order by seq`, c.pending...)
			p.runClient(func(c *consumer.Client) { c.Handle("shop/*", note) })
			p.eventually(effects, "1 2")
		})
	}
}
