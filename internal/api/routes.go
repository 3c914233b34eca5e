package api

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type RoutePath struct {
	Route string `path:"route"`
}

// Changes are columns of a configuration row to set, by name. The API's resources have the same names.
type Changes struct {
	Set    map[string]any `json:"set" doc:"Columns and their new values."`
	Reason string         `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// Window chooses events of the log for a replay.
type Window struct {
	Since    time.Time `json:"since,omitzero" doc:"Events emitted from this time on; or from_seq."`
	Until    time.Time `json:"until,omitzero"`
	FromSeq  *int64    `json:"from_seq,omitempty"`
	ToSeq    *int64    `json:"to_seq,omitempty"`
	Key      string    `json:"key,omitempty"`
	Outcomes []string  `json:"outcomes,omitempty" doc:"Only events with this outcome so far: sent, disabled, dry_run, skipped, failed, none."`
	Rate     float64   `json:"rate,omitempty" minimum:"0" doc:"At most so many events a second; 0: as many as the route takes."`
	DryRun   bool      `json:"dry_run,omitempty" doc:"Count, and send nothing."`
	Reason   string    `json:"reason,omitempty" maxLength:"1024" doc:"Needed unless dry_run."`
}

// Counted is what a replay of a window does.
type Counted struct {
	Replay   *int64              `json:"replay" doc:"Its number; null: a dry run, or there are no events."`
	FirstSeq int64               `json:"first_seq"`
	LastSeq  int64               `json:"last_seq"`
	Events   int64               `json:"events" doc:"That go."`
	Complete bool                `json:"complete" doc:"false: there are more than were counted."`
	Counts   []store.ReplayCount `json:"counts"`
}

// Cancelled is a replay that was cancelled.
type Cancelled struct {
	Staged int64 `json:"staged" doc:"Events that were staged already, and are still sent."`
}

func (s *server) routes() {
	operation(s, "GET", "/routes", "All routes, as they are configured", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Route, error) { return db.Routes(ctx, "") })
	operation(s, "GET", "/routes/{route}", "A route", see,
		func(ctx context.Context, db *store.DB, in *RoutePath) (store.Route, error) {
			return db.Route(ctx, in.Route)
		})
	operation(s, "GET", "/routes/{route}/backtest", "What the route would have done with events of the log, without doing it", see,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Span
		},
		) ([]store.BacktestGroup, error) {
			since := in.Since
			if since.IsZero() {
				since = time.Now().Add(-time.Hour)
			}
			return db.RouteBacktest(ctx, in.Route, since, in.Until, 3)
		})
	act(s, "PATCH", "/routes/{route}", "Change a route", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Changes
		},
		) (store.Route, error) {
			return db.RouteSet(ctx, in.Route, in.Body.Set, in.Body.Reason, false)
		})
	act(s, "PUT", "/routes/{route}", "Create a route, or change it", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Changes
		},
		) (store.Route, error) {
			return db.RouteSet(ctx, in.Route, in.Body.Set, in.Body.Reason, true)
		})
	operation(s, "GET", "/replays", "Replays of routes and how far they have come, the latest first", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Route string `query:"route"`
			Open  bool   `query:"open" doc:"Only those that are not over."`
		},
		) ([]store.RouteReplayed, error) {
			return db.RouteReplays(ctx, in.Route, in.Open)
		})
	act(s, "POST", "/routes/{route}/replay", "Send events of the log on the route again, as a job of its worker", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Window
		},
		) (Counted, error) {
			b := in.Body
			counts, err := db.RouteReplay(ctx, store.ReplayAsk{
				Route: in.Route, Since: b.Since, Until: b.Until, FromSeq: b.FromSeq, ToSeq: b.ToSeq, Key: b.Key, Outcomes: b.Outcomes,
				Rate: b.Rate, DryRun: b.DryRun, Reason: b.Reason,
			})
			if err != nil || len(counts) == 0 {
				return Counted{}, err
			}
			sum := counts[len(counts)-1]
			return Counted{sum.ID, sum.FirstSeq, sum.LastSeq, sum.Events, sum.Complete, counts[:len(counts)-1]}, nil
		})
	act(s, "POST", "/replays/{id}/cancel", "Cancel a replay", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			ID   int64 `path:"id"`
			Body Act
		},
		) (out Cancelled, err error) {
			out.Staged, err = db.ReplayCancel(ctx, in.ID, in.Body.Reason)
			return out, err
		})
}
