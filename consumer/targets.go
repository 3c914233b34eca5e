package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

// targets are the handlers of a program that works on several events at once, as targets of the daemon's deliveries: they
// share its queues, its order of keys and its gates.
//
// The transaction of a handler cannot be that of the settle. It records in tidemark.handled that the event was handled, and the
// settle removes the record. If the program dies between the two, the next instance finds the record when it delivers the
// event again, and does not call the handler.
type targets struct {
	*deliver.Deliverer
	concurrency int
}

func newTargets(c *Client, handlers calls, permit *worker.Permit) targets {
	d := deliver.New(opener{c.pool, c.config.Worker, handlers}, permit, unobserved{})
	d.InProcess = true
	return targets{d, c.config.Concurrency}
}

// Act delivers with the program's concurrency, which its pool has connections for, not the route's.
func (t targets) Act(ctx context.Context, page *store.Page) []store.Result {
	for i := range page.Routes {
		page.Routes[i].Concurrency = t.concurrency
	}
	return t.Deliverer.Act(ctx, page)
}

// unobserved is a program's deliveries: Observe is its hook.
type unobserved struct{}

func (unobserved) Delivered(string, []sink.Delivery, []sink.Result, time.Duration) {}
func (unobserved) Paused(string, bool)                                             {}

type opener struct {
	pool     *pgxpool.Pool
	worker   string
	handlers calls
}

func (o opener) Open(route store.Route) (sink.Sink, error) {
	handler, err := o.handlers.handlerOf(route)
	return &target{o.pool, o.worker, route, handler}, err
}

// A target is a handler.
type target struct {
	pool    *pgxpool.Pool
	worker  string
	route   store.Route
	handler Handler
}

func (*target) Limits() sink.Limits { return sink.Limits{Batch: 1} }
func (*target) Close() error        { return nil }

func (t *target) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	return []sink.Result{t.handle(ctx, batch[0])}
}

// handle calls the handler in a transaction that records it, under the lease.
func (t *target) handle(ctx context.Context, d sink.Delivery) sink.Result {
	tx, err := t.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return notCalled(err)
	}
	defer rollback(ctx, tx)
	added, deferred, err := store.HandledAdd(ctx, tx, t.worker, store.EventOf{Route: t.route.ID, Seq: d.Event.Seq})
	switch {
	case err != nil:
		return notCalled(err)
	case !added:
		return sink.Result{Status: sink.Delivered}
	}
	event, err := transformed(ctx, tx, t.route, d.Event)
	switch {
	case errors.Is(err, errDropped):
		return sink.Result{Status: deliver.Dropped} // the rollback takes back the record
	case err != nil && !store.TransformFailed(err) && ctx.Err() == nil:
		return notCalled(err)
	case err != nil:
		return failed(err)
	}
	if err := called(ctx, tx, t.handler, Call{d.Route, d.Attempt, d.Replay}, event); err != nil {
		return failed(err)
	}
	if err := store.CheckDeferred(ctx, tx, deferred); err != nil {
		return failed(err)
	}
	// The gates are asked for once more after the last effect.
	switch gate, err := store.LeaseHold(ctx, tx, t.worker, d.Epoch, t.route.ID, d.Event.Domain); {
	case err != nil:
		return notCalled(err)
	case gate != "":
		return sink.Result{Status: sink.Retry, Code: deliver.GateClosed, Detail: "closed by " + gate}
	}
	switch err := tx.Commit(ctx); {
	case err == nil:
		return sink.Result{Status: sink.Delivered}
	case store.Refused(err), errors.Is(err, pgx.ErrTxCommitRollback):
		return failed(err)
	default:
		// The commit may have come through. If so, the record says it at the next attempt.
		return sink.Result{Status: sink.Unknown, Code: reasonHandler, Detail: err.Error()}
	}
}

// reasonHandler is the reason of an attempt that a handler failed at.
const reasonHandler = "handler"

// notCalled is the result of what failed before or beside the handler, and is no attempt of it.
func notCalled(err error) sink.Result {
	return sink.Result{Status: sink.Retry, Local: true, Code: reasonHandler, Detail: tidemark.AsError(err).Error()}
}

// failed is the result of a handler's error. Nothing that it wrote stays.
func failed(err error) sink.Result {
	r := sink.Result{Status: sink.Retry, Code: reasonOf(err), Detail: err.Error()}
	switch permanent, after := wishes(err); {
	case permanent:
		r.Status = sink.Permanent
	case after != nil:
		r.After = max(*after, time.Nanosecond) // 0 would be the policy's delay
	}
	return r
}

// rollback ends the transaction, where it is not over, also after ctx: a session that stays in it would keep its locks.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	_ = tx.Rollback(ctx) // if it fails, the session is closed, which rolls back too
}

const rollbackTime = 5 * time.Second
