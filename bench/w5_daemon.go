package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

const (
	keysInBacklog  = 1000
	typesInBacklog = 10
)

// webhooks delivers a backlog by the daemon, with evidence: all of it to one URL, or each type to
// a route and a path of its own.
type webhooks struct {
	*env
	name        string
	items       int
	concurrency int
	away        time.Duration
	separate    bool   // a route for each type
	last        string // URL of the last type's route: its events are no items. Empty: as the others. none: no route

	receiver *receiver
	routing  *routing
	pending  int
}

const (
	noRoute      = "none"
	refusingTo   = "refuse"
	hangingRoute = "hang"
)

func (c *webhooks) Name() string { return c.name }

// live is how many events are to arrive.
func (c *webhooks) live() int {
	if c.last == "" {
		return c.items
	}
	return c.items - c.items/typesInBacklog
}

func (c *webhooks) Setup(ctx context.Context) error {
	if err := c.backlog.seed(ctx, c.items, typesInBacklog); err != nil {
		return err
	}
	if err := c.resetWorker(ctx); err != nil {
		return err
	}
	j := trial.NewNumbers(c.items, keysInBacklog)
	j.Expect(c.live())
	var err error
	if c.receiver, err = newReceiver(ctx, j, c.away); err != nil {
		return err
	}
	if err := c.routes(ctx); err != nil {
		return err
	}
	if err := c.exec(ctx, "select tidemark.gate_set('notify.bridge_enabled', true, 'bench')"); err != nil {
		return err
	}
	return c.vacuum(ctx, "tidemark.outbound_route", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting", "tidemark.pending", "tidemark.attempt")
}

func (c *webhooks) routes(ctx context.Context) error {
	if !c.separate {
		return c.route(ctx, "*", c.receiver.url("/"))
	}
	for n := range typesInBacklog {
		url := c.receiver.url(fmt.Sprintf("/%d", n))
		if n == typesInBacklog-1 {
			switch c.last {
			case noRoute:
				continue
			case refusingTo:
				url = "http://" + closedPort()
			case hangingRoute:
				url = c.receiver.url(hangPath)
			}
		}
		if err := c.route(ctx, fmt.Sprintf("type.%d", n), url); err != nil {
			return err
		}
	}
	return nil
}

// route makes a live one, in the order of keys.
func (c *webhooks) route(ctx context.Context, pattern, url string) error {
	_, err := c.conn.Exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, enabled, dry_run, ordering, concurrency, options)
		values ('route-' || replace($1, '*', 'all'), 'bench', 'bench', $1, 'webhook', $2, true, false, 'key', $3, '{"secret": "bench"}')`,
		pattern, url, c.concurrency)
	return err
}

// closedPort is an address where nothing listens.
func closedPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:1"
	}
	defer l.Close()
	return l.Addr().String()
}

// arrived waits until the receiver has all events.
func (c *webhooks) arrived(ctx context.Context) error {
	select {
	case <-c.receiver.journal.Done():
		return nil
	case <-time.After(5 * time.Minute):
		return fmt.Errorf("%d events have not arrived after five minutes", c.receiver.journal.Balance().Lost)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run is from the start of the daemon until everything that can be delivered is, with its
// evidence, and the cursor has passed the log.
func (c *webhooks) Run(ctx context.Context) (int, error) {
	var err error
	if c.routing, err = startRouting(ctx, c.env, nil); err != nil {
		return 0, err
	}
	if err := c.arrived(ctx); err != nil {
		return 0, err
	}
	return c.live(), c.routing.settled(ctx, c.items, `not exists (
		select from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id
		 where r.target_ref like '`+c.receiver.url("/")+`%' and r.target_ref not like '%`+hangPath+`')`)
}

func (c *webhooks) Check(ctx context.Context) error {
	if err := c.receiver.check(); err != nil {
		return err
	}
	if err := c.verified(ctx); err != nil {
		return err
	}
	var err error
	if c.pending, err = c.count(ctx, "select count(*) from tidemark.pending"); err != nil {
		return err
	}
	// What was sent at once is in a range; what was pending first has a row.
	return c.expect(ctx, "events recorded as sent", c.live(), `
		select coalesce((select sum(events) from tidemark.decision where outcome = 'sent'), 0)
		     + (select count(*) from tidemark.attempt where outcome = 'sent')`)
}

// Figures: how many events waited in tidemark.pending on their way, which is what a slow page costs.
func (c *webhooks) Figures() map[string]float64 {
	var staged float64
	_ = c.conn.QueryRow(context.Background(),
		"select coalesce(sum(events), 0) from tidemark.decision where outcome = 'pending'").Scan(&staged)
	return map[string]float64{stagedFigure: 100 * staged / float64(c.items)}
}

const stagedFigure = "% staged"

func (c *webhooks) Clean(ctx context.Context) error {
	err := c.routing.stop()
	c.routing = nil
	if closeErr := c.receiver.close(); err == nil {
		err = closeErr
	}
	c.receiver = nil
	if err != nil {
		return err
	}
	return c.resetWorker(ctx)
}
