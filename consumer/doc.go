// Package consumer handles events of Tidemark, and rows of tables, inside a Go program.
//
// Each event is handled in a transaction that also records that it was handled:
//
//	client, err := consumer.New(pool, consumer.Config{Worker: "ledger"})
//	if err != nil {
//		return err
//	}
//	client.Handle("shop/order.*", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, order Order) error {
//		_, err := tx.Exec(ctx, `insert into entry (order_id, cents) values ($1, $2)`, e.Key, order.Cents)
//		return err // on an error: tried again later
//	}))
//	return client.Run(ctx) // until ctx is done
//
// # Switching a handler on
//
// The first [Client.Run] registers the worker, and a route for each handler with the code WORKER.DOMAIN.TYPE, where a final *
// is called all. They are switched off, as everything in Tidemark is at first. An operator switches them on:
//
//	tidemark route go-live ledger.shop.order.all --reason 'the ledger goes live'
//
// # Guarantees
//
//   - What a handler writes in tx commits together with the record that the event was handled, or not at all: effects in the
//     database happen exactly once. What a handler does elsewhere may happen again.
//   - A handler that returns an error, panics, ends its goroutine or outlasts its timeout leaves nothing behind in tx. The event
//     is tried again by the route's retry_policy, or as [RetryAfter] says, and becomes a dead letter in the end, or at once with
//     [Permanent]. Other events go on meanwhile.
//   - Instances of a program with the same worker take turns. One holds the lease and handles; if it dies, another one
//     takes over when the lease ends.
//   - A closed gate stops handlers within a second.
//
// Events of one key are handled in order, unless their route's ordering is none: while one fails, later ones of its key wait.
//
// # Concurrency
//
// By default events of one batch share a transaction, and are handled one after the other. If one of them fails, the transaction
// is rolled back to before the batch and each handler runs again, with a savepoint of its own. With [Config].Concurrency each
// event has a transaction of its own, and events of different keys are handled at the same time.
//
// # Rows of tables
//
// [Client.HandleRows] takes the rows of a table that `tidemark source add` has declared, page by page, each once. Its worker
// is called as the one of the events, with ".rows" behind.
package consumer
