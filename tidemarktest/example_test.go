package tidemarktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The test of a handler: what it does with one event.
func TestHandler(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	client, err := consumer.New(db.Pool, consumer.Config{Worker: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	type order struct{ Cents int64 }
	var booked int64
	client.Handle("shop/order.*", consumer.HandleFunc(func(_ context.Context, _ pgx.Tx, _ tidemark.Event, o order) error {
		booked += o.Cents
		return nil
	}))
	tidemarktest.RequireHandled(t, db.Pool, client, tidemark.Event{Domain: "shop", Type: "order.placed", Payload: []byte(`{"cents": 1200}`)})
	if booked != 1200 {
		t.Errorf("booked %d cents", booked)
	}
}

// The test of a program: it places orders, and its handler books them.
func TestProgram(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `create table entry (order_id text primary key, cents bigint);
		select tidemark.type_set('shop', 'order.placed')`); err != nil {
		t.Fatal(err)
	}
	closed := true
	client, err := consumer.New(db.Pool, consumer.Config{Worker: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	type order struct{ Cents int64 }
	client.Handle("shop/order.*", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, o order) error {
		if closed {
			return consumer.RetryAfter(errors.New("the books are closed"), time.Hour)
		}
		_, err := tx.Exec(ctx, `insert into entry values ($1, $2)`, e.Key, o.Cents)
		return err
	}))
	tidemarktest.GoLive(t, db.Pool, client) // in place of an operator

	if _, err := tidemark.Emit(t.Context(), db.Pool, tidemark.Event{
		Domain: "shop", Type: "order.placed", Key: "7", Payload: []byte(`{"cents": 1200, "customer": "ada"}`),
	}); err != nil {
		t.Fatal(err)
	}
	id := tidemarktest.RequireEmitted(t, db.Pool, tidemark.Event{Domain: "shop", Type: "order.placed", Payload: []byte(`{"cents": 1200}`)})

	drain := func() {
		if err := client.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	drain() // the books are closed
	closed = false
	tidemarktest.Advance(t, db.Pool, time.Hour)
	drain()
	tidemarktest.RequireDelivered(t, db.Pool, "ledger.shop.order.all", id)
	var cents int64
	if err := db.Pool.QueryRow(t.Context(), `select cents from entry where order_id = '7'`).Scan(&cents); err != nil || cents != 1200 {
		t.Errorf("booked %d cents, %v", cents, err)
	}
}
