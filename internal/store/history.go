package store

import (
	"context"
	"time"
)

// HistoryStep is a row of tidemark.history: what a route, or all of them, did in a step of time.
type HistoryStep struct {
	At       time.Time `db:"at" json:"at"`
	Emitted  *int64    `db:"emitted" json:"emitted"` // null: of one route, or not known
	Sent     int64     `db:"sent" json:"sent"`
	Retried  int64     `db:"retried" json:"retried"`
	Failed   int64     `db:"failed" json:"failed"`
	Recorded int64     `db:"recorded" json:"recorded"`
	Waiting  *int64    `db:"waiting" json:"waiting"` // null: not known
}

// History calls tidemark.history. The empty route is all of them. Its steps are as short as leaves at most 300.
func (db *DB) History(ctx context.Context, route string, since time.Duration) ([]HistoryStep, error) {
	step := time.Minute
	switch {
	case since > 25*time.Hour: // older minutes are summed up by the hour
		step = time.Hour
	case since > 5*time.Hour:
		step = 5 * time.Minute
	}
	return list[HistoryStep](ctx, db, `select h.at, h.emitted::bigint, h.sent, h.retried, h.failed, h.recorded, h.waiting
		from tidemark.history(nullif($1, ''), $2, $3) h order by h.at`, route, since, step)
}
