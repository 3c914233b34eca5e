package main

import (
	"context"
	"errors"
	"time"
)

const daemonGrows = "daemon"

// daemonGrowth works off the last events of the log by `tidemark run`, a process of its own: what it costs for each event, and the
// most that it has in memory.
type daemonGrowth struct {
	*env
	name string
	size int

	process *process
	cpu     time.Duration
	memory  float64
}

func (c *daemonGrowth) Name() string { return c.name }

func (c *daemonGrowth) Figures() map[string]float64 {
	return map[string]float64{
		workFigure: float64(c.cpu.Nanoseconds()) / 1000 / float64(c.size), memoryFigure: c.memory,
	}
}

// Setup starts the daemon behind a closed gate: its start is not measured.
func (c *daemonGrowth) Setup(ctx context.Context) error {
	sqlOnly := sqlWorker{env: c.env, types: everyType}
	if err := sqlOnly.Setup(ctx); err != nil {
		return err
	}
	if err := c.backBy(ctx, c.events, c.size); err != nil {
		return err
	}
	if err := c.exec(ctx, "select tidemark.gate_set('worker.bench.enabled', false, 'bench')"); err != nil {
		return err
	}
	var err error
	if c.process, err = startSelf(shardMover, c.dsn, "bench-0", ""); err != nil {
		return err
	}
	return c.until(ctx, c.process, "the daemon runs", `
		select count(*) = 1 from tidemark.heartbeat h where h.executor_id = 'daemon/bench-0' and h.last_status = 'running'`)
}

func (c *daemonGrowth) Run(ctx context.Context) (int, error) {
	if err := c.exec(ctx, "select tidemark.gate_set('worker.bench.enabled', true, 'bench')"); err != nil {
		return 0, err
	}
	before := c.used()
	err := c.until(ctx, c.process, "all is settled", `
		select count(*) = 1 from tidemark.worker_cursor c
		where c.worker = 'bench' and c.decided_through::bigint >= $1 and c.watermark_id::bigint >= $1 and isempty(c.holes + c.fenced)`, c.events)
	c.cpu, c.memory = c.used()-before, peakMemory(c.process.pid)
	return c.size, err
}

// used is the CPU of the daemon and of the server.
func (c *daemonGrowth) used() time.Duration { return processCPU(c.process.pid) + c.meter.cpu.cluster() }

func (c *daemonGrowth) Check(ctx context.Context) error {
	return c.expect(ctx, "events decided", c.size, "select coalesce(sum(events), 0) from tidemark.decision where outcome = 'dry_run'")
}

func (c *daemonGrowth) Clean(ctx context.Context) error {
	c.process.stop()
	return errors.Join(c.exec(ctx, "select tidemark.gate_set('worker.bench.enabled', true, 'bench')"), c.resetWorker(ctx))
}
