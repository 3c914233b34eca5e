package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/testserver"
)

// concurrently runs a program whose handler for shop/* works on several events at a time.
func (p program) concurrently(concurrency int, handler consumer.Handler) (stop func()) {
	p.t.Helper()
	client, pool := p.client(concurrency)
	client.Handle("shop/*", handler)
	return p.runs(client, pool)
}

// emitAt emits events with these keys in one transaction, numbered from 1.
func (p program) emitAt(keys ...string) {
	p.t.Helper()
	events := make([]tidemark.Event, len(keys))
	for i, key := range keys {
		events[i] = tidemark.Event{Domain: "shop", Type: "order.paid", Key: key, Payload: fmt.Appendf(nil, `{"n": "%d"}`, i+1)}
	}
	if _, err := tidemark.EmitMany(context.Background(), p.db.Pool, events); err != nil {
		p.t.Fatal(err)
	}
}

const lasting = `"retry_policy": {"base_seconds": 0.005, "max_seconds": 0.05, "max_attempts": 100}`

// Events of different keys are handled at the same time: each handler waits until all have begun.
func TestHandlersAtOnce(t *testing.T) {
	t.Parallel()
	const most = 8
	p := prepared(t, "")
	var working atomic.Int32
	all := make(chan struct{})
	p.concurrently(most, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if n := working.Add(1); n == most {
			close(all)
		} else if n > most {
			return consumer.Permanent(errors.New("more than Config.Concurrency"))
		}
		select {
		case <-all:
		case <-ctx.Done():
			return ctx.Err()
		}
		return note(ctx, tx, e)
	})
	p.emitAt("", "", "", "", "", "", "", "")
	p.eventually(effects, "1 2 3 4 5 6 7 8")
	p.eventually(attempts, "1 1 sent", "2 1 sent", "3 1 sent", "4 1 sent", "5 1 sent", "6 1 sent", "7 1 sent", "8 1 sent")
	p.eventually(`select count(*)::text from tidemark.handled`, "0")
	p.eventually(`select "check" || detail from tidemark.verify() where status = 'fail'`)
}

// Each event is handled once, and events of a key in order, however handlers fail.
func TestOrderOfKeysAtOnce(t *testing.T) {
	t.Parallel()
	p := prepared(t, lasting)
	p.exec(`create table told (id bigint generated always as identity, round int, key text, n int, unique (round, n))`)
	type event struct{ Round, N, Fails int }
	var mu sync.Mutex
	tries := map[event]int{}
	busy := map[string]bool{}
	p.concurrently(4, consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, order event) error {
		mu.Lock()
		tries[order]++
		try, twice := tries[order], busy[e.Key]
		busy[e.Key] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			busy[e.Key] = false
		}()
		if twice {
			return consumer.Permanent(errors.New("two of a key at once"))
		}
		if _, err := tx.Exec(ctx, `insert into told (round, key, n) values ($1, $2, $3)`, order.Round, e.Key, order.N); err != nil {
			return consumer.Permanent(err) // handled before
		}
		switch {
		case try > order.Fails:
			return nil
		case try%3 == 0:
			panic("on purpose")
		case try%3 == 1:
			return consumer.RetryAfter(errors.New("on purpose"), 1)
		}
		return errors.New("on purpose")
	}))
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		n := rapid.IntRange(1, 30).Draw(r, "events")
		fails := rapid.SampledFrom([]int{0, 0, 0, 1, 4})
		events := make([]tidemark.Event, n)
		for i := range events {
			events[i] = tidemark.Event{
				Domain: "shop", Type: "order.paid", Key: fmt.Sprintf("%d-%s", round, rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(r, "key")),
				Payload: fmt.Appendf(nil, `{"Round": %d, "N": %d, "Fails": %d}`, round, i, fails.Draw(r, "fails")),
			}
		}
		if _, err := tidemark.EmitMany(t.Context(), p.db.Pool, events); err != nil {
			r.Fatal(err)
		}
		p.eventually(fmt.Sprintf(`select count(*)::text from told where round = %d`, round), fmt.Sprint(n))
		p.eventually(fmt.Sprintf(`select concat_ws(' ', n, before) from (select n, lag(n) over (partition by key order by id) as before
			from told where round = %d) t where n < before`, round))
	})
	p.eventually(`select error_detail from tidemark.dead_letter`)
	p.eventually(`select seq::text from tidemark.pending`)
	p.eventually(`select count(*)::text from tidemark.handled`, "0")
}

