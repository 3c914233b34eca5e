package api

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// shared is a transaction for all that a page reads: it costs one connection and one beginning instead of one of each resource.
type shared struct {
	mu sync.Mutex
	tx pgx.Tx // nil: not begun
}

type sharedKey struct{}

// Share returns a context whose readings share a transaction of the context's person. The next of them begins it.
func Share(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedKey{}, &shared{})
}

// EndShared ends the transaction: at the end of a page, and before it waits for another page, which may be waiting for a connection.
func EndShared(ctx context.Context) {
	s, has := ctx.Value(sharedKey{}).(*shared)
	if !has {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx != nil {
		s.rollback(ctx)
	}
}

// Unshared returns a context whose readings have transactions of their own, for what outlives the page.
func Unshared(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedKey{}, nil)
}

// read runs work in the transaction, which ends where work fails: PostgreSQL refuses what comes after a failure in it.
func (s *shared) read(ctx context.Context, server *server, work func(*store.DB) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		tx, err := server.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		s.tx = tx
		person, _ := PersonOf(ctx)
		if err := store.New(tx).ActFor(ctx, person.Name, person.Role == Viewer, patience(see)); err != nil {
			s.rollback(ctx)
			return err
		}
	}
	err := work(store.New(s.tx))
	if err != nil {
		s.rollback(ctx)
	}
	return err
}

// rollback gives the connection back, also where the browser has gone.
func (s *shared) rollback(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.tx.Rollback(limited) // nothing was written; a broken connection leaves the pool
	s.tx = nil
}
