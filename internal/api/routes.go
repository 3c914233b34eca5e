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
	Set    store.Changes `json:"set" doc:"Columns and their new values."`
	Reason string        `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
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

// Cancelled is a replay that was cancelled.
type Cancelled struct {
	Staged int64 `json:"staged" doc:"Events that were staged already, and are still sent."`
}

func (s *server) routes() {
	operation(s, "GET", "/routes", "Routes, as they are configured, by code", see,
		func(ctx context.Context, db *store.DB, in *struct {
			ByName
			Worker string `query:"worker" doc:"Only those that it serves."`
			Text   string `query:"q" doc:"That the code, the event or the target has."`
		},
		) (Names[store.Route], error) {
			all, err := db.Routes(ctx, store.RouteFilter{Part: in.part(), Worker: in.Worker, Text: in.Text})
			return names(all, in.ByName, func(r store.Route) string { return r.RouteCode }), err
		})
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
	operation(s, "GET", "/route-summaries", "How routes are doing", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Routes []string `query:"routes" maxItems:"500" doc:"Of these alone."`
		},
		) ([]store.RouteSummary, error) {
			return db.RouteSummaries(ctx, in.Routes...)
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
	operation(s, "GET", "/routes/{route}/latency", "How long events of the last hour took from their emit until the route had sent them; null: none was sent", see,
		func(ctx context.Context, db *store.DB, in *RoutePath) (*store.RouteLatency, error) {
			return db.RouteLatency(ctx, in.Route)
		})
	operation(s, "GET", "/route-latencies", "The latency of several routes, by smaller samples: ten batches and ten retries of each; those that sent nothing are left out", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Routes []string `query:"routes" required:"true" minItems:"1" maxItems:"50" doc:"Codes of routes."`
		},
		) ([]store.LatencyOfRoute, error) {
			return db.RouteLatencies(ctx, 10, in.Routes...)
		})
	operation(s, "GET", "/routes/{route}/switches", "What must be open before the route delivers", see,
		func(ctx context.Context, db *store.DB, in *RoutePath) ([]store.Switch, error) {
			return db.RouteSwitches(ctx, in.Route, "go live")
		})
	act(s, "POST", "/routes/{route}/go-live", "Open all that keeps the route from delivering, in one step", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Act
		},
		) ([]store.Switch, error) {
			if err := db.RouteGoLive(ctx, in.Route, in.Body.Reason); err != nil {
				return nil, err
			}
			return db.RouteSwitches(ctx, in.Route, in.Body.Reason)
		})
	type pauses struct {
		RoutePath
		Body Act
	}
	pausing(s, "/routes/{route}", "Let a route deliver nothing for a while; its events wait", "Let a paused route deliver what waits, and go on",
		func(ctx context.Context, db *store.DB, in *pauses, pause bool) (bool, error) {
			return db.RoutePause(ctx, in.Route, pause, in.Body.Reason)
		})
	operation(s, "GET", "/replays", "Replays of routes and how far they have come, the latest first", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Paging
			Route  string `query:"route"`
			Open   bool   `query:"open" doc:"Only those that are not over."`
			Before int64  `query:"before" minimum:"0" doc:"Only numbers below this one."`
		},
		) (List[store.RouteReplayed], error) {
			all, err := db.RouteReplays(ctx, store.ReplayFilter{Route: in.Route, Open: in.Open, Before: in.Before, Limit: in.Limit + 1})
			return part(all, in.Limit, func(r store.RouteReplayed) int64 { return r.ID }), err
		})
	act(s, "POST", "/routes/{route}/replay", "Send events of the log on the route again, as a job of its worker", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			RoutePath
			Body Window
		},
		) (store.Counted, error) {
			b := in.Body
			return db.RouteReplay(ctx, store.ReplayAsk{
				Route: in.Route, Since: b.Since, Until: b.Until, FromSeq: b.FromSeq, ToSeq: b.ToSeq, Key: b.Key, Outcomes: b.Outcomes,
				Rate: b.Rate, DryRun: b.DryRun, Reason: b.Reason,
			})
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
