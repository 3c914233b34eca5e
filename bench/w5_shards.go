package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
)

const (
	onceBegunFigure = "events/s once begun" // from the first request to the last settle: without the time until the gate is noticed
	takeoverFigure  = "s to take over"
	doubleFigure    = "doubles"

	shardMover = "daemon of shards"
	shardLease = 5 * time.Second
)

// daemons are n processes of `tidemark run` that share the shards of the worker, as many as they are.
type daemons struct {
	webhooks
	n    int
	kill bool // one of them, once half the events have come

	processes []*process
	begun     float64
	takeover  time.Duration
}

func (c *daemons) Setup(ctx context.Context) error {
	if err := c.webhooks.Setup(ctx); err != nil {
		return err
	}
	if err := c.exec(ctx, fmt.Sprintf(`select tidemark.worker_set('bench', '{"shards": %d}', 'bench'), tidemark.gate_set('worker.bench.enabled', false, 'bench')`, c.n)); err != nil {
		return err
	}
	for n := range c.n {
		p, err := startSelf(shardMover, c.dsn, fmt.Sprintf("bench-%d", n), "")
		if err != nil {
			return err
		}
		c.processes = append(c.processes, p)
	}
	return c.until(ctx, "the daemons wait for their shards", `
		select count(*) = $1 from tidemark.heartbeat h where h.executor_id like 'daemon/bench-%' and h.last_status = 'running'
			and ($1 = 1 or (select count(*) from tidemark.worker_instance i where i.seen_until > clock_timestamp()) = $1)`, c.n)
}

// runShards is the program of one of the daemons.
func runShards(ctx context.Context, dsn, name string) error {
	r, err := startRouting(ctx, &env{dsn: dsn}, func(o *config.Config) { o.Name, o.Lease = name, shardLease })
	if err != nil {
		return err
	}
	return <-r.ended
}

// until waits for a query to be true.
func (c *daemons) until(ctx context.Context, what, query string, arguments ...any) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		var is bool
		if err := c.conn.QueryRow(ctx, query, arguments...).Scan(&is); err != nil || is {
			return err
		}
		if time.Since(began) > 5*time.Minute {
			return c.processes[0].because(errors.New("not within five minutes: " + what))
		}
	}
}

func (c *daemons) Run(ctx context.Context) (int, error) {
	if err := c.exec(ctx, "select tidemark.gate_set('worker.bench.enabled', true, 'bench')"); err != nil {
		return 0, err
	}
	if c.kill {
		if err := c.killOne(ctx); err != nil {
			return 0, err
		}
	}
	if err := c.arrived(ctx); err != nil {
		return 0, err
	}
	err := c.until(ctx, "all is settled", `
		select count(*) = $1 and not exists (select from tidemark.pending) from tidemark.worker_cursor c
		where c.worker = 'bench' and c.watermark_id::bigint >= $2 and isempty(c.holes + c.fenced)`, c.n, c.items)
	c.begun = float64(c.items) / time.Since(time.Unix(0, c.receiver.first.Load())).Seconds()
	return c.items, err
}

// killOne kills a daemon, and takes the time until others have its shards.
func (c *daemons) killOne(ctx context.Context) error {
	for c.receiver.journal.Balance().Lost > c.items/2 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	killed := time.Now()
	c.processes[0].kill()
	err := c.until(ctx, "the others take over", `
		select count(*) = $1 from tidemark.heartbeat h
		where h.executor_id like 'bench/outbox/%' and h.lease_until > clock_timestamp() and h.lease_owner not like 'bench-0/%'`, c.n)
	c.takeover = time.Since(killed)
	return err
}

func (c *daemons) Check(ctx context.Context) error {
	if !c.kill {
		return c.webhooks.Check(ctx)
	}
	// What a killed daemon had sent and not recorded comes again.
	if b := c.receiver.journal.Balance(); b.Lost != 0 || b.Invented != 0 || b.Twice > 10*c.concurrency*c.n {
		return b.Err()
	}
	if err := c.verified(ctx); err != nil {
		return err
	}
	return c.expect(ctx, "events recorded as sent", c.items, `
		select coalesce((select sum(events) from tidemark.decision where outcome = 'sent'), 0)
		     + (select count(*) from tidemark.attempt where outcome = 'sent')`)
}

func (c *daemons) Figures() map[string]float64 {
	f := c.webhooks.Figures()
	f[onceBegunFigure] = c.begun
	if c.kill {
		f[takeoverFigure], f[doubleFigure] = c.takeover.Seconds(), float64(c.receiver.journal.Balance().Twice)
	}
	return f
}

func (c *daemons) Clean(ctx context.Context) error {
	for _, p := range c.processes {
		p.stop()
	}
	c.processes = nil
	// A killed one leaves its lease.
	err := c.exec(ctx, `
		update tidemark.heartbeat set lease_until = null, lease_owner = null where executor_id like 'bench/outbox/%';
		delete from tidemark.worker_instance;
		select tidemark.worker_set('bench', '{"shards": 1}', 'bench'), tidemark.gate_set('worker.bench.enabled', true, 'bench')`)
	return errors.Join(err, c.webhooks.Clean(ctx))
}

// onceBegun compares the speeds without the start.
func onceBegun(rs results, name, base string) figure {
	v, ok := rs.between(name, base, func(s, base sample) float64 { return s.figures[onceBegunFigure] / base.figures[onceBegunFigure] })
	return figure{name + " ÷ " + base + ", once begun", v, ok}
}
