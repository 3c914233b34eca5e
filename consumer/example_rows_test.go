package consumer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/exampledb"
)

// The rows of a table of the application, page by page, each once.
func ExampleClient_HandleRows() {
	pool, closePool := exampledb.Open()
	defer closePool()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	exampledb.OrderSource(pool, "audit")

	client, err := consumer.New(pool, consumer.Config{Worker: "audit"})
	if err != nil {
		log.Fatal(err)
	}
	client.HandleRows("orders", func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		for _, row := range rows {
			var order struct{ Cents int64 }
			if err := row.Scan(&order); err != nil {
				return consumer.Permanent(err)
			}
			if _, err := tx.Exec(ctx, `insert into entry (order_id, cents) values ($1, $2)`, row.ID, order.Cents); err != nil {
				return err
			}
			fmt.Println("order", row.ID, "for", order.Cents)
		}
		stop()
		return nil
	})
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// order 7 for 1200
	// order 8 for 300
}
