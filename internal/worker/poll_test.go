package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// A cutPool has no connection while it is cut.
type cutPool struct {
	store.Pool
	cut   atomic.Bool
	tried chan struct{} // a transaction that could not begin
}

var errCut = errors.New("no connection")

func (p *cutPool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if p.cut.Load() {
		return nil, errCut
	}
	return p.Pool.Query(ctx, sql, args...)
}

func (p *cutPool) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	if p.cut.Load() {
		p.tried <- struct{}{}
		return nil, errCut
	}
	return p.Pool.BeginTx(ctx, o)
}

// While no poll has a connection the process polls on, and each worker is told to poll for itself, however often this repeats:
// those that are told are those for whom the poll asked, not those of an earlier one.
func TestPollsWithoutAConnection(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	pool := &cutPool{Pool: db.Pool, tried: make(chan struct{})}
	poll := worker.NewPoller(pool, "test/cut", 5*time.Second, 20*time.Millisecond, testLog(t), worker.Besides{})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); poll.Run(ctx) }()
	run(t, db, ts, func(o *worker.Options) { o.Owner, o.Poll = "test/cut", poll })
	exec(t, db, `select tidemark.emit('test', 'tick')`)
	ts["app"].wait(t, 1)

	pool.cut.Store(true)
	for range 20 {
		select {
		case <-pool.tried:
		case <-time.After(time.Minute):
			t.Fatal("the process does not poll any more")
		}
	}
	go func() {
		for range pool.tried { // those under way
		}
	}()
	pool.cut.Store(false)
	exec(t, db, `select tidemark.emit('test', 'tick')`)
	ts["app"].wait(t, 2)
	cancel()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("it does not stop")
	}
	close(pool.tried)
}
