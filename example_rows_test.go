package tidemark_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// The rows of a table of the application, page by page, each once.
func ExampleClient_HandleRows() {
	pool, closePool := openPool()
	defer closePool()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	orderSource(pool, "audit")

	client, err := tidemark.New(pool, tidemark.Config{Worker: "audit"})
	if err != nil {
		log.Fatal(err)
	}
	client.HandleRows("orders", func(ctx context.Context, tx pgx.Tx, rows []tidemark.Row) error {
		for _, row := range rows {
			var order struct{ Cents int64 }
			if err := row.Scan(&order); err != nil {
				return tidemark.Permanent(err)
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
