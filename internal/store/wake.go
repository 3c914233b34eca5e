package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The lock that tidemark.emit looks at.
const wakeLock = `(1953064301, 1)`

// HoldWake says to writers that a worker sleeps, until DropWake or the end of the session. False: a writer has the lock
// at this moment, and so may any login for as long as it likes. It does not wait, since the poll is the truth.
func HoldWake(ctx context.Context, db Querier) (held bool, err error) {
	for range 3 { // a writer holds it for the time of two function calls
		err = db.QueryRow(ctx, `select pg_try_advisory_lock_shared`+wakeLock).Scan(&held)
		if held || err != nil {
			break
		}
	}
	return held, err
}

// DropWake takes HoldWake back.
func DropWake(ctx context.Context, db Querier) error {
	_, err := db.Exec(ctx, `select pg_advisory_unlock_shared`+wakeLock)
	return err
}

// Bridge returns whether the gate notify.bridge_enabled is open, and the domains that
// there are.
func Bridge(ctx context.Context, db Querier) (open bool, domains []string, err error) {
	err = db.QueryRow(ctx, `select tidemark.gate_open('notify.bridge_enabled'), array(select d.domain from tidemark.domain d)`).
		Scan(&open, &domains)
	return open, domains, err
}

// Listen listens to the signal of a domain.
func Listen(ctx context.Context, db Querier, domain string) error {
	channel := "tidemark_wake_" + domain
	_, err := db.Exec(ctx, `listen `+pgx.Identifier{channel[:min(len(channel), 63)]}.Sanitize())
	return err
}
