package consumer_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/exampledb"
)

type order struct{ Cents int64 }

// A typed handler that works on eight events at a time, those of one order in their order, with middleware around it. Drain
// returns when everything is handled.
func ExampleHandleFunc() {
	ctx := context.Background()
	pool, closePool := exampledb.Open()
	defer closePool()

	client, err := consumer.New(pool, consumer.Config{Worker: "ledger", Start: "start", Concurrency: 8})
	if err != nil {
		log.Fatal(err)
	}
	client.Handle("shop/order.created", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, o order) error {
		_, err := tx.Exec(ctx, `insert into entry (order_id, cents) values ($1, $2)`, e.Key, o.Cents)
		return err
	}))
	var handled, failed atomic.Int64 // counters of your metrics
	client.Use(
		consumer.Log(slog.Default()),
		consumer.Observe(func(_ context.Context, _ consumer.Call, _ tidemark.Event, _ time.Duration, err error) {
			if err != nil {
				failed.Add(1)
			}
			handled.Add(1)
		}),
	)

	events := make([]tidemark.Event, 40)
	for i := range events {
		events[i] = tidemark.Event{Domain: "shop", Type: "order.created", Key: fmt.Sprint(i), Payload: []byte(`{"cents": 25}`)}
	}
	if _, err := tidemark.EmitMany(ctx, pool, events); err != nil {
		log.Fatal(err)
	}
	exampledb.SwitchOn(pool, "ledger")
	if err := client.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	var cents int64
	if err := pool.QueryRow(ctx, `select sum(cents) from entry`).Scan(&cents); err != nil {
		log.Fatal(err)
	}
	fmt.Println(handled.Load(), "handled,", failed.Load(), "failed,", cents, "cents booked")

	// Output:
	// 40 handled, 0 failed, 1000 cents booked
}
