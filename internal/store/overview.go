package store

import (
	"context"
	"slices"
)

// Overview is the state of the installation.
type Overview struct {
	Status       string              `json:"status" enum:"ok,warn,unknown,bad" doc:"The worst of the causes."`
	Server       Server              `json:"server"`
	Causes       []Cause             `json:"causes" doc:"What is wrong, worst first."`
	Partial      bool                `json:"partial,omitempty" doc:"Tables are locked, and what follows is missing."`
	Stage        Stage               `json:"stage"`
	Counts       Counts              `json:"counts"`
	Gates        []Gate              `json:"gates"`
	Workers      []WorkerSummary     `json:"workers"`
	Routes       []RouteSummary      `json:"routes"`
	Replays      []RouteReplayed     `json:"replays" doc:"Those that are not over."`
	Unregistered []UnregisteredEmits `json:"unregistered"`
}

// Overview reads the state of the installation, by a statement for each part. Where tables of Tidemark are locked the rest would wait
// for them: it is left out.
func (db *DB) Overview(ctx context.Context) (o Overview, err error) {
	o.Status, o.Unregistered = "ok", []UnregisteredEmits{}
	err = InTurn(
		func() error { o.Server, err = db.Server(ctx); return err },
		func() error { o.Causes, err = db.Causes(ctx); return err },
	)
	if err != nil {
		return o, err
	}
	if len(o.Causes) > 0 {
		o.Status = o.Causes[0].Status
	}
	// The rest would wait for these tables.
	if o.Partial = slices.ContainsFunc(o.Causes, func(c Cause) bool { return c.Cause == "tables_locked" }); o.Partial {
		return o, nil
	}
	err = InTurn(
		func() error { o.Stage, err = db.Stage(ctx); return err },
		func() error { o.Counts, err = db.Counts(ctx); return err },
		func() error { o.Gates, err = db.Gates(ctx); return err },
		func() error { o.Workers, err = db.WorkerSummaries(ctx, Part{}); return err },
		func() error { o.Routes, err = db.RouteSummaries(ctx); return err },
		func() error { o.Replays, err = db.RouteReplays(ctx, ReplayFilter{Open: true}); return err },
	)
	if err == nil && slices.ContainsFunc(o.Causes, func(c Cause) bool { return c.Cause == "emit_unregistered" }) {
		o.Unregistered, err = db.UnregisteredEmits(ctx)
	}
	return o, err
}
