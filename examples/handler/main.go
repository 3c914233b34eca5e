// Handler is a program that books orders, each exactly once: its entries commit together with the record that
// the event was handled.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
)

func main() {
	// At the first signal Run finishes the handlers under way and releases the cursor, so that another instance
	// need not wait for the lease. A second signal kills the program as usual.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := consumer.New(pool, consumer.Config{Worker: "ledger", Start: "start"})
	if err != nil {
		return err
	}
	client.Handle("shop/order.created", book)
	return client.Run(ctx)
}

// book books an order. It need not check whether it has done so before.
func book(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
	var order struct {
		ID       string `json:"id"`
		Customer string `json:"customer"`
		Cents    int64  `json:"cents"`
	}
	err := e.Decode(&order)
	if err == nil && (order.ID == "" || order.Customer == "") {
		err = errors.New("id and customer are needed")
	}
	if err != nil {
		// A retry would not help: the event becomes a dead letter, which an operator can inspect.
		return consumer.Permanent(fmt.Errorf("not an order: %w", err))
	}
	var closed *time.Time
	if err := tx.QueryRow(ctx, `select max(until) from closing where until > now()`).Scan(&closed); err != nil {
		return err // tried again, with growing delays
	}
	if closed != nil {
		// This is no failure, and the time of the next attempt is known.
		return consumer.RetryAfter(errors.New("the books are closed"), time.Until(*closed))
	}
	if _, err := tx.Exec(ctx, `insert into entry (order_id, customer, cents) values ($1, $2, $3)`,
		order.ID, order.Customer, order.Cents); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into balance as b (customer, cents) values ($1, $2)
		on conflict (customer) do update set cents = b.cents + excluded.cents`, order.Customer, order.Cents)
	return err
}
