package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// tableSweep is the loop that `tidemark run` has for a cursor of a table: claim, pass after pass under the lease,
// release. The handler is a function of the application.
type tableSweep struct {
	births
	name    string
	source  string
	page    int
	handler string
	again   bool // what is to be done was done before, and the cursor rewound
	pool    *pgxpool.Pool
}

func (c *tableSweep) Name() string { return c.name }

func (c *tableSweep) Setup(ctx context.Context) error {
	if err := c.births.Setup(ctx); err != nil {
		return err
	}
	if c.again {
		if err := c.exec(ctx, seedInOne); err != nil {
			return err
		}
	}
	if err := c.freshCursor(ctx); err != nil {
		return err
	}
	if c.again {
		if err := c.rewound(ctx); err != nil {
			return err
		}
	}
	pc := c.env.pool.Config()
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // as the daemon's
	var err error
	if c.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.candidate_state", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting", "tidemark.source", "tidemark.worker")
}

// freshCursor makes a worker with a cursor at the beginning of the table.
func (c *tableSweep) freshCursor(ctx context.Context) error {
	if err := c.exec(ctx, `
		delete from tidemark.worker_cursor where worker = 'sweep';
		delete from tidemark.heartbeat where executor_id like 'sweep/%'`); err != nil {
		return err
	}
	source := `{"table": "bench.birth_registry", "id_column": "id", "timestamp_column": "born_at", "safety": "clock"}`
	if c.source == birthsByNumber {
		source = `{"table": "bench.birth_registry", "id_column": "id", "safety": "sequence"}`
	}
	_, err := c.conn.Exec(ctx, `select tidemark.source_set($1, $2)`, c.source, source)
	if err == nil {
		_, err = c.conn.Exec(ctx, `select tidemark.worker_set($1, jsonb_build_object('source', 'table', 'handler', 'sql', 'handler_ref', $2::text, 'page_size', $3::int4))`,
			sweepWorker, c.handler, c.page)
	}
	if err == nil {
		_, err = c.conn.Exec(ctx, `select tidemark.gate_set('worker.' || $1 || '.enabled', true, 'bench'), tidemark.worker_source_add($1, $2, 'bench')`, sweepWorker, c.source)
	}
	return err
}

// rewound has the cursor as it is after a sweep and a rewind.
func (c *tableSweep) rewound(ctx context.Context) error {
	if err := c.exec(ctx, `
		update tidemark.worker_cursor c set watermark_ts = b.born_at, watermark_id = b.id, phase = 'incremental',
		       decided_through = tidemark.source_place(b.born_at, b.id::text)
		  from (select * from bench.birth_registry order by born_at desc, id desc limit 1) b where c.worker = 'sweep'`); err != nil {
		return err
	}
	_, err := c.conn.Exec(ctx, `select tidemark.source_rewind($1, $2, 'bench', '-infinity')`, sweepWorker, c.source)
	return err
}

func (c *tableSweep) Run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := &sweepWatch{pace: &c.pace, swept: make(chan struct{})}
	table := worker.New(c.pool, worker.Options{
		Worker: sweepWorker, Owner: "bench/" + c.name, Lease: 30 * time.Second,
		PollMin: 10 * time.Millisecond, PollMax: time.Second, StopTime: time.Minute,
		Observe: worker.Observer{Read: watch.read}, Log: slog.New(slog.DiscardHandler),
	}, worker.Table{Source: c.source, Paging: worker.NewPaging(store.Paging{PageSize: c.page, PageTimeout: 5})})
	c.pace.start(c.rows)
	ended := make(chan error, 1)
	go func() { ended <- table.Run(ctx) }()
	select {
	case <-watch.swept:
	case <-time.After(10 * time.Minute):
		return 0, fmt.Errorf("only %d rows in ten minutes", c.pace.done)
	case err := <-ended:
		return 0, fmt.Errorf("the worker ended: %w", err)
	}
	cancel()
	return c.pace.done, <-ended
}

// sweepWatch hears of each pass when it is committed.
type sweepWatch struct {
	*pace
	swept chan struct{}
}

func (w *sweepWatch) read(rows int, took time.Duration) {
	left := w.done < w.items
	w.pace.page(rows, took)
	if left && w.done >= w.items {
		close(w.swept)
	}
}

func (c *tableSweep) Check(ctx context.Context) error {
	if err := c.births.Check(ctx); err != nil {
		return err
	}
	if err := c.expect(ctx, "rows that the cursor has seen", c.rows, "select coalesce(sum(events_seen), 0)::int8 from tidemark.worker_cursor where worker = 'sweep'"); err != nil {
		return err
	}
	return c.expect(ctx, "rows that failed", 0, "select (select count(*) from tidemark.pending_row) + (select count(*) from tidemark.dead_letter)")
}

func (c *tableSweep) Clean(ctx context.Context) error {
	if c.pool != nil {
		c.pool.Close()
		c.pool = nil
	}
	return c.births.Clean(ctx)
}