// A key that fails holds up no other key, however often it fails. While one hangs, its page is settled without it.
func TestFailingKeyParksOnlyItself(t *testing.T) {
	t.Parallel()
	p := prepared(t, lasting)
	var mended atomic.Bool
	hangs := make(chan struct{})
	p.concurrently(4, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		switch {
		case e.Key == "bad" && !mended.Load():
			return errors.New("not now")
		case e.Key == "slow":
			select {
			case <-hangs:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return note(ctx, tx, e)
	})
	p.emitAt("bad", "bad", "a", "bad")
	p.eventually(`select (coalesce(max(error_count), 0) > 7)::text from tidemark.pending`, "true")
	p.eventually(effects, "3")
	p.exec(`truncate effect`)
	p.emit("b", "b1")
	p.eventually(effects, "b1")
	p.eventually(`select kind from tidemark.finding where closed_at is null and kind = 'target_down'`)
	p.emit("slow", "s1")
	p.eventually(`select reason from tidemark.decision where reason = 'busy'`, "busy") // its page went on without it
	mended.Store(true)
	close(hangs)
	p.eventually(`select n from effect where n < 'b' order by ctid`, "1", "2", "4")
	p.eventually(effects, "1 2 4 b1 s1")
}

// The program dies between the handler's commit and the settle: the handler is not called again, also by a program without
// concurrency.
func TestHandledIsNotHandledAgain(t *testing.T) {
	t.Parallel()
	for _, next := range []int{4, 1} {
		t.Run(fmt.Sprint(next), func(t *testing.T) {
			t.Parallel()
			p := prepared(t, "")
			p.exec(`create function no_settle() returns trigger language plpgsql as $$ begin raise exception 'no settle'; end $$`)
			p.exec(`create trigger no_settle before insert on tidemark.decision for each row execute function no_settle()`)
			var called atomic.Int32
			count := func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
				called.Add(1)
				return note(ctx, tx, e)
			}
			stop := p.concurrently(4, count)
			p.emitAt("a", "b", "c")
			p.eventually(effects, "1 2 3")
			stop()
			p.eventually(`select seq::text from tidemark.handled order by seq`, "1", "2", "3")
			p.exec(`drop trigger no_settle on tidemark.decision`)
			p.concurrently(next, count)
			p.emit("a", "4")
			p.eventually(effects, "1 2 3 4")
			p.eventually(attempts, "1 1 sent", "2 1 sent", "3 1 sent", "4 1 sent")
			p.eventually(`select count(*)::text from tidemark.handled`, "0")
			if n := called.Load(); n != 4 {
				t.Errorf("the handler was called %d times, want 4", n)
			}
			p.exec(`select tidemark.route_replay('billing.shop.all', 'once more', from_seq => 2, to_seq => 2)`) // on purpose
			p.eventually(effects, "1 2 2 3 4")
		})
	}
}

// Another instance takes the cursor while a handler works: what the handler wrote is gone, and the event is handled again.
func TestHandlerIsFenced(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	began, taken := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	p.concurrently(2, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		err := note(ctx, tx, e)
		if calls.Add(1) == 1 {
			began <- struct{}{}
			<-taken
		}
		return err
	})
	p.emit("a", "1")
	<-began
	p.exec(`update tidemark.heartbeat set lease_epoch = lease_epoch + 1 where executor_id = 'billing/outbox/0'`)
	close(taken)
	p.eventually(attempts, "1 1 sent")
	p.eventually(effects, "1")
	if n := calls.Load(); n != 2 {
		t.Errorf("the handler was called %d times, want 2", n)
	}
}

// The program is told to stop, or a gate closes, in the middle of a batch: what is cut off is rolled back, counts as no
// attempt, and is handled later.
func TestHandlersAreCutOff(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	began := make(chan struct{}, 4)
	var free atomic.Bool
	p.concurrently(2, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		if err := note(ctx, tx, e); err != nil || free.Load() {
			return err
		}
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	p.emitAt("", "", "", "")
	<-began
	<-began
	p.exec(`select tidemark.gate_set('worker.billing.enabled', false)`)
	p.eventually(`select last_status from tidemark.heartbeat where executor_id = 'billing/outbox/0'`, "closed")
	p.eventually(effects, "")
	free.Store(true)
	p.exec(`select tidemark.gate_set('worker.billing.enabled', true)`)
	p.eventually(effects, "1 2 3 4")
	p.eventually(`select reason from tidemark.route_attempt where reason = 'handler'`)
}

// A constraint that is checked at the commit fails the handler that broke it.
func TestHandlerFailsAtTheCommit(t *testing.T) {
	t.Parallel()
	p := prepared(t, `"retry_policy": {"max_attempts": 1}`)
	p.exec(`alter table effect add unique (n) deferrable initially deferred`)
	p.concurrently(2, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		_, err := tx.Exec(ctx, `insert into effect values ('same')`)
		return err
	})
	p.emitAt("k", "k")
	p.eventually(`select error_code || substring(error_detail, 'SQLSTATE .....') from tidemark.dead_letter`, "handlerSQLSTATE 23505")
	p.eventually(effects, "same")
}

