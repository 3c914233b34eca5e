package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// births is the table that contestants sweep; no run changes it. What they leave behind is one row of
// bench.candidate_state for each.
type births struct {
	*env
	pace pace
}

func (c *births) Figures() map[string]float64 { return c.pace.figures() }

func (c *births) Setup(ctx context.Context) error {
	if err := c.seed(ctx); err != nil {
		return err
	}
	if err := c.exec(ctx, `
		truncate bench.candidate_state;
		insert into bench.cursor (name) values ('sweep') on conflict (name) do update
		set seq = 0, last_created_at = '-infinity'`); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.candidate_state", "bench.cursor")
}

// seed writes a birth for each second of the past, two of which share theirs, unless it has done so before.
func (c *births) seed(ctx context.Context) error {
	n, err := c.count(ctx, "select count(*) from bench.birth_registry")
	if err != nil || n == c.rows {
		return err
	}
	if _, err := c.conn.Exec(ctx, `
		insert into bench.birth_registry (born_at, collection_name, entity_code)
		select now() - interval '1 day' - ($1 - n) / 2 * interval '1 second', 'collection_' || n % 40, 'CODE-' || lpad(n::text, 8, '0')
		  from generate_series(1, $1) n order by n`, c.rows); err != nil {
		return err
	}
	return c.vacuum(ctx, "bench.birth_registry")
}

// Check wants each row once: the key holds that it is not there twice.
func (c *births) Check(ctx context.Context) error {
	if err := c.expect(ctx, "candidates", c.rows, "select count(*) from bench.candidate_state"); err != nil {
		return err
	}
	return c.expect(ctx, "births with their candidate", c.rows, `
		select count(*) from bench.birth_registry b join bench.candidate_state c on c.birth_id = b.id
		 where c.candidate_key = b.collection_name || ':' || b.entity_code and c.ruleset_version = 1`)
}

func (c *births) Clean(ctx context.Context) error {
	return c.exec(ctx, "truncate bench.candidate_state")
}

const seedInOne = `
	insert into bench.candidate_state (candidate_key, ruleset_version, birth_id)
	select bench.candidate_key(b.canonical_address, b.collection_name, b.entity_code), 1, b.id from bench.birth_registry b
	on conflict do nothing`

// oneStatement has no cursor and no pages.
type oneStatement struct{ births }

func (c *oneStatement) Name() string                { return statementName }
func (c *oneStatement) Figures() map[string]float64 { return nil }

func (c *oneStatement) Run(ctx context.Context) (int, error) {
	tag, err := c.conn.Exec(ctx, seedInOne)
	return int(tag.RowsAffected()), err
}

// handSweep calls a function that reads a page, seeds it and moves its cursor.
type handSweep struct {
	births
	name, query string
}

func (c *handSweep) Name() string { return c.name }

func (c *handSweep) Run(ctx context.Context) (int, error) {
	c.pace.start(c.rows)
	for {
		began := time.Now()
		n, err := c.count(ctx, c.query)
		if err != nil || n == 0 {
			return c.pace.done, err
		}
		c.pace.page(n, time.Since(began))
	}
}

// clientSweep has the rows come to a program, which sends them back as arrays.
type clientSweep struct {
	births
	at time.Time
	id int32
}

func (c *clientSweep) Name() string { return goPageName }

func (c *clientSweep) Run(ctx context.Context) (int, error) {
	c.pace.start(c.rows)
	c.at, c.id = time.Unix(0, 0), 0
	for {
		began := time.Now()
		var n int
		if err := pgx.BeginFunc(ctx, c.conn, func(tx pgx.Tx) (err error) {
			n, err = c.page(ctx, tx)
			return err
		}); err != nil || n == 0 {
			return c.pace.done, err
		}
		c.pace.page(n, time.Since(began))
	}
}

func (c *clientSweep) page(ctx context.Context, tx pgx.Tx) (int, error) {
	var (
		address          *string
		collection, code string
		keys             []string
		ids              []int32
	)
	rows, err := tx.Query(ctx, `
		select b.born_at, b.id, b.canonical_address, b.collection_name, b.entity_code from bench.birth_registry b
		 where (b.born_at, b.id) > ($1, $2) and b.born_at < clock_timestamp() - interval '1 second'
		 order by b.born_at, b.id limit 5000`, c.at, c.id)
	if err != nil {
		return 0, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&c.at, &c.id, &address, &collection, &code}, func() error {
		key := collection + ":" + code
		if address != nil {
			key = *address
		}
		keys, ids = append(keys, key), append(ids, c.id)
		return nil
	}); err != nil || len(keys) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `
		insert into bench.candidate_state (candidate_key, ruleset_version, birth_id)
		select n.key, 1, n.id from unnest($1::text[], $2::int4[]) n (key, id) order by 1
		on conflict do nothing`, keys, ids); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "update bench.cursor set last_created_at = $1, seq = $2 where name = 'sweep'", c.at, c.id)
	return len(keys), err
}
