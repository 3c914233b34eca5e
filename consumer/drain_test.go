package consumer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
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
