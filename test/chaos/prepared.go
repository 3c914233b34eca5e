package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A limbo is a transaction that was prepared, or may have been.
type limbo struct {
	gid    string
	commit bool
	due    time.Time
	txn    *txn
}

// prepare leaves the transaction to the resolver, which alone may commit it. The resolver rolls back a transaction of which
// no writer knows whether it was prepared.
func (d *draft) prepare(commit bool, later time.Duration) {
	gid := fmt.Sprintf("chaos-%d", d.p.next.Add(1))
	d.txn.Fate = rolledBack
	d.hushed()
	if d.err == nil {
		d.txn.Async = false // a transaction that is prepared waits for the disk
		d.exec("prepare transaction '" + gid + "'")
		x := limbo{gid, commit && d.err == nil, time.Now().Add(later), d.txn}
		if !x.commit {
			x.due = time.Now().Add(later + time.Second)
		} else {
			d.txn.Fate = unknown
		}
		d.p.limbo.Add(x)
	}
	d.close()
}

// resolve ends prepared transactions when their time has come, until stop is closed and none is left.
func (h *harness) resolve(ctx context.Context, stop <-chan struct{}) {
	done := 0
	for waiting := []limbo(nil); ctx.Err() == nil; {
		all := h.limbo.All()
		waiting = append(waiting, all[done:]...)
		done = len(all)
		stopping := isClosed(stop)
		rest := waiting[:0]
		for _, x := range waiting {
			if stopping || time.Now().After(x.due) && !h.hush.Load() {
				h.conclude(ctx, x)
			} else {
				rest = append(rest, x)
			}
		}
		waiting = rest
		if stopping && len(waiting) == 0 && len(h.limbo.All()) == done {
			return
		}
		_ = trial.Wait(ctx, 50*time.Millisecond)
	}
}

func (h *harness) conclude(ctx context.Context, x limbo) {
	verb := "rollback"
	if x.commit {
		verb = "commit"
	}
	_, tries, err := ask(ctx, h, pgx.RowTo[any], verb+" prepared '"+x.gid+"'")
	var refused *pgconn.PgError
	gone := errors.As(err, &refused) && refused.Code == "42704" // there is none of that name
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !x.commit:
		x.txn.Fate = rolledBack
	case err == nil, gone && tries > 1: // an earlier try did it, unheard
		x.txn.Fate = committed
	case gone:
		h.brokenLocked("a transaction that was prepared, acknowledged, is gone: " + x.gid)
	}
	x.txn.Ended = time.Now()
}

// sweep rolls back prepared transactions that no writer knows of.
func (h *harness) sweep(ctx context.Context) error {
	gids, _, err := ask(ctx, h, pgx.RowTo[string], `select gid from pg_prepared_xacts`)
	if err != nil {
		return err
	}
	for _, gid := range gids {
		if err := h.command(ctx, "rollback prepared '"+gid+"'"); err != nil {
			return err
		}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
