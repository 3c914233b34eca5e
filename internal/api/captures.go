package api

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// CaptureTable is the body of an act on a captured table.
type CaptureTable struct {
	Table  string `json:"table" minLength:"1" doc:"SCHEMA.TABLE"`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

func (s *server) captures() {
	operation(s, "GET", "/captures", "Captured tables, and what the check of their triggers finds", see,
		func(ctx context.Context, db *store.DB, _ *none) (out Captures, err error) {
			err = store.InTurn(
				func() error { out.Tables, err = db.CaptureList(ctx); return err },
				func() error { out.Checks, err = db.CaptureCheck(ctx); return err },
				func() error { out.Gaps, err = db.OpenGaps(ctx, ""); return err },
			)
			return out, err
		})
	act(s, "POST", "/capture-gaps/{id}/emit", "Emit the events that a gap lacks", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ID   int64 `path:"id"`
			Body Act
		},
		) (out Emitted, err error) {
			out.Emitted, err = db.CaptureGapEmit(ctx, in.ID, in.Body.Reason)
			return out, err
		})
	act(s, "POST", "/capture-gaps/{id}/accept", "Accept that a gap stays without events", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ID   int64 `path:"id"`
			Body Act
		},
		) (none, error) {
			return none{}, db.CaptureGapAccept(ctx, in.ID, in.Body.Reason)
		})
	act(s, "POST", "/captures/attach", "Put the triggers of capture on a table that has inbound routes", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			Body struct {
				CaptureTable
				DryRun bool `json:"dry_run,omitempty" doc:"Change nothing; tell the statements."`
			}
		},
		) ([]store.CaptureStatement, error) {
			return db.CaptureAttach(ctx, in.Body.Table, in.Body.Reason, in.Body.DryRun, false)
		})
	act(s, "POST", "/captures/detach", "Drop the triggers of capture of a table", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			Body struct {
				CaptureTable
				DryRun bool `json:"dry_run,omitempty" doc:"Change nothing; tell the statements."`
			}
		},
		) ([]store.CaptureStatement, error) {
			return db.CaptureDetach(ctx, in.Body.Table, in.Body.Reason, in.Body.DryRun)
		})
	act(s, "POST", "/captures/emit", "Emit the events that the gaps of a table lack", configure,
		func(ctx context.Context, db *store.DB, in *struct{ Body CaptureTable }) (out Emitted, err error) {
			gaps, err := db.OpenGaps(ctx, in.Body.Table)
			for _, g := range gaps {
				emitted, err := db.CaptureGapEmit(ctx, g.ID, in.Body.Reason)
				if err != nil {
					return out, err
				}
				out.Emitted += emitted
			}
			return out, err
		})
	act(s, "PATCH", "/captures/routes/{route}", "Change an inbound route", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Changes
		},
		) (store.InboundRoute, error) {
			return db.InboundRouteSet(ctx, in.Route, in.Body.Set, in.Body.Reason)
		})
	act(s, "POST", "/maintain", "Run upkeep now, as a daemon does each minute", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body Act }) ([]store.Upkeep, error) {
			if err := db.MaintainNote(ctx, in.Body.Reason); err != nil {
				return nil, err
			}
			return db.Maintain(ctx)
		})
}
