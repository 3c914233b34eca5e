package api

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type DomainPath struct {
	Domain string `path:"domain"`
}

type TypePath struct {
	DomainPath
	Type string `path:"type"`
}

type CommandPath struct {
	ServicePath
	Command string `path:"command"`
	Version int    `path:"version" minimum:"1"`
}

type KeyPath struct {
	ServicePath
	KID string `path:"kid"`
}

// a named thing and the reason why it goes.
type (
	routeGoes struct {
		RoutePath
		Body Act
	}
	workerGoes struct {
		WorkerPath
		Body Act
	}
	sourceGoes struct {
		SourcePath
		Body Act
	}
	domainGoes struct {
		DomainPath
		Body Act
	}
	typeGoes struct {
		TypePath
		Body Act
	}
	serviceGoes struct {
		ServicePath
		Body Act
	}
	commandGoes struct {
		CommandPath
		Body Act
	}
	keyGoes struct {
		KeyPath
		Body Act
	}
)

// deletion adds an act that deletes a thing which nothing uses. The database refuses it otherwise, and says what uses it.
func deletion[I any](s *server, path, what string, del func(ctx context.Context, db *store.DB, in *I) error) {
	act(s, "POST", path+"/delete", "Delete "+what, configure, func(ctx context.Context, db *store.DB, in *I) (none, error) {
		return none{}, del(ctx, db, in)
	})
}

func (s *server) deletions() {
	deletion(s, "/routes/{route}", "a route that is off and owes nothing; its evidence stays",
		func(ctx context.Context, db *store.DB, in *routeGoes) error {
			return db.RouteDelete(ctx, in.Route, in.Body.Reason)
		})
	deletion(s, "/workers/{worker}", "a worker that serves no route and reads no source; its evidence stays",
		func(ctx context.Context, db *store.DB, in *workerGoes) error {
			return db.WorkerDelete(ctx, in.Worker, in.Body.Reason)
		})
	deletion(s, "/sources/{source}", "a source that no worker reads; its table stays as it is",
		func(ctx context.Context, db *store.DB, in *sourceGoes) error {
			return db.SourceDelete(ctx, in.Source, in.Body.Reason)
		})
	deletion(s, "/captures/routes/{route}", "an inbound route without a trigger; its events stay",
		func(ctx context.Context, db *store.DB, in *routeGoes) error {
			return db.InboundRouteDelete(ctx, in.Route, in.Body.Reason)
		})
	deletion(s, "/domains/{domain}", "a domain without types that nothing names",
		func(ctx context.Context, db *store.DB, in *domainGoes) error {
			return db.DomainDelete(ctx, in.Domain, in.Body.Reason)
		})
	deletion(s, "/types/{domain}/{type}", "an event type that no route and no capture names; its events stay",
		func(ctx context.Context, db *store.DB, in *typeGoes) error {
			return db.TypeDelete(ctx, in.Domain, in.Type, in.Body.Reason)
		})
	deletion(s, "/services/{service}", "a service without commands, producers, keys and routes; claims and its role stay",
		func(ctx context.Context, db *store.DB, in *serviceGoes) error {
			return db.ServiceDelete(ctx, in.Service, in.Body.Reason)
		})
	deletion(s, "/services/{service}/commands/{command}/{version}", "a version of a command that is off; claims stay",
		func(ctx context.Context, db *store.DB, in *commandGoes) error {
			return db.CommandDelete(ctx, store.Command{Service: in.Service, Command: in.Command, Version: in.Version}, in.Body.Reason)
		})
	deletion(s, "/services/{service}/keys/{kid}", "a key that was revoked or has expired; its kid can never be registered again",
		func(ctx context.Context, db *store.DB, in *keyGoes) error {
			if err := keyOf(ctx, db, in.KeyPath); err != nil {
				return err
			}
			return db.ProducerKeyDelete(ctx, in.KID, in.Body.Reason)
		})
}