func TestConcurrencyNeedsConnections(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	client, pool := p.client(18)
	defer pool.Close()
	client.Handle("shop/*", note)
	if err := client.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "at most 20 connections, and 21 are needed") {
		t.Errorf("got %v", err)
	}
}

// A handler that is at work while its route or a gate is switched off does not commit; it is called again when all is open.
func TestSwitchedOffWhileAtWork(t *testing.T) {
	t.Parallel()
	for off, on := range map[string]string{
		`select tidemark.route_set('billing.shop.all', '{"enabled": false}')`: `select tidemark.route_set('billing.shop.all', '{"enabled": true}')`,
		`select tidemark.route_set('billing.shop.all', '{"dry_run": true}')`:  `select tidemark.route_set('billing.shop.all', '{"dry_run": false}')`,
		`select tidemark.gate_set('routes.enabled', false)`:                   `select tidemark.gate_set('routes.enabled', true)`,
		`select tidemark.gate_set('domain.shop.enabled', false)`:              `select tidemark.gate_set('domain.shop.enabled', true)`,
		`select tidemark.route_pause('billing.shop.all', 'test')`:             `select tidemark.route_resume('billing.shop.all', 'test')`,
	} {
		p := prepared(t, lasting)
		var calls atomic.Int32
		begun, may := make(chan struct{}), make(chan struct{})
		stop := p.concurrently(2, func(_ context.Context, tx pgx.Tx, e tidemark.Event) error {
			if calls.Add(1) == 1 {
				close(begun)
				<-may
			}
			return note(context.Background(), tx, e) //nolint:contextcheck // as one that does not heed it
		})
		p.emitAt("a")
		<-begun
		p.exec(off)
		close(may)
		p.eventually(`select (p.seq = 1)::text from tidemark.pending p`, "true")
		stop() // it waits for the handler
		p.eventually(effects, "")
		p.exec(on)
		p.concurrently(2, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error { return note(ctx, tx, e) })
		p.eventually(effects, "1")
		p.eventually(`select count(*)::text from tidemark.pending`, "0")
	}
}

// A paused route: its events wait, and those of another handler go on, also in the same transaction. When it is resumed, each is
// handled once, in the order of keys.
func TestHandlerRoutePause(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			p := prepared(t, `"ordering": "key"`)
			p.exec(`create table other (n int)`)
			p.exec(`select tidemark.handlers_register('billing', '{shop/*, */*}')`)
			p.exec(`update tidemark.outbound_route set domain = 'shop', enabled = true, dry_run = false`)
			client, pool := p.client(concurrency)
			client.Handle("shop/*", note)
			client.Handle("*/*", func(ctx context.Context, tx pgx.Tx, _ tidemark.Event) error {
				_, err := tx.Exec(ctx, `insert into other values (1)`)
				return err
			})
			p.exec(`select tidemark.route_pause('billing.shop.all', 'test')`)
			stop := p.runs(client, pool)
			p.emit("a", "1", "2", "3")
			p.emit("b", "4")
			p.eventually(`select count(*)::text from other`, "4")
			p.emit("b", "5")
			p.eventually(`select count(*)::text from other`, "5")
			p.eventually(`select concat_ws(' ', count(*), sum(error_count)) from tidemark.pending`, "5 0")
			p.eventually(effects, "")

			p.exec(`select tidemark.route_resume('billing.shop.all', 'test')`)
			p.eventually(`select count(*)::text from tidemark.pending`, "0")
			stop()
			p.eventually(effects, "1 2 3 4 5")
			p.eventually(`select string_agg(n, ' ' order by ctid) from effect where n in ('4', '5')`, "4 5")
			p.eventually(`select string_agg(n, ' ' order by ctid) from effect where n in ('1', '2', '3')`, "1 2 3")
		})
	}
}

// The answer to the commit is lost: the handler's work stays, and whether it does was unknown until the next attempt, which does not
// call the handler again.
func TestHandledAlthoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	p := prepared(t, lasting)
	var lose *atomic.Bool
	client, pool := p.clientWith(2, func(config *pgxpool.Config) { lose = testserver.LoseAnswers(config) })
	client.Handle("shop/*", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		lose.Store(true)
		return note(ctx, tx, e)
	})
	p.runs(client, pool)
	p.emit("a", "1")
	p.eventually(attempts, "1 1 pending handler outcome unknown: conn closed", "1 2 sent")
	p.eventually(effects, "1")
}
