package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

var (
	errEnded   = errors.New("tidemark: the handler committed or rolled back its transaction: it returns nil or an error instead")
	errIgnored = errors.New("tidemark: the handler returned nil in spite of an error of the database, which takes back what it wrote")
)

// handlerTx is the transaction as a handler sees it: it cannot end it. Behind a savepoint
// that was released there would be nothing left to take the handler's effects back with.
type handlerTx struct {
	pgx.Tx
	ended bool
}

func (t *handlerTx) Commit(context.Context) error   { t.ended = true; return errEnded }
func (t *handlerTx) Rollback(context.Context) error { t.ended = true; return errEnded }

// guarded calls a handler in tx; a panic is an error. A nil error: what it wrote can be committed.
func guarded(tx pgx.Tx, handler func(tx pgx.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	t := &handlerTx{Tx: tx}
	switch err := handler(t); {
	case err != nil:
		return err
	case t.ended:
		return errEnded
	case tx.Conn().PgConn().TxStatus() == 'E':
		return errIgnored
	}
	return nil
}

// attempt runs a handler with a savepoint of its own. err: the transaction is lost.
func attempt(ctx context.Context, tx pgx.Tx, handler func(tx pgx.Tx) error) (failure, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if failure = handler(savepoint); failure == nil {
		failure = store.CheckDeferred(ctx, savepoint)
	}
	if failure == nil {
		failure = savepoint.Commit(ctx)
	}
	if failure == nil {
		return nil, nil
	}
	if err := savepoint.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return failure, err
	}
	return failure, nil
}
