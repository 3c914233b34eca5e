package main

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

//go:embed remake.sql
var remake string

// A change is something that an operator did to a table after which its worker must be held, with a finding, until the
// operator has said where to go on.
type change struct {
	Source string
	What   string
	From   time.Time // the change was acknowledged
	To     time.Time // the rewind was sent
	Told   bool      // the finding came
	Strict bool      // the worker may handle nothing in between
}

// heldFor is how long a worker may take to notice, with everything else that goes wrong meanwhile.
const heldFor = 30 * time.Second

// remade has an operator change the ledger, wait for the finding whose detail is like says, and accept the change or rewind.
func (h *harness) remade(what, says string, strict bool, sql string, args ...any) func(context.Context) error {
	return func(ctx context.Context) error {
		since, _, err := ask(ctx, h, pgx.RowTo[*int64], sql, args...)
		if err != nil || since[0] == nil {
			return err
		}
		x := change{Source: "ledger", What: what, From: time.Now(), Strict: strict}
		began, _, err := ask(ctx, h, pgx.RowTo[time.Time], `select clock_timestamp()`)
		for err == nil && !x.Told && time.Since(x.From) < heldFor {
			var n int64
			n, err = h.number(ctx, `select count(*) from tidemark.finding where kind = 'source_changed' and subject = $1
				and last_seen_at >= $2 and detail like $3`, tableWorker+"/ledger/0", began[0], says)
			x.Told = n > 0
			err = errors.Join(err, trial.Wait(ctx, 50*time.Millisecond))
		}
		x.To = time.Now()
		if err != nil {
			return err
		}
		h.changes.Add(x)
		return h.command(ctx, `select app.rewind_ledger($1)`, *since[0])
	}
}

// tableTruncate empties the ledger and has its numbers begin again.
func tableTruncate(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "table ledger", h.remade("truncate", "%was restarted%", true, `select app.truncate_ledger()`)
}

// tableSetBack deletes the last rows of the ledger and sets its sequence back to where they began. It may pass the
// watermark again before the next pass; then a row in flight may come late, and the page before it is read.
func tableSetBack(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "table ledger", h.remade("setval", "%set back%", false, `select app.set_back_ledger($1)`, 20+random.IntN(200))
}

// tableSwap puts a copy in the place of the ledger, for good.
func tableSwap(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "table ledger", h.remade("swap", "%is not the table that was read%", true, `select app.swap_ledger()`)
}

// tableDetach detaches a partition for a while, in which the cursor goes past its rows. Nothing tells that: the operator
// rewinds when it is back.
func tableDetach(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, time.Second, 3*time.Second)
	return "table receipt", func(ctx context.Context) error {
		if err := h.command(ctx, `select app.detach_receipts()`); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, h.command(ctx, `select app.attach_receipts()`), h.command(ctx, `select app.rewind_receipts()`))
	}
}

// rewind is a time in which an operator moved the cursor of the log back, or changed the number of its shards.
type rewind struct{ Sent, Over time.Time }

// logRewind moves the cursors of the log back. What was decided stays decided: nothing is lost, and nothing comes again.
func logRewind(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	by := 1 + random.IntN(3000)
	return "log", func(ctx context.Context) error {
		x := rewind{Sent: time.Now()}
		err := h.command(ctx, `select count(*) from (select min(c.watermark_id::bigint) as at from tidemark.worker_cursor c
			where c.worker = $1 and c.source = 'outbox') c, tidemark.worker_rewind($1, greatest(0, c.at - $2), 'chaos')`, worker, by)
		x.Over = time.Now()
		h.rewinds.Add(x)
		return err
	}
}
