package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pgq consumes batches of 5,000 from PgQ: the extension, or PgQue, which is the same engine in
// plain SQL under another schema.
type pgq struct {
	*env
	name     string
	evidence bool
	queue    *pgqQueue
	worked   int
}

// pgqEngine is installed once for all queues.
type pgqEngine struct{ schema string }

// pgqQueue is filled once for all variants.
type pgqQueue struct {
	engine *pgqEngine
	name   string
	types  int // of events, in turn
	filled bool
}

const pgqBatch = 5000

func (c *pgq) Name() string { return c.name }

// sql puts the schema of the edition and the queue in place.
func (c *pgq) sql(text string) string {
	return strings.NewReplacer("pgq.", c.queue.engine.schema+".", "$queue", c.queue.name).Replace(text)
}

func (c *pgq) install(ctx context.Context) error {
	if c.queue.engine.schema != "" {
		return nil
	}
	if c.pgque != "" {
		script, err := os.ReadFile(c.pgque)
		if err != nil {
			return err
		}
		if err := c.exec(ctx, string(script)); err != nil {
			return fmt.Errorf("%s: %w", c.pgque, err)
		}
		c.queue.engine.schema = "pgque"
	} else {
		n, err := c.count(ctx, "select count(*) from pg_available_extensions where name = 'pgq'")
		if err != nil {
			return err
		}
		if n == 0 {
			return skipped("not installed: neither the pgq extension nor -pgque")
		}
		if err := c.exec(ctx, "create extension pgq"); err != nil {
			return err
		}
		c.queue.engine.schema = "pgq"
	}
	return c.exec(ctx, c.sql(pgqSQL))
}

// fill writes the queue once: a consumer that registers anew at the first tick reads it all again.
func (c *pgq) fill(ctx context.Context) error {
	if c.queue.filled {
		return nil
	}
	if err := c.exec(ctx, c.sql(`
		select pgq.create_queue('$queue');
		select pgq.set_queue_config('$queue', 'ticker_max_count', '1');
		select pgq.set_queue_config('$queue', 'rotation_period', '1 day');
		select pgq.register_consumer('$queue', 'keeper')`)); err != nil {
		return err
	}
	insert := c.sql("select count(pgq.insert_event('$queue', 'type.' || n % $3::int8, (" + payload + ")::text)) from generate_series($1::int8, $2::int8) n")
	for first := 1; first <= c.events; first += pgqBatch {
		if _, err := c.conn.Exec(ctx, insert, first, min(first+pgqBatch-1, c.events), c.queue.types); err != nil {
			return err
		}
		if err := c.exec(ctx, c.sql("select pgq.ticker('$queue')")); err != nil {
			return err
		}
	}
	c.queue.filled = true
	rows, err := c.conn.Query(ctx, "select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = $1::regnamespace", c.queue.engine.schema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return c.vacuum(ctx, tables...)
}

func (c *pgq) Setup(ctx context.Context) error {
	if err := c.install(ctx); err != nil {
		return err
	}
	if err := c.fill(ctx); err != nil {
		return err
	}
	return c.exec(ctx, c.sql(`
		truncate bench.pgq_evidence;
		select pgq.unregister_consumer('$queue', 'bench');
		select pgq.register_consumer_at('$queue', 'bench',
		  (select min(tick_id) from pgq.tick t join pgq.queue q on q.queue_id = t.tick_queue and q.queue_name = '$queue'))`))
}

func (c *pgq) Run(ctx context.Context) (int, error) {
	query := c.sql("select bench.pgq_run('$queue', $1)")
	c.worked = 0
	for {
		var n *int
		if err := c.conn.QueryRow(ctx, query, c.evidence).Scan(&n); err != nil {
			return 0, err
		}
		if n == nil {
			return c.worked, nil
		}
		c.worked += *n
	}
}

func (c *pgq) Check(ctx context.Context) error {
	if c.worked != c.events {
		return fmt.Errorf("worked off %d events of %d", c.worked, c.events)
	}
	if !c.evidence {
		return nil
	}
	return c.expect(ctx, "evidence in dry run", c.events, "select count(*) from bench.pgq_evidence where outcome = 'dry_run'")
}

func (c *pgq) Clean(ctx context.Context) error {
	if c.queue.engine.schema == "" {
		return nil
	}
	return c.exec(ctx, "truncate bench.pgq_evidence")
}
