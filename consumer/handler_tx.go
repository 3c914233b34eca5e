package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

var (
	errEnded   = errors.New("tidemark: the handler committed or rolled back its transaction: it returns nil or an error instead")
	errUnread  = errors.New("tidemark: the handler left rows of a query unread: it closes them before it returns")
	errGone    = errors.New("tidemark: the handler ended its goroutine, as runtime.Goexit and FailNow of a test do: it returns an error instead")
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
	defer given(tx, &err)
	t := &handlerTx{Tx: tx}
	switch err := apart(func() error { return handler(t) }); {
	case err != nil:
		return err
	case t.ended, tx.Conn().PgConn().TxStatus() == 'I':
		return errEnded
	case tx.Conn().PgConn().TxStatus() == 'E':
		return errIgnored
	}
	return nil
}

// apart calls a handler in a goroutine of its own: one that ends it must not take along the worker, which nothing would end then.
func apart(handler func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { ended <- err }()
		defer caught(&err)
		err = handler()
	}()
	return <-ended
}

// An unfitError is the error of a handler whose session had to be closed.
type unfitError struct{ error }

func (e unfitError) Unwrap() error { return e.error }

// given, deferred, closes a session that the handler gives back unfit: nothing, not even a rollback, can follow rows that it left
// unread; and outside of the transaction that it was called in, what comes next would be done by itself, at each try again.
func given(tx pgx.Tx, err *error) {
	conn := tx.Conn().PgConn()
	unread := conn.IsBusy()
	if conn.IsClosed() || !unread && conn.TxStatus() != 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
	defer cancel()
	_ = tx.Conn().Close(ctx) // it is closed, whatever the server says
	if unread && *err == nil {
		*err = errUnread
	}
	*err = unfitError{*err}
}

// beyond is ctx for what follows handlers, which keeps what they have done or takes it back: where ctx is done, and has cut them off, it
// goes on for a while.
func beyond(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(rollbackTime, cancel) })
	return later, func() { stop(); cancel() }
}

// attempt runs a handler with a savepoint of its own, and checks the deferred constraints. err: the transaction is lost.
func attempt(ctx context.Context, tx pgx.Tx, deferred string, handler func(tx pgx.Tx) error) (failure, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	failure = handler(savepoint)
	ctx, end := beyond(ctx)
	defer end()
	if failure == nil {
		failure = store.CheckDeferred(ctx, savepoint, deferred)
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
