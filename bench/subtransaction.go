package main

import "context"

// subtransaction is the worker that the source documents sketch.
type subtransaction struct {
	*env
	items     int
	installed bool
}

func (c *subtransaction) Name() string { return "subtransaction per event" }

func (c *subtransaction) Setup(ctx context.Context) error {
	if !c.installed {
		if err := c.exec(ctx, subtransactionSQL); err != nil {
			return err
		}
		c.installed = true
	}
	if err := c.backlog.seed(ctx, c.events, 4); err != nil {
		return err
	}
	if err := c.exec(ctx, "truncate bench.event_outbox"); err != nil {
		return err
	}
	// The rows are locked in a run and thereby written, so each run gets fresh ones.
	if _, err := c.conn.Exec(ctx, `
		insert into bench.event_outbox (id, event_domain, event_type, payload, created_at)
		select event_id, domain, type, payload, timestamptz '2026-01-01' + seq * interval '1 microsecond'
		  from tidemark.outbox
		 order by seq
		 limit $1`, c.items); err != nil {
		return err
	}
	if err := c.exec(ctx, `
		truncate bench.route_attempt, bench.dead_letter;
		delete from bench.cursor where name = 'subtransaction';
		insert into bench.cursor (name) values ('subtransaction')`); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.event_outbox", "bench.cursor", "bench.route")
}

func (c *subtransaction) Run(ctx context.Context) (int, error) {
	return c.passes(ctx, "select bench.subtransaction_run(5000)")
}

func (c *subtransaction) Check(ctx context.Context) error {
	if err := c.expect(ctx, "dead letters", 0, "select count(*) from bench.dead_letter"); err != nil {
		return err
	}
	return c.expect(ctx, "events with evidence", c.items,
		"select count(distinct event_ref) from bench.route_attempt where status = 'dry_run'")
}

func (c *subtransaction) Clean(ctx context.Context) error {
	return c.exec(ctx, "truncate bench.event_outbox, bench.route_attempt")
}
