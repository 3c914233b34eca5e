package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// firstShards is how many shards the worker of the log begins with, in the runs that have shards.
const firstShards = 3

// withShards: a third of the seeds give the worker of the log shards, and of the mutants those that need them.
func (o *options) withShards() bool {
	switch o.shards {
	case "on":
		return true
	case "off":
		return false
	}
	if o.mutant.name != "" {
		return o.mutant.shards
	}
	return o.seed%3 == 0
}

func setShards(ctx context.Context, conn *pgx.Conn, n int) error {
	_, err := conn.Exec(ctx, `select count(*) from tidemark.worker_set($1, jsonb_build_object('shards', $2::integer), 'chaos')`, worker, n)
	return err
}

// shardsChange has an operator pause the worker, give it another number of shards and resume it. Cursors may go back
// for it, as for a rewind. Where a daemon that was stopped keeps a lease for long, the number stays.
func shardsChange(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	n := 1 + random.IntN(5)
	return "log", func(ctx context.Context) error {
		x := rewind{Sent: time.Now()}
		err := h.command(ctx, `select tidemark.worker_pause($1, true, 'chaos')`, worker)
		for deadline := time.Now().Add(12 * time.Second); err == nil && time.Now().Before(deadline); {
			_, err = askOnce(ctx, h, pgx.RowTo[any], `select count(*) from tidemark.worker_set($1, jsonb_build_object('shards', $2::integer), 'chaos')`, worker, n)
			var refused *pgconn.PgError
			switch {
			case err == nil:
				deadline = time.Time{}
			case ctx.Err() != nil || errors.As(err, &refused) && refused.Code != "TM005" && !passing(refused):
				return err
			default: // a daemon has a lease yet, or the acknowledgement was lost
				err = trial.Wait(ctx, 100*time.Millisecond)
			}
		}
		err = errors.Join(err, h.command(ctx, `select tidemark.worker_pause($1, false, 'chaos')`, worker))
		x.Over = time.Now()
		h.rewinds.Add(x)
		return err
	}
}
