package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverJobs works off jobs with a worker that does nothing.
type riverJobs struct {
	*env
	items    int
	migrated bool
	client   *river.Client[pgx.Tx]
	worker   *riverWorker
}

type riverArgs struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

func (riverArgs) Kind() string { return "bench" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	left atomic.Int64
	done chan struct{}
}

func (w *riverWorker) Work(context.Context, *river.Job[riverArgs]) error {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
	return nil
}

func (c *riverJobs) Name() string { return riverName }

func (c *riverJobs) Setup(ctx context.Context) error {
	if !c.migrated {
		migrator, err := rivermigrate.New(riverpgxv5.New(c.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		c.migrated = true
	}
	if err := c.exec(ctx, "truncate river_job"); err != nil {
		return err
	}

	c.worker = &riverWorker{done: make(chan struct{})}
	c.worker.left.Store(int64(c.items))
	workers := river.NewWorkers()
	river.AddWorker(workers, c.worker)
	var err error
	c.client, err = river.NewClient(riverpgxv5.New(c.pool), &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: river.FetchPollIntervalMin,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           workers,
	})
	if err != nil {
		return err
	}
	pad := make([]byte, 180)
	for i := range pad {
		pad[i] = 'x'
	}
	const batch = 5000
	for first := 0; first < c.items; first += batch {
		jobs := make([]river.InsertManyParams, 0, batch)
		for n := first; n < min(first+batch, c.items); n++ {
			jobs = append(jobs, river.InsertManyParams{Args: riverArgs{N: n, Pad: string(pad)}})
		}
		if _, err := c.client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return c.vacuum(ctx, "river_job")
}

// Run ends when the client has stopped: only then are the last completions stored.
func (c *riverJobs) Run(ctx context.Context) (int, error) {
	if err := c.client.Start(ctx); err != nil {
		return 0, err
	}
	select {
	case <-c.worker.done:
	case <-time.After(10 * time.Minute):
		return 0, fmt.Errorf("%d jobs left after ten minutes", c.worker.left.Load())
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return c.items, c.client.Stop(ctx)
}

func (c *riverJobs) Check(ctx context.Context) error {
	if left := c.worker.left.Load(); left != 0 {
		return fmt.Errorf("%d jobs ran more than once", -left)
	}
	return c.expect(ctx, "completed jobs", c.items, "select count(*) from river_job where state = 'completed'")
}

func (c *riverJobs) Clean(ctx context.Context) error {
	if !c.migrated {
		return nil
	}
	return c.exec(ctx, "truncate river_job")
}
