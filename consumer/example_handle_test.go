package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/exampledb"
)

// What a handler writes commits together with the record that the event was handled: once.
func ExampleClient_Handle() {
	pool, closePool := exampledb.Open()
	defer closePool()
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext, in a program
	defer stop()

	client, err := consumer.New(pool, consumer.Config{Worker: "ledger", Start: "start"})
	if err != nil {
		log.Fatal(err)
	}
	client.Handle("shop/order.created", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		var order struct{ Cents int64 }
		if err := e.Decode(&order); err != nil {
			return consumer.Permanent(err)
		}
		fmt.Println("order", e.Key, "for", order.Cents)
		if e.Key == "8" {
			stop()
		}
		_, err := tx.Exec(ctx, `insert into entry (order_id, cents) values ($1, $2)`, e.Key, order.Cents)
		return err
	})

	if _, err := tidemark.EmitMany(ctx, pool, []tidemark.Event{
		{Domain: "shop", Type: "order.created", Key: "7", Payload: json.RawMessage(`{"cents": 1200}`)},
		{Domain: "shop", Type: "order.created", Key: "8", Payload: json.RawMessage(`{"cents": 300}`)},
	}); err != nil {
		log.Fatal(err)
	}
	exampledb.SwitchOn(pool, "ledger")
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// order 7 for 1200
	// order 8 for 300
}

// An event that can never be handled is kept as a dead letter at once; the others go on.
func ExamplePermanent() {
	pool, closePool := exampledb.Open()
	defer closePool()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	client, err := consumer.New(pool, consumer.Config{Worker: "ledger", Start: "start"})
	if err != nil {
		log.Fatal(err)
	}
	client.Handle("shop/order.created", func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		var order struct{ Cents int64 }
		if err := e.Decode(&order); err != nil {
			return consumer.Permanent(errors.New("not an order"))
		}
		_, err := tx.Exec(ctx, `insert into entry (order_id, cents) values ($1, $2)`, e.Key, order.Cents)
		stop()
		return err
	})

	if _, err := tidemark.EmitMany(ctx, pool, []tidemark.Event{
		{Domain: "shop", Type: "order.created", Key: "7", Payload: json.RawMessage(`{"cents": "twelve"}`)},
		{Domain: "shop", Type: "order.created", Key: "8", Payload: json.RawMessage(`{"cents": 300}`)},
	}); err != nil {
		log.Fatal(err)
	}
	exampledb.SwitchOn(pool, "ledger")
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}

	var booked, dead string
	if err := pool.QueryRow(context.Background(), `select (select string_agg(order_id, ' ') from entry),
		(select string_agg(event_snapshot ->> 'key' || ': ' || error_detail, ' ') from tidemark.dead_letter)`).Scan(&booked, &dead); err != nil {
		log.Fatal(err)
	}
	fmt.Println("booked", booked)
	fmt.Println("dead letter", dead)

	// Output:
	// booked 8
	// dead letter 7: not an order
}

// A handler that knows when it will work says so.
func ExampleRetryAfter() {
	pool, closePool := exampledb.Open()
	defer closePool()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	client, err := consumer.New(pool, consumer.Config{Worker: "ledger", Start: "start"})
	if err != nil {
		log.Fatal(err)
	}
	client.Handle("shop/order.created", func(context.Context, pgx.Tx, tidemark.Event) error {
		stop()
		return consumer.RetryAfter(errors.New("the books are closed"), time.Hour)
	})

	if _, err := tidemark.Emit(ctx, pool, tidemark.Event{Domain: "shop", Type: "order.created", Key: "7"}); err != nil {
		log.Fatal(err)
	}
	exampledb.SwitchOn(pool, "ledger")
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}

	var why string
	var next time.Time
	if err := pool.QueryRow(context.Background(), `select last_error, next_attempt_at from tidemark.pending`).Scan(&why, &next); err != nil {
		log.Fatal(err)
	}
	fmt.Println(why)
	fmt.Println("tried again in", time.Until(next).Round(time.Minute))

	// Output:
	// handler: the books are closed
	// tried again in 1h0m0s
}
