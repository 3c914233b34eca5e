package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func notFound(kind, name, hint string) *Problem {
	p := problem(http.StatusNotFound, fmt.Sprintf("there is no %s %q", kind, name), hint)
	p.Code = "TM004"
	return p
}

// GateChange opens or closes a gate.
type GateChange struct {
	Open   bool   `json:"open"`
	Reason string `json:"reason" minLength:"1" maxLength:"1024"`
}

// StageChange sets the stage.
type StageChange struct {
	Stage  string `json:"stage" enum:"dry_run,live"`
	Reason string `json:"reason" minLength:"1" maxLength:"1024"`
}

// GateOutlook is what the workers that a gate governs do once it is open.
type GateOutlook struct {
	Worker  string          `json:"worker"`
	Outlook []store.Outlook `json:"outlook"`
}

func (s *server) settings() {
	operation(s, "GET", "/gates", "Gates: switches that workers obey within a second", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Gate, error) { return db.Gates(ctx) })
	operation(s, "GET", "/outlook", "What waits, and what the workers of the log do with it once their gates are open", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]GateOutlook, error) {
			workers, err := db.Workers(ctx)
			if err != nil {
				return nil, err
			}
			var all []GateOutlook
			for _, w := range workers {
				if w.Source != "outbox" || len(all) == 20 {
					continue
				}
				outlook, err := db.WorkerOutlook(ctx, w.Worker)
				if err != nil {
					return nil, err
				}
				all = append(all, GateOutlook{w.Worker, outlook})
			}
			return all, nil
		})
	act(s, "PUT", "/gates/{gate}", "Open or close a gate", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			Gate string `path:"gate"`
			Body GateChange
		},
		) (gate store.Gate, err error) {
			if err := db.GateSet(ctx, in.Gate, in.Body.Open, in.Body.Reason); err != nil {
				return gate, err
			}
			all, err := db.Gates(ctx)
			for _, g := range all {
				if g.Gate == in.Gate {
					gate = g
				}
			}
			return gate, err
		})
	operation(s, "GET", "/stage", "The stage", see,
		func(ctx context.Context, db *store.DB, _ *none) (store.Stage, error) { return db.Stage(ctx) })
	act(s, "PUT", "/stage", "Set the stage: live delivers, dry_run decides and delivers nothing", configure,
		func(ctx context.Context, db *store.DB, in *struct{ Body StageChange }) (store.Stage, error) {
			if err := db.StageSet(ctx, in.Body.Stage, in.Body.Reason); err != nil {
				return store.Stage{}, err
			}
			return db.Stage(ctx)
		})
	operation(s, "GET", "/settings", "Settings of the installation", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Setting, error) { return db.Settings(ctx) })
	operation(s, "GET", "/domains", "Domains", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Domain, error) { return db.Domains(ctx) })
	operation(s, "GET", "/types", "Event types", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Domain string `query:"domain"`
		},
		) ([]store.EventType, error) {
			return db.EventTypes(ctx, in.Domain)
		})
	act(s, "PUT", "/types/{domain}/{type}", "Create an event type, or change it", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			Domain string `path:"domain"`
			Type   string `path:"type"`
			Body   Changes
		},
		) (store.EventType, error) {
			return db.TypeSet(ctx, in.Domain, in.Type, in.Body.Set, in.Body.Reason)
		})
	operation(s, "GET", "/packs", "Packs that were installed", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Pack, error) { return db.Packs(ctx) })
	operation(s, "GET", "/verify", "Checks of the installation", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Check, error) { return db.Verify(ctx) })
}
