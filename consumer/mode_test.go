package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
)

// A pool may send statements in each of pgx's modes: events are emitted, handled, tried again and kept, one by one or several at a
// time, in pages of all sizes.
func TestQueryExecModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		for _, concurrency := range []int{1, 4} {
			t.Run(fmt.Sprint(mode, concurrency), func(t *testing.T) {
				t.Parallel()
				p := prepared(t, `"retry_policy": {"max_attempts": 2, "base_seconds": 0.01}`)
				client, pool := p.clientWith(concurrency, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
				client.Handle("shop/*", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, o struct{ N string }) error {
					if o.N == "bad" {
						return errors.New("not now")
					}
					_, err := tx.Exec(ctx, `insert into effect values ($1)`, e.Key+o.N)
					return err
				}))
				event := tidemark.Event{Domain: "shop", Type: "order.paid", Key: "a", Actor: "ada", Payload: []byte(`{"n": "1", "s": "ü'\\u0041"}`)}
				if _, err := tidemark.Emit(t.Context(), pool, event); err != nil {
					t.Fatal(err)
				}
				bad, second := event, event
				bad.Key, bad.Payload, second.Payload = "", []byte(`{"n": "bad"}`), []byte(`{"n": "2"}`)
				if ids, err := tidemark.EmitMany(t.Context(), pool, []tidemark.Event{bad, second}); err != nil || len(ids) != 2 {
					t.Fatal(ids, err)
				}
				stop := p.runs(client, pool)
				p.eventually(effects, "a1 a2")
				// A permit that lapses on a busy machine is an attempt too, and no failure.
				p.eventually(`select concat_ws(' ', seq, attempts >= 2, error_code, error_detail) from tidemark.dead_letter`, "2 t handler not now (given up after 2 attempts)")
				stop()
			})
		}
	}
}

// As TestQueryExecModes, of rows of a table.
func TestQueryExecModesOfRows(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			p := preparedRows(t, "")
			client, pool := p.clientWith(1, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			client.HandleRows("births", noteRows)
			stop := p.runs(client, pool)
			p.born("ada", "bob")
			p.eventually(effects, "ada bob")
			stop()
		})
	}
}
