package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
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
	n     int
	apart time.Duration // above 0: each has a network of its own, from which a round trip to the receiver takes that long
	fault fault         // of one of them, once half the events have come

	networks  networks
	lines     []*delayLine
	processes []*process
	begun     float64
	takeover  time.Duration
}

type fault int

const (
	none fault = iota
	killed
	unplugged // its network ends at once, as where a host is cut off: nothing tells the others
)

func (c *daemons) Setup(ctx context.Context) error {
	if err := c.webhooks.Setup(ctx); err != nil {
		return err
	}
	dsn := c.dsn
	if c.apart > 0 {
		var err error
		if dsn, err = c.separateThem(ctx); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, fmt.Sprintf(`select tidemark.worker_set('bench', '{"shards": %d}', 'bench'), tidemark.gate_set('worker.bench.enabled', false, 'bench')`, c.n)); err != nil {
		return err
	}
	for n := range c.n {
		var within []string
		if c.apart > 0 {
			within = c.networks.in(n)
		}
		p, err := startSelfBy(within, shardMover, dsn, fmt.Sprintf("bench-%d", n), "")
		if err != nil {
			return err
		}
		c.processes = append(c.processes, p)
	}
	return c.until(ctx, c.processes[0], "the daemons wait for their shards", `
		select count(*) = $1 from tidemark.heartbeat h where h.executor_id like 'daemon/bench-%' and h.last_status = 'running'
			and ($1 = 1 or (select count(*) from tidemark.worker_instance i where i.seen_until > clock_timestamp()) = $1)`, c.n)
}

// separateThem makes the networks, and ways out of them: to the server, whose URL it returns, and to the receiver.
func (c *daemons) separateThem(ctx context.Context) (dsn string, err error) {
	if c.networks, err = newNetworks(c.n); err != nil {
		return "", err
	}
	toServer, dsn, err := newServerLine(c.dsn, bridgeAddress, 0)
	if err != nil {
		return "", err
	}
	c.lines = append(c.lines, toServer)
	to, err := url.Parse(c.receiver.URL())
	if err != nil {
		return "", err
	}
	toReceiver, err := newDelayLine(bridgeAddress, "tcp", to.Host, c.apart)
	if err != nil {
		return "", err
	}
	c.lines = append(c.lines, toReceiver)
	to.Host = toReceiver.Addr().String()
	_, err = c.conn.Exec(ctx, "update tidemark.outbound_route set target_ref = $1", to.String()+"/")
	return dsn, err
}

// runShards is the program of one of the daemons.
func runShards(ctx context.Context, dsn, name string) error {
	r, err := startRouting(ctx, &env{dsn: dsn}, func(o *config.Config) {
		o.Name, o.Lease = name, shardLease
		if bridgeAddress != "" {
			o.Webhook.Allow = append(o.Webhook.Allow, netip.MustParsePrefix(bridgeAddress+"/32"))
		}
	})
	if err != nil {
		return err
	}
	return <-r.ended
}

func (c *daemons) Run(ctx context.Context) (int, error) {
	if err := c.exec(ctx, "select tidemark.gate_set('worker.bench.enabled', true, 'bench')"); err != nil {
		return 0, err
	}
	if c.fault != none {
		if err := c.loseOne(ctx); err != nil {
			return 0, err
		}
	}
	if err := c.arrived(ctx); err != nil {
		return 0, err
	}
	err := c.until(ctx, c.processes[0], "all is settled", `
		select count(*) = $1 and not exists (select from tidemark.pending) from tidemark.worker_cursor c
		where c.worker = 'bench' and c.watermark_id::bigint >= $2 and isempty(c.holes + c.fenced)`, c.n, c.items)
	c.begun = float64(c.items) / time.Since(time.Unix(0, c.receiver.first.Load())).Seconds()
	return c.items, err
}

// loseOne kills a daemon, or pulls its cable, and takes the time until others have its shards.
func (c *daemons) loseOne(ctx context.Context) error {
	for c.receiver.journal.Balance().Lost > c.items/2 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	lost := time.Now()
	if c.fault == killed {
		c.processes[0].kill()
	} else if err := c.networks.plug(0, false); err != nil {
		return err
	}
	err := c.until(ctx, c.processes[0], "the others take over", `
		select count(*) = $1 from tidemark.heartbeat h
		where h.executor_id like 'bench/outbox/%' and h.lease_until > clock_timestamp() and h.lease_owner not like 'bench-0/%'`, c.n)
	c.takeover = time.Since(lost)
	if err != nil || c.fault == killed {
		return err
	}
	// It comes back while the others work, and takes its share again.
	if err := c.networks.plug(0, true); err != nil {
		return err
	}
	return c.until(ctx, c.processes[0], "the one that was cut off is back", `
		select count(*) = 1 from tidemark.worker_instance i where i.seen_until > clock_timestamp() and i.owner like 'bench-0/%'`)
}

func (c *daemons) Check(ctx context.Context) error {
	if c.fault == none {
		return c.webhooks.Check(ctx)
	}
	// What a lost daemon had sent and not recorded comes again.
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
	if c.fault != none {
		f[takeoverFigure], f[doubleFigure] = c.takeover.Seconds(), float64(c.receiver.journal.Balance().Twice)
	}
	return f
}

func (c *daemons) Clean(ctx context.Context) error {
	var errs []error
	for _, p := range c.processes {
		p.stop()
	}
	c.processes = nil
	for _, l := range c.lines {
		l.close()
	}
	if c.lines = nil; c.networks > 0 {
		errs = append(errs, c.networks.close())
		c.networks = 0
	}
	// A killed one leaves its lease.
	errs = append(errs, c.exec(ctx, `
		update tidemark.heartbeat set lease_until = null, lease_owner = null where executor_id like 'bench/outbox/%';
		delete from tidemark.worker_instance;
		select tidemark.worker_set('bench', '{"shards": 1}', 'bench'), tidemark.gate_set('worker.bench.enabled', true, 'bench')`))
	return errors.Join(append(errs, c.webhooks.Clean(ctx))...)
}

// onceBegun compares the speeds without the start.
func onceBegun(rs results, name, base string) figure {
	v, ok := rs.between(name, base, func(s, base sample) float64 { return s.figures[onceBegunFigure] / base.figures[onceBegunFigure] })
	return figure{name + " ÷ " + base + ", once begun", v, ok}
}
