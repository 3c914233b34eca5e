package api

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/packlist"
	"github.com/tidemarkhq/tidemark/internal/store"
)

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

// SettingChange changes a setting.
type SettingChange struct {
	Value  string `json:"value" maxLength:"1024"`
	Reason string `json:"reason" minLength:"1" maxLength:"1024"`
}

// Grant is a role that may emit into a domain.
type Grant struct {
	Role   string `json:"role" minLength:"1" doc:"A login, or a role with logins as members."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// GateOutlook is what the workers that a gate governs do once it is open.
type GateOutlook struct {
	Worker  string          `json:"worker"`
	Outlook []store.Outlook `json:"outlook"`
}

// Installed is a pack that was installed.
type Installed struct {
	store.Pack
	Next []string `json:"next" doc:"What to do now."`
}

type PackPath struct {
	Pack string `path:"pack"`
}

func (s *server) packs() {
	operation(s, "GET", "/packs", "Packs of this build, and those that are installed", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]packlist.State, error) {
			return packlist.All(ctx, db)
		})
	operation(s, "GET", "/packs/{pack}", "A pack of this build", see,
		func(ctx context.Context, db *store.DB, in *PackPath) (packlist.Details, error) {
			return packlist.Get(ctx, db, in.Pack)
		})
	act(s, "POST", "/packs/{pack}/install", "Install a pack, or upgrade it; switches that an operator has set stay as they are", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			PackPath
			Body Act
		},
		) (out Installed, err error) {
			pack, err := packlist.Find(in.Pack)
			if err != nil {
				return out, err
			}
			if err := db.GiveReason(ctx, in.Body.Reason); err != nil {
				return out, err
			}
			out.Next = pack.Next
			out.Pack, err = packlist.Install(ctx, db, pack)
			return out, err
		})
}

func (s *server) settings() {
	operation(s, "GET", "/gates", "Gates: switches that workers obey within a second", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Gate, error) { return db.Gates(ctx) })
	operation(s, "GET", "/outlook", "What waits, and what the workers of the log do with it once their gates are open", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Gate string `query:"gate" doc:"Of the workers that it governs, and the routes of its domain; empty for a gate of commands."`
		},
		) ([]GateOutlook, error) {
			if in.Gate != "" {
				if err := db.GateExists(ctx, in.Gate); err != nil {
					return nil, err
				}
			}
			known, err := db.Outlooks(ctx, in.Gate, 20)
			all := []GateOutlook{}
			for _, o := range known {
				if len(all) == 0 || all[len(all)-1].Worker != o.Worker {
					all = append(all, GateOutlook{Worker: o.Worker})
				}
				of := &all[len(all)-1]
				of.Outlook = append(of.Outlook, o.Outlook)
			}
			if err != nil {
				return nil, err
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
	act(s, "PUT", "/settings/{setting}", "Change a setting", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			Setting string `path:"setting"`
			Body    SettingChange
		},
		) (store.Setting, error) {
			return db.SettingSet(ctx, in.Setting, in.Body.Value, in.Body.Reason)
		})
	operation(s, "GET", "/domains", "Domains", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Domain, error) { return db.Domains(ctx) })
	operation(s, "GET", "/types", "Event types", see,
		func(ctx context.Context, db *store.DB, in *struct {
			ByName
			Domain string `query:"domain"`
		},
		) (Names[store.EventType], error) {
			all, err := db.EventTypes(ctx, in.Domain, in.part())
			return names(all, in.ByName, func(t store.EventType) string { return t.Domain + "/" + t.Type }), err
		})
	act(s, "PUT", "/types/{domain}/{type}", "Create an event type, or change it", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			TypePath
			Body Changes
		},
		) (store.EventType, error) {
			return db.TypeSet(ctx, in.Domain, in.Type, in.Body.Set, in.Body.Reason)
		})
	act(s, "PUT", "/domains/{domain}", "Create a domain, or change it", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			DomainPath
			Body Changes
		},
		) (store.Domain, error) {
			return db.DomainSet(ctx, in.Domain, in.Body.Set, in.Body.Reason)
		})
	act(s, "POST", "/domains/{domain}/grant", "Let a role emit into a domain; roles without a grant no longer may", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			DomainPath
			Body Grant
		},
		) (store.Domain, error) {
			return db.DomainGrant(ctx, in.Domain, in.Body.Role, in.Body.Reason)
		})
	act(s, "POST", "/domains/{domain}/revoke", "Revoke a role's grant; the domain stays restricted", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			DomainPath
			Body Grant
		},
		) (store.Domain, error) {
			return db.DomainRevoke(ctx, in.Domain, in.Body.Role, in.Body.Reason)
		})
	s.packs()
}
