package tidemark_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/exampledb"
)

// The event is part of the transaction: rolled back, there is none.
func ExampleEmit() {
	ctx := context.Background()
	pool, closePool := exampledb.Open()
	defer closePool()

	order := func(id string, inStock bool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `insert into orders (id, cents) values ($1, $2)`, id, 1200); err != nil {
				return err
			}
			if _, err := tidemark.Emit(ctx, tx, tidemark.Event{
				Domain: "shop", Type: "order.created", Key: id, Payload: json.RawMessage(`{"cents": 1200}`),
			}); err != nil {
				return err
			}
			if !inStock {
				return errors.New("out of stock")
			}
			return nil
		})
	}
	fmt.Println(order("7", true))
	fmt.Println(order("8", false))

	rows, _ := pool.Query(ctx, `select key || ' ' || type || ' ' || payload from tidemark.outbox`)
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range events {
		fmt.Println(event)
	}

	// Output:
	// <nil>
	// out of stock
	// 7 order.created {"cents": 1200}
}

// With an idempotency key an event that is emitted again is the first one.
func ExampleEmit_idempotencyKey() {
	ctx := context.Background()
	pool, closePool := exampledb.Open()
	defer closePool()

	event := tidemark.Event{Domain: "shop", Type: "order.created", IdempotencyKey: "order 7"}
	first, err := tidemark.Emit(ctx, pool, event)
	if err != nil {
		log.Fatal(err)
	}
	again, err := tidemark.Emit(ctx, pool, event)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first == again)

	// Output: true
}

func ExampleEmit_refused() {
	ctx := context.Background()
	pool, closePool := exampledb.Open()
	defer closePool()

	_, err := tidemark.Emit(ctx, pool, tidemark.Event{Domain: "shop", Type: "order.created", Payload: json.RawMessage(`[1, 2]`)})
	fmt.Println(errors.Is(err, tidemark.ErrPayload))
	_, err = tidemark.Emit(ctx, pool, tidemark.Event{Domain: "shop", Type: "order.lost"})
	fmt.Println(errors.Is(err, tidemark.ErrUnknownType))

	// Output:
	// true
	// true
}

func ExampleEmitSQL() {
	ctx := context.Background()
	db, closeDB := exampledb.OpenSQL() // as sql.Open("pgx", url) does
	defer closeDB()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `insert into orders (id, cents) values ($1, $2)`, "7", 1200); err != nil {
		log.Fatal(err)
	}
	id, err := tidemark.EmitSQL(ctx, tx, tidemark.Event{Domain: "shop", Type: "order.created", Key: "7"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

	var events int
	if err := db.QueryRowContext(ctx, `select count(*) from tidemark.outbox where event_id = $1`, id).Scan(&events); err != nil {
		log.Fatal(err)
	}
	fmt.Println(events, "event")

	// Output: 1 event
}

// Many events are one statement.
func ExampleEmitMany() {
	ctx := context.Background()
	pool, closePool := exampledb.Open()
	defer closePool()

	var events []tidemark.Event
	for _, key := range []string{"7", "8", "9"} {
		events = append(events, tidemark.Event{Domain: "shop", Type: "order.created", Key: key})
	}
	ids, err := tidemark.EmitMany(ctx, pool, events)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ids), "events")

	// Output: 3 events
}

// The payload of an event, as a handler or a sink decodes it.
func ExampleEvent_Decode() {
	e := tidemark.Event{Domain: "shop", Type: "order.created", Payload: json.RawMessage(`{"id": "7", "cents": 1200}`)}

	var order struct {
		ID    string `json:"id"`
		Cents int64  `json:"cents"`
	}
	if err := e.Decode(&order); err != nil {
		log.Fatal(err)
	}
	fmt.Println("order", order.ID, "for", order.Cents)

	// Output: order 7 for 1200
}
