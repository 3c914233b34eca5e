package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// manyRoutes is a worker with routes in dry run. With four types in the log one of them takes every event, and the
// others wait for types that never come; with as many types as routes each has its own.
type manyRoutes struct {
	*env
	events, types, routes int
}

func (c *manyRoutes) setup(ctx context.Context) error {
	if _, err := c.conn.Exec(ctx, "select tidemark.type_set('bench', 'type.' || n) from generate_series(0, $1::int4 - 1) n", max(c.types, c.routes)+4); err != nil {
		return err
	}
	if err := c.backlog.seed(ctx, c.events, c.types); err != nil {
		return err
	}
	if err := c.resetWorker(ctx); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, enabled, dry_run)
		select 'route-' || n, 'bench', 'bench', case when $2 > 1 and $2 = $1 then 'type.' || n when n = 0 then '*' else 'type.' || n + $2 end,
		       'sql', 'bench.accept', true, true
		  from generate_series(0, $1::int4 - 1) n`, c.routes, c.types); err != nil {
		return err
	}
	return c.vacuum(ctx, "tidemark.outbound_route", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting", "tidemark.event_type")
}

func (c *manyRoutes) back(ctx context.Context, size int) error { return c.backBy(ctx, c.events, size) }

func (c *manyRoutes) pass() string { return "select tidemark.route_worker_run('bench', 5000)" }

func (c *manyRoutes) check(ctx context.Context, size int) error {
	return c.expect(ctx, "events decided", size, "select coalesce(sum(events), 0) from tidemark.decision where outcome = 'dry_run'")
}

// crowd is workers that read the same log at the same time, each with four routes of its own in dry run.
type crowd struct {
	*env
	name    string
	workers int
	size    int
	conns   []*pgx.Conn
	took    passCost
}

func crowdName(n int) string { return fmt.Sprintf("crowd%d", n) }

func (c *crowd) Name() string { return c.name }

func (c *crowd) Figures() map[string]float64 {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(c.size*c.workers) }
	return map[string]float64{costFigure: each(c.took.time), workFigure: each(c.took.cpu)}
}

func (c *crowd) Setup(ctx context.Context) error {
	if err := c.backlog.seed(ctx, c.events, 4); err != nil {
		return err
	}
	if err := c.resetWorker(ctx); err != nil {
		return err
	}
	for n := range c.workers {
		name := crowdName(n)
		if _, err := c.conn.Exec(ctx, "select tidemark.worker_set($1, starts => 'start'), tidemark.gate_set('worker.' || $1 || '.enabled', true, 'bench')", name); err != nil {
			return err
		}
		if _, err := c.conn.Exec(ctx, `
			insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, enabled, dry_run)
			select $1 || '-' || type, $1, 'bench', type, 'sql', 'bench.accept', true, true from unnest($2::text[]) type`, name, everyType); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, c.dsn)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	if err := c.vacuum(ctx, "tidemark.outbound_route", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting"); err != nil {
		return err
	}
	if err := c.back(ctx, 20_000); err != nil {
		return err
	}
	if err := c.all(ctx, 20_000); err != nil { // a session's first plans
		return err
	}
	return c.back(ctx, c.size)
}

func (c *crowd) back(ctx context.Context, size int) error {
	_, err := c.pool.Exec(ctx, "update tidemark.worker_cursor set watermark_id = ($1::int4 - $2::int4)::text, decided_through = ($1 - $2)::text where worker like 'crowd%'", c.events, size)
	if err != nil {
		return err
	}
	return c.exec(ctx, "set session_replication_role = replica; delete from tidemark.decision; reset session_replication_role")
}

func (c *crowd) Run(ctx context.Context) (int, error) {
	cpu := func() (sum time.Duration) {
		for _, conn := range c.conns {
			sum += processCPU(int(conn.PgConn().PID()))
		}
		return sum
	}
	before, began := cpu(), time.Now()
	if err := c.all(ctx, c.size); err != nil {
		return 0, err
	}
	c.took = passCost{time: time.Since(began), cpu: cpu() - before}
	return c.size * c.workers, nil
}

// all has every worker work off so many events.
func (c *crowd) all(ctx context.Context, size int) error {
	ended := make(chan error, len(c.conns))
	for n, conn := range c.conns {
		go func() { ended <- passes(ctx, conn, "select tidemark.route_worker_run('"+crowdName(n)+"', 5000)", size) }()
	}
	var err error
	for range c.conns {
		err = errors.Join(err, <-ended)
	}
	return err
}

// passes makes passes until so many items are done.
func passes(ctx context.Context, conn *pgx.Conn, sql string, size int) error {
	for done := 0; done < size; {
		var text []byte
		if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil {
			return err
		}
		var pass struct {
			Status       string
			Events, Rows int
		}
		if err := json.Unmarshal(text, &pass); err != nil {
			return err
		}
		if pass.Status != "ran" || pass.Events+pass.Rows == 0 {
			return fmt.Errorf("%d of %d done, and a pass said %s", done, size, text)
		}
		done += pass.Events + pass.Rows
	}
	return nil
}

func (c *crowd) Check(ctx context.Context) error {
	return c.expect(ctx, "workers that decided every event once", c.workers, `
		select count(*) from (
			select w.worker from tidemark.decision d join tidemark.worker w on w.id = d.worker_id
			 where d.outcome = 'dry_run' and w.worker like 'crowd%'
			 group by w.worker having sum(d.events) = $1) w`, c.size)
}

func (c *crowd) Clean(ctx context.Context) error {
	for _, conn := range c.conns {
		_ = conn.Close(ctx)
	}
	c.conns = nil
	return errors.Join(c.resetWorker(ctx), c.removeWorkers(ctx, "crowd%"))
}

// removeWorkers makes as if they had never been.
func (e *env) removeWorkers(ctx context.Context, like string) error {
	for _, sql := range []string{
		"delete from tidemark.worker_cursor where worker like $1",
		"delete from tidemark.heartbeat where executor_id like $1 || '/%'",
		"delete from tidemark.setting where key like 'worker.' || $1 || '.enabled'",
		"delete from tidemark.worker where worker like $1",
	} {
		if _, err := e.conn.Exec(ctx, sql, like); err != nil {
			return err
		}
	}
	return nil
}
