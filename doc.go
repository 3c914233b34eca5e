// Package tidemark emits events into the log of a PostgreSQL database that has Tidemark's schema.
//
// Tidemark makes the database an event backbone. An application emits events in its own transactions; workers deliver every
// committed event to webhooks, Kafka, NATS, SQL functions, jobs and handlers in Go programs. The schema tidemark holds the
// log, the routes and the evidence; `tidemark migrate up` installs it. This package is the vocabulary ([Event], [Error])
// and the way in. Package [github.com/tidemarkhq/tidemark/consumer] runs handlers, [github.com/tidemarkhq/tidemark/sink]
// holds the interface of targets, and [github.com/tidemarkhq/tidemark/tidemarktest] makes databases for tests.
//
// # Emit
//
// Register the type once, with `tidemark type set shop order.paid`. Then emit in the transaction that makes the change:
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		if _, err := tx.Exec(ctx, `update orders set paid = true where id = $1`, id); err != nil {
//			return err
//		}
//		_, err := tidemark.Emit(ctx, tx, tidemark.Event{
//			Domain: "shop", Type: "order.paid", Key: id, Payload: json.RawMessage(`{"cents": 1200}`),
//		})
//		return err
//	})
//
// [EmitMany] emits many events in one statement. [EmitSQL] and [EmitManySQL] take a transaction of database/sql. The login
// needs the role tidemark_emitter.
//
// # Guarantees
//
//   - An event is stored if its transaction commits, and only then.
//   - A committed event is decided for each route, also if its transaction commits after later events did.
//   - Events with the same [Event.Key] are delivered in the order of their emits on routes with ordering = key, if each
//     writer locks the row that the key names before it emits.
//   - A second emit with the same [Event.IdempotencyKey] in a domain stores nothing and returns the id of the first.
//   - What a handler of package consumer writes in its transaction happens exactly once. Targets outside the database get
//     each event at least once; [Event.ID] is the same each time.
//
// # Errors
//
// A refusal is an *[Error] with a SQLSTATE of the class TM and a hint. Ask with errors.Is for the error value of the code,
// such as [ErrPayload]; errors.As for [Misfits] tells which events of [EmitMany] have payloads that do not fit. After a
// refusal roll the transaction back.
package tidemark
