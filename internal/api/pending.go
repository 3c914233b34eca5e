package api

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// WaitingRetry says what is tried again, and when.
type WaitingRetry struct {
	store.WaitingItem
	NotBefore time.Time `json:"not_before,omitzero" doc:"Park it until then, at most 30 days; later events of its key wait behind it. Empty: now."`
	Reason    string    `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// WaitingDiscard says what is given up.
type WaitingDiscard struct {
	store.WaitingItem
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// Due is how many deliveries were made due.
type Due struct {
	Deliveries int64 `json:"deliveries" doc:"10000: there may be more, ask again."`
}

func (s *server) pending() {
	act(s, "POST", "/pending/retry", "Let what waits be tried now, or park it: an event, a row, or without item all of a route or source, at most 10000", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body WaitingRetry }) (out Due, err error) {
			out.Deliveries, err = db.PendingRetry(ctx, in.Body.WaitingItem, in.Body.NotBefore, in.Body.Reason)
			return out, eventName(err)
		})
	act(s, "POST", "/pending/discard", "Give up an event or row that waits: it becomes a dead letter", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body WaitingDiscard }) (store.DeadLetter, error) {
			letter, err := db.PendingDiscard(ctx, in.Body.WaitingItem, in.Body.Reason)
			return letter, eventName(err)
		})
}
