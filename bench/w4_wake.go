package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// readers is who reads the log while writers write.
type readers string

const (
	nobody    readers = ""
	polling   readers = "a worker that polls"
	woken     readers = "a worker that is woken"
	gateAlone readers = "nobody, the gate open"
	sleeping  readers = "somebody who sleeps all the time"
)

// watchedWriters is a pgbench run beside readers. Nothing is delivered: what a worker writes about the
// events is a few bytes.
type watchedWriters struct {
	writers
	readers readers

	routing *routing
	conns   []*pgx.Conn
	waiting float64
}

func (c *watchedWriters) Setup(ctx context.Context) error {
	c.backlog.events = 0
	if err := errors.Join(c.writers.Setup(ctx), c.resetWorker(ctx)); err != nil {
		return err
	}
	if err := c.exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, target_kind, target_ref, enabled, dry_run)
		values ('route', 'bench', 'bench', 'sql', 'bench.accept', true, true)`); err != nil {
		return err
	}
	if err := c.setWakeUp(ctx, c.readers != nobody && c.readers != polling); err != nil {
		return err
	}
	for range 2 {
		conn, err := pgx.Connect(ctx, c.dsn)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	switch c.readers {
	case polling, woken:
		var err error
		if c.routing, err = startRouting(ctx, c.env, nil); err != nil {
			return err
		}
		time.Sleep(c.pause(time.Second))
	case sleeping:
		if err := store.Listen(ctx, c.conns[0], "bench"); err != nil {
			return err
		}
		switch held, err := store.HoldWake(ctx, c.conns[0]); {
		case err != nil:
			return err
		case !held:
			return errors.New("the hint that a worker sleeps could not be given")
		}
	}
	return nil
}

// Run looks meanwhile how often a writer waits for the lock that commits with a notification take.
func (c *watchedWriters) Run(ctx context.Context) (int, error) {
	watch, end := context.WithCancel(ctx)
	waits := make(chan float64, 1)
	go func() { waits <- c.watch(watch, c.conns[1]) }()
	n, err := c.writers.Run(ctx)
	end()
	c.waiting = <-waits
	return n, err
}

const notifyLock = `select count(*) from pg_locks where not granted and locktype = 'object' and classid = 'pg_database'::regclass`

// watch returns how many writers waited, on average.
func (c *watchedWriters) watch(ctx context.Context, conn *pgx.Conn) float64 {
	var sum, looks float64
	for {
		var n int
		if err := conn.QueryRow(ctx, notifyLock).Scan(&n); err != nil {
			return sum / max(1, looks)
		}
		sum, looks = sum+float64(n), looks+1
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (c *watchedWriters) Figures() map[string]float64 {
	return map[string]float64{waitingFigure: c.waiting}
}

const waitingFigure = "writers waiting to notify"

func (c *watchedWriters) Check(ctx context.Context) error {
	if err := c.writers.Check(ctx); err != nil {
		return err
	}
	if c.routing == nil {
		return nil
	}
	if err := c.routing.settled(ctx, c.done, ""); err != nil {
		return err
	}
	return c.verified(ctx)
}

func (c *watchedWriters) Clean(ctx context.Context) error {
	err := c.routing.stop()
	c.routing = nil
	for _, conn := range c.conns {
		_ = conn.Close(ctx)
	}
	c.conns = nil
	return errors.Join(err, c.setWakeUp(ctx, false), c.writers.Clean(ctx), c.resetWorker(ctx))
}
