package main

import (
	"context"
	"fmt"
)

// setBased is what a careful team writes by hand: pages, and one narrow row per event.
type setBased struct {
	*env
	effect    bool // it also leaves a row of bench.effect for each event
	installed bool
}

func (c *setBased) Name() string {
	if c.effect {
		return setEffectName
	}
	return setBasedName
}

func (c *setBased) Setup(ctx context.Context) error {
	if !c.installed {
		if err := c.exec(ctx, setBasedSQL); err != nil {
			return err
		}
		c.installed = true
	}
	if err := c.backlog.seed(ctx, c.events, 4); err != nil {
		return err
	}
	if err := c.exec(ctx, `
		truncate bench.evidence, bench.effect;
		insert into bench.cursor (name) values ('set_based') on conflict (name) do update set seq = 0`); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.cursor", "bench.route", "bench.effect")
}

func (c *setBased) Run(ctx context.Context) (int, error) {
	return c.passes(ctx, fmt.Sprintf("select bench.set_based_run(5000, %t)", c.effect))
}

func (c *setBased) Check(ctx context.Context) error {
	if c.effect {
		if err := c.expect(ctx, "effects", c.events, "select count(*) from bench.effect"); err != nil {
			return err
		}
	}
	// The primary key holds the uniqueness.
	return c.expect(ctx, "evidence in dry run", c.events, "select count(*) from bench.evidence where outcome = 'dry_run'")
}

func (c *setBased) Clean(ctx context.Context) error {
	return c.exec(ctx, "truncate bench.evidence, bench.effect")
}
