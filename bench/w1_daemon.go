package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// dryDaemon routes the backlog in dry run by the daemon's loop.
type dryDaemon struct {
	*env
	name  string
	batch int
	types []string
	route *routing
}

func (c *dryDaemon) Name() string { return c.name }

func (c *dryDaemon) Setup(ctx context.Context) error {
	sqlOnly := sqlWorker{env: c.env, types: c.types}
	return sqlOnly.Setup(ctx)
}

// Run includes the start of the daemon, its claim, and the way from small pages to large ones.
func (c *dryDaemon) Run(ctx context.Context) (int, error) {
	var err error
	c.route, err = startRouting(ctx, c.env, func(o *config.Config) { o.Batch.Max = c.batch })
	if err != nil {
		return 0, err
	}
	return c.events, c.route.settled(ctx, c.events, "")
}

func (c *dryDaemon) Check(ctx context.Context) error {
	sqlOnly := sqlWorker{env: c.env}
	if err := sqlOnly.checkDecisions(ctx); err != nil {
		return err
	}
	return c.verified(ctx)
}

func (c *dryDaemon) Clean(ctx context.Context) error {
	err := c.route.stop()
	c.route = nil
	if err != nil {
		return err
	}
	return c.resetWorker(ctx)
}
