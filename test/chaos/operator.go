package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// url reaches the database without a proxy.
func (h *harness) url() string { return h.server.URL("postgres") }

func (h *harness) writerURL() string {
	return strings.Replace(h.url(), "postgres@", "chaos_writer@", 1)
}

// connect tries until the server takes us: it may be on its way up again.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		conn, err := pgx.Connect(limited, url)
		cancel()
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		if err := trial.Wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// operatorPatience is how long an operator repeats a statement: a server that does not come up again ends the run.
const operatorPatience = 5 * time.Minute

// ask runs a statement as an operator does who repeats it until it is acknowledged, or his patience ends. It returns what the last
// try said, and how often it was tried.
func ask[T any](ctx context.Context, h *harness, scan pgx.RowToFunc[T], sql string, args ...any) (rows []T, tries int, err error) {
	began := time.Now()
	for tries = 1; ; tries++ {
		rows, err = askOnce(ctx, h, scan, sql, args...)
		var refused *pgconn.PgError
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !passing(refused) || time.Since(began) > operatorPatience {
			return rows, tries, err
		}
		if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
			return nil, tries, err
		}
	}
}

func askOnce[T any](ctx context.Context, h *harness, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := connect(ctx, h.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, _ := conn.Query(ctx, sql, args...)
	return pgx.CollectRows(rows, scan)
}

// passing: the error is the surroundings'.
func passing(e *pgconn.PgError) bool {
	switch e.Code[:2] {
	case "08", "40", "53", "55", "57", "58":
		return true
	}
	return e.Code == "XX000" // what a backend says when another one was killed
}

// command is ask for what returns nothing of interest.
func (h *harness) command(ctx context.Context, sql string, args ...any) error {
	_, _, err := ask(ctx, h, pgx.RowTo[any], sql, args...)
	return err
}

// number is ask for one number.
func (h *harness) number(ctx context.Context, sql string, args ...any) (int64, error) {
	rows, _, err := ask(ctx, h, pgx.RowTo[int64], sql, args...)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// owner is the daemon that holds the lease; -1: none does.
func (h *harness) owner(ctx context.Context) (int, error) {
	rows, _, err := ask(ctx, h, pgx.RowTo[*string], `select lease_owner from tidemark.heartbeat where executor_id = $1`, worker+"/outbox/0")
	if err != nil {
		return -1, err
	}
	for i, d := range h.daemons {
		if len(rows) > 0 && rows[0] != nil && strings.HasPrefix(*rows[0], d.name+"/") {
			return i, nil
		}
	}
	return -1, nil
}

// sample writes down watermark and epoch of each shard until ctx is done.
func (h *harness) sample(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := connect(ctx, h.url())
		if err != nil {
			return
		}
		for err == nil {
			rows, _ := conn.Query(ctx, `select clock_timestamp(), c.shard, c.watermark_id::bigint, h.lease_epoch
				from tidemark.worker_cursor c join tidemark.heartbeat h on h.executor_id = c.worker || '/outbox/' || c.shard
				where c.worker = $1 and c.source = 'outbox'`, worker)
			var now []Sample
			if now, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Sample]); err == nil {
				for _, s := range now {
					h.samples.Add(s)
				}
				err = trial.Wait(ctx, 100*time.Millisecond)
			}
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// quiet waits until nothing is left to do, and says what is if that takes too long.
func (h *harness) quiet(ctx context.Context, limit time.Duration) (string, error) {
	deadline := time.Now().Add(limit)
	last, _, err := ask(ctx, h, pgx.RowTo[string], `select pg_snapshot_xmax(pg_current_snapshot())::text`)
	if err != nil {
		return "", err
	}
	for {
		rows, _, err := ask(ctx, h, pgx.RowTo[string], `
			select concat_ws(', ', nullif(behind, 0) || ' behind', nullif(holes, 0) || ' holes',
			       (select string_agg(p.n || ' pending on ' || r.route_code || ' (' || p.last_error || ')', ', ')
			        from (select route_id, count(*) as n, coalesce(max(last_error), 'untried') as last_error from tidemark.pending group by 1) p
			        join tidemark.outbound_route r on r.id = p.route_id where r.route_code <> $2),
			       'gate ' || gate, (select nullif(count(*), 0) || ' prepared' from pg_prepared_xacts))
			from tidemark.worker_health where worker = $1`, worker, unreachable)
		if err != nil {
			return "", err
		}
		lagging, err := h.lagging(ctx, last[0])
		if err != nil {
			return "", err
		}
		left, err := h.commandsLeft(ctx)
		if err != nil {
			return "", err
		}
		if len(rows) > 0 && strings.Join(rows, "") == "" && lagging == "" && left == "" {
			return "", nil
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("after %s there is %s; %s; %s", limit, strings.Join(rows, "; "), lagging, left), nil
		}
		if err := trial.Wait(ctx, 200*time.Millisecond); err != nil {
			return "", err
		}
	}
}
