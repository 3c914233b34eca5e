package consumer

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
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

// guarded calls a handler in tx. A nil error: what it wrote can be committed.
func guarded(tx pgx.Tx, handler func(tx pgx.Tx) error) error {
	t := &handlerTx{Tx: tx}
	err := handler(t)
	switch {
	case err != nil:
		return err
	case t.ended:
		return errEnded
	case tx.Conn().PgConn().TxStatus() == 'E':
		return errIgnored
	}
	return nil
}
