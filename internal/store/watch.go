package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// Watch is what a look of the watch sees.
type Watch struct {
	Causes  []Watched
	Letters []Letter // dead letters that no daemon has logged
}

// Watched is a row of tidemark.watch.
type Watched struct {
	State   string     `db:"state" json:"state"`   // opened, open, closed, upkeep or held
	Status  *string    `db:"status" json:"status"` // bad, unknown or warn; null: it is over
	Cause   *string    `db:"cause" json:"cause"`
	Subject string     `db:"subject" json:"subject"`
	Since   *time.Time `db:"since" json:"since"`
	Found   string     `db:"found" json:"found"`
	CLI     []string   `db:"cli" json:"cli"`
	Finding *int64     `db:"finding" json:"finding"`
}

// Letter is a dead letter, without its content.
type Letter struct {
	Letter   int64   `json:"letter"`
	EventID  *string `json:"event_id"` // null: of a row, or of a command
	Route    *string `json:"route"`
	Worker   string  `json:"worker"`
	Source   string  `json:"source"`
	ItemID   *string `json:"item_id"`
	Code     string  `json:"code"`
	Attempts int     `json:"attempts"`
	Trace    *string `json:"trace"` // a traceparent, or of a command what it calls trace_id
}

// Look lets the instance watch, if no other one does, and takes the dead letters that no daemon has logged: in one statement, and where
// the default of the database is not READ COMMITTED, in a transaction that is.
func Look(ctx context.Context, db Pool, watcher string) (saw Watch, err error) {
	if saw, err = look(ctx, db, watcher); !Is(err, tidemark.ErrIsolation) {
		return saw, err
	}
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		saw, err = look(ctx, tx, watcher)
		return err
	})
	return saw, err
}

func look(ctx context.Context, db Querier, watcher string) (saw Watch, err error) {
	const ask = `select (select jsonb_agg(w) from tidemark.watch($1, false) w), (select jsonb_agg(l) from tidemark.letters_unlogged(1000) l)`
	err = db.QueryRow(ctx, ask, watcher).Scan(&saw.Causes, &saw.Letters)
	return saw, err
}

// CopiesCompare compares marks that were heard at a broker with those of this database (tidemark.copies_compare). It returns the next
// mark, and where copies of this database leave theirs; both are empty where the database is not armed.
func CopiesCompare(ctx context.Context, db Querier, target string, heard []string) (place, mark string, err error) {
	err = db.QueryRow(ctx, `select place, mark from tidemark.copies_compare($1, $2)`, target, heard).Scan(&place, &mark)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return place, mark, err
}
