package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// sqlWorker routes the backlog with the worker that needs nothing but SQL.
type sqlWorker struct {
	*env
	name   string
	batch  int
	types  []string // one route each
	target string   // function of live routes; empty: dry run
	poison bool     // the target refuses some events
	effect bool     // the target leaves a row of bench.effect for each

	fallbacks int
	tail      float64
}

var (
	everyType = typeNames(4)
	catchAll  = []string{"*"}
)

func typeNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("type.%d", i))
	}
	return names
}

func (c *sqlWorker) Name() string { return c.name }

func (c *sqlWorker) Figures() map[string]float64 { return map[string]float64{tailFigure: c.tail} }

func (c *sqlWorker) Setup(ctx context.Context) error {
	if err := c.backlog.seed(ctx, c.events, max(4, len(c.types))); err != nil {
		return err
	}
	if err := c.resetWorker(ctx); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, enabled, dry_run)
		select 'route-' || n, 'bench', 'bench', type, 'sql', coalesce(nullif($2, ''), 'bench.accept'), true, $2 = ''
		  from unnest($1::text[]) with ordinality t (type, n)`, c.types, c.target); err != nil {
		return err
	}
	if err := c.exec(ctx, "truncate bench.effect"); err != nil {
		return err
	}
	return c.vacuum(ctx, "tidemark.outbound_route", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting", "bench.effect")
}

type passSummary struct {
	Status    string
	Gate      string
	Events    int
	Fallbacks int
}

func (c *sqlWorker) Run(ctx context.Context) (int, error) {
	var items int
	c.fallbacks = 0
	start := time.Now()
	var first, last time.Duration // when a tenth and nine tenths were done
	for {
		var text []byte
		if err := c.conn.QueryRow(ctx, "select tidemark.route_worker_run('bench', $1)", c.batch).Scan(&text); err != nil {
			return 0, err
		}
		var pass passSummary
		if err := json.Unmarshal(text, &pass); err != nil {
			return 0, err
		}
		if pass.Status != "ran" {
			return 0, fmt.Errorf("the worker did not run: %s", text)
		}
		if pass.Events == 0 {
			break
		}
		items += pass.Events
		c.fallbacks += pass.Fallbacks
		if first == 0 && items*10 >= c.events {
			first = time.Since(start)
		}
		if last == 0 && items*10 >= 9*c.events {
			last = time.Since(start)
		}
	}
	c.tail = first.Seconds() / (time.Since(start) - last).Seconds()
	return items, nil
}

func (c *sqlWorker) Check(ctx context.Context) error {
	if c.target == "" {
		return c.checkDecisions(ctx)
	}
	return c.checkAttempts(ctx)
}

// checkDecisions wants each event in exactly one range: the counts add up to the number of events,
// and so do the numbers in the union of all ranges.
func (c *sqlWorker) checkDecisions(ctx context.Context) error {
	if c.fallbacks != 0 {
		return fmt.Errorf("%d fallbacks on clean data", c.fallbacks)
	}
	if err := c.expect(ctx, "events decided", c.events,
		"select coalesce(sum(events), 0) from tidemark.decision where outcome = 'dry_run'"); err != nil {
		return err
	}
	return c.expect(ctx, "different events decided", c.events, `
		select coalesce(sum(upper(r) - lower(r)), 0)
		  from (select range_agg(seqs) as seqs from tidemark.decision) d, unnest(d.seqs) r`)
}

// checkAttempts wants evidence once for each event, a dead letter for each that was refused, and the target's effects.
func (c *sqlWorker) checkAttempts(ctx context.Context) error {
	refused := 0
	if c.poison {
		refused = c.events / poisonEvery
	}
	if (c.fallbacks != 0) != (refused != 0) {
		return fmt.Errorf("%d fallbacks with %d refused events", c.fallbacks, refused)
	}
	// What was sent is a range, what was refused a row.
	if err := c.expect(ctx, "events sent", c.events-refused,
		"select coalesce(sum(events), 0)::int8 from tidemark.decision where outcome = 'sent'"); err != nil {
		return err
	}
	if err := c.expect(ctx, "different events sent", c.events-refused, `
		select coalesce(sum(upper(r) - lower(r)), 0)::int8
		  from (select range_agg(seqs) as seqs from tidemark.decision where outcome = 'sent') d, unnest(d.seqs) r`); err != nil {
		return err
	}
	if err := c.expect(ctx, "attempts that failed", refused, "select count(*) from tidemark.attempt"); err != nil {
		return err
	}
	if err := c.expect(ctx, "dead letters", refused, "select count(*) from tidemark.dead_letter"); err != nil || !c.effect {
		return err
	}
	return c.expect(ctx, "effects", c.events, "select count(*) from bench.effect")
}

func (c *sqlWorker) Clean(ctx context.Context) error { return c.resetWorker(ctx) }
