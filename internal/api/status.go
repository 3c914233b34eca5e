package api

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type none struct{}

// Overview is the state of the installation.
type Overview struct {
	Status       string                    `json:"status" enum:"ok,warn,unknown,bad" doc:"The worst of the causes."`
	Server       store.Server              `json:"server"`
	Causes       []store.Cause             `json:"causes" doc:"What is wrong, worst first."`
	Stage        store.Stage               `json:"stage"`
	Counts       store.Counts              `json:"counts"`
	Gates        []store.Gate              `json:"gates"`
	Workers      []store.WorkerSummary     `json:"workers"`
	Routes       []store.RouteSummary      `json:"routes"`
	Replays      []store.RouteReplayed     `json:"replays" doc:"Those that are not over."`
	Unregistered []store.UnregisteredEmits `json:"unregistered"`
	You          You                       `json:"you"`
}

// You is who asks, and what he may do.
type You struct {
	Name     string `json:"name"`
	Role     string `json:"role" enum:"viewer,operator,admin"`
	ReadOnly bool   `json:"read_only"`
}

func (s *server) you(ctx context.Context) You {
	p, _ := PersonOf(ctx)
	return You{p.Name, p.Role.String(), s.ReadOnly}
}

// collect runs readings until one fails.
func collect(readings ...func() error) error {
	for _, read := range readings {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) status() {
	operation(s, "GET", "/status", "The installation at a glance, and what is wrong with it", see,
		func(ctx context.Context, db *store.DB, _ *none) (o Overview, err error) {
			o.Status, o.You = "ok", s.you(ctx)
			err = collect(
				func() error { o.Server, err = db.Server(ctx); return err },
				func() error { o.Causes, err = db.Causes(ctx); return err },
				func() error { o.Stage, err = db.Stage(ctx); return err },
				func() error { o.Counts, err = db.Counts(ctx); return err },
				func() error { o.Gates, err = db.Gates(ctx); return err },
				func() error { o.Workers, err = db.WorkerSummaries(ctx); return err },
				func() error { o.Routes, err = db.RouteSummaries(ctx); return err },
				func() error { o.Replays, err = db.RouteReplays(ctx, "", true); return err },
				func() error { o.Unregistered, err = db.UnregisteredEmits(ctx); return err },
			)
			if err == nil && len(o.Causes) > 0 {
				o.Status = o.Causes[0].Status
			}
			return o, err
		})
	operation(s, "GET", "/causes", "What is wrong, worst first", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Cause, error) { return db.Causes(ctx) })
	operation(s, "GET", "/me", "Who asks, and what he may do", see,
		func(ctx context.Context, _ *store.DB, _ *none) (You, error) { return s.you(ctx), nil })
}
