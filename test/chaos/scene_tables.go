package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// tableAway has a table away under another name for a while. Its worker must hold, and go on by itself.
func tableAway(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	table := []string{"ledger", "receipt", "reading"}[random.IntN(3)]
	d := between(random, time.Second, 3*time.Second)
	return "table " + table, func(ctx context.Context) error {
		rename := func(from, to string) error {
			return h.command(ctx, fmt.Sprintf(`do $$ begin
				if to_regclass('app.%[1]s') is not null then
					set local lock_timeout = '5s';
					alter table app.%[1]s rename to %[2]s;
				end if; end $$`, from, to))
		}
		if err := rename(table, table+"_away"); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, rename(table+"_away", table))
	}
}

// tableRewind moves a cursor back. In the same transaction the application forgets what it is to get again.
func tableRewind(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	by := 1 + random.IntN(2000)
	if random.IntN(2) == 0 {
		return "table ledger", func(ctx context.Context) error {
			return h.command(ctx, `with rewound as materialized (
					select c.id, tidemark.source_rewind($1, 'ledger', 'chaos', to_id => c.id::text)
					from (select greatest(0, watermark_id::bigint - $2) as id from tidemark.worker_cursor where worker = $1 and source = 'ledger') c)
				select app.forget_ledger(r.id) from rewound r`, tableWorker, by)
		}
	}
	return "table receipt", func(ctx context.Context) error {
		return h.command(ctx, `with rewound as materialized (
				select c.at, tidemark.source_rewind($1, 'receipt', 'chaos', to_ts => c.at)
				from (select watermark_ts - $2 * interval '5 milliseconds' as at from tidemark.worker_cursor where worker = $1 and source = 'receipt'
				      and watermark_ts is not null) c)
			select app.forget_receipts(r.at) from rewound r`, tableWorker, by)
	}
}

// lowTimeouts gives the daemons' role limits that its statements meet, for a while.
func lowTimeouts(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	limits := [][2]string{
		{"statement_timeout", "150ms"}, {"statement_timeout", "40ms"}, {"lock_timeout", "5ms"}, {"idle_in_transaction_session_timeout", "20ms"},
	}
	limit := limits[random.IntN(len(limits))]
	d := between(random, 2*time.Second, 5*time.Second)
	return "role", func(ctx context.Context) error {
		// Sessions learn of it when they begin.
		begin := func(change string) error {
			return h.command(ctx, fmt.Sprintf(`do $$ begin
				alter role chaos_daemon %s;
				perform pg_terminate_backend(pid) from pg_stat_activity where usename = 'chaos_daemon'; end $$`, change))
		}
		if err := begin(fmt.Sprintf("set %s = '%s'", limit[0], limit[1])); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, begin("reset "+limit[0]))
	}
}

// lowLimits sets thresholds so low that they are always met.
func lowLimits(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	holes := 1 + random.IntN(30)
	d := between(random, 2*time.Second, 5*time.Second)
	return "limits", func(ctx context.Context) error {
		set := func(limit int) error {
			return h.command(ctx, `select count(*) from tidemark.worker w, tidemark.worker_set(w.worker, jsonb_build_object('hole_limit', $1::integer), 'chaos')
				where w.worker in ($2, $3)`, limit, worker, tableWorker)
		}
		was, err := h.number(ctx, `select hole_limit from tidemark.worker where worker = $1`, worker)
		if err != nil {
			return err
		}
		if err := set(holes); err != nil {
			return err
		}
		err = trial.Wait(ctx, d)
		return errors.Join(err, set(int(was)))
	}
}
