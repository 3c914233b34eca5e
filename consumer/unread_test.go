package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
)

// A handler that returns with the rows of a query unread fails, with or without an error of its own. It holds up no other event.
func TestHandlerLeavesRowsUnread(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			p := prepared(t, `"retry_policy": {"max_attempts": 1}`)
			p.concurrently(concurrency, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
				if is(e, "1") {
					return note(ctx, tx, e)
				}
				rows, err := tx.Query(ctx, `select generate_series(1, 9)`)
				switch {
				case err != nil:
					return err
				case !rows.Next():
					return rows.Err()
				case is(e, "2"):
					return errors.New("no")
				case is(e, "3"):
					return nil
				}
				return nil
			})
			p.emit("", "1", "2", "3")
			p.eventually(effects, "1")
			p.eventually(`select error_detail from tidemark.dead_letter order by seq`, "no (given up after 1 attempts)",
				"tidemark: the handler left rows of a query unread: it closes them before it returns (given up after 1 attempts)")
		})
	}
}

// A handler that ends the transaction with a statement fails. It holds up no other event, and none is handled again and again.
func TestHandlerEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{"rollback": "1 3", "commit": "1 1 3"} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			p := prepared(t, `"retry_policy": {"max_attempts": 1}`)
			p.emit("", "1", "2", "3")
			p.concurrently(1, func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
				if !is(e, "2") {
					return note(ctx, tx, e)
				}
				_, err := tx.Exec(ctx, statement)
				return err
			})
			p.eventually(`select seq || ' ' || split_part(error_detail, $$:$$, 2) from tidemark.dead_letter`, "2  the handler committed or rolled back its transaction")
			p.eventually(effects, want)
		})
	}
}

// A rows handler that leaves its transaction unfit: the row at fault has failed, and the others are handled.
func TestRowsHandlerIsUnfit(t *testing.T) {
	t.Parallel()
	p := startRows(t, `"retry_policy": {"max_attempts": 1}`, func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		for _, r := range rows {
			switch {
			case strings.Contains(string(r.Data), "unread"):
				left, err := tx.Query(ctx, `select generate_series(1, 9)`)
				if err == nil && !left.Next() {
					err = left.Err()
				}
				return err
			case strings.Contains(string(r.Data), "ends"):
				_, err := tx.Exec(ctx, `rollback`)
				return err
			}
		}
		return noteRows(ctx, tx, rows)
	})
	p.born("a", "unread", "b", "ends", "c")
	p.eventually(effects, "a b c")
	p.eventually(`select concat_ws(' ', event_snapshot ->> 'name', error_detail) from tidemark.dead_letter order by 1`,
		"ends tidemark: the handler committed or rolled back its transaction: it returns nil or an error instead",
		"unread tidemark: the handler left rows of a query unread: it closes them before it returns")
}
