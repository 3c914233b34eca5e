package store

import (
	"context"
	"time"
)

// WaitingItem is what an operator means of what waits: an event on a route, or a row of a worker's source.
type WaitingItem struct {
	Route  string `json:"route,omitempty" doc:"Of an event."`
	Worker string `json:"worker,omitempty" doc:"Of a row, with source."`
	Source string `json:"source,omitempty" doc:"Of a row."`
	Item   string `json:"item,omitempty" doc:"Number or id of the event, id of the row."`
}

// number is the event's; nil: not given, or it is a row.
func (w WaitingItem) number(ctx context.Context, db *DB) (*int64, error) {
	if w.Route == "" || w.Item == "" {
		return nil, nil
	}
	seq, err := db.EventNumber(ctx, w.Item)
	return &seq, err
}

const waitingItem = `route_code => nullif($2, ''), seq => $3, worker => nullif($4, ''), source => nullif($5, ''), item_id => case when $2 = '' then nullif($6, '') end`

// PendingRetry calls tidemark.pending_retry. Without an Item it is for all that waits there. A zero notBefore is now. It returns how
// many deliveries are due then: 10000 where there may be more.
func (db *DB) PendingRetry(ctx context.Context, w WaitingItem, notBefore time.Time, reason string) (int64, error) {
	seq, err := w.number(ctx, db)
	if err != nil {
		return 0, err
	}
	return value[int64](ctx, db, `select tidemark.pending_retry(reason => $1, `+waitingItem+`, not_before => $7)`,
		reason, w.Route, seq, w.Worker, w.Source, w.Item, instant(notBefore))
}

// PendingDiscard calls tidemark.pending_discard, and returns the dead letter.
func (db *DB) PendingDiscard(ctx context.Context, w WaitingItem, reason string) (DeadLetter, error) {
	seq, err := w.number(ctx, db)
	if err != nil {
		return DeadLetter{}, err
	}
	id, err := value[int64](ctx, db, `select tidemark.pending_discard(reason => $1, `+waitingItem+`)`, reason, w.Route, seq, w.Worker, w.Source, w.Item)
	if err != nil {
		return DeadLetter{}, err
	}
	return db.DeadLetter(ctx, id)
}
