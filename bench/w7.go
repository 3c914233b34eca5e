package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	costFigure   = "µs/event of a pass"
	workFigure   = "CPU µs/event of a pass"
	largest      = 1_000_000
	fewestEvents = 500_000 // that a run is long: small backlogs are worked off again and again
)

func backlogName(what string, n int) string {
	return fmt.Sprintf("%s, backlog %s", what, thousands(float64(n)))
}

const (
	routesGrow = "routes"
	tableGrows = "table"
)

func backlogs(e *env) []int {
	sizes := []int{10_000, 100_000, largest, e.events}
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > e.events })
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// How many routes and workers there are, of which a size says how much work each has.
var (
	routeCounts  = []int{1, 10, 100, 1000}
	workerCounts = []int{1, 4, 16}
)

const grownSize = 100_000 // events that are worked off with many routes or workers

func countName(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(float64(n)) + " " + what + "s"
}

// typedName is a log of as many types as there are routes, one for each.
func typedName(n int) string { return countName(n, "route") + ", 1,000 types" }

var w7 = workload{
	number:  "7",
	title:   "growth: cost of an event by the size of the backlog, routes, workers; and of sleep",
	unit:    "event",
	columns: []string{workFigure, costFigure, memoryFigure, statementsFigure, asleepFigure},
	contestants: func(e *env) (all []contestant) {
		for _, n := range backlogs(e) {
			all = append(all, &growth{env: e, name: backlogName(routesGrow, n), size: n, kind: &routeGrowth{env: e}},
				&growth{env: e, name: backlogName(tableGrows, n), size: n, kind: &tableGrowth{births{env: e}}},
				&daemonGrowth{env: e, name: backlogName(daemonGrows, n), size: n})
		}
		size := min(grownSize, e.events)
		for _, n := range routeCounts {
			all = append(all, &growth{env: e, name: countName(n, "route"), size: size, kind: &manyRoutes{env: e, events: e.events, types: 4, routes: n}})
		}
		for _, n := range workerCounts {
			all = append(all, &crowd{env: e, name: countName(n, "worker"), workers: n, size: size})
		}
		for _, n := range []int{1, 1000} {
			all = append(all, &growth{env: e, name: typedName(n), size: size, kind: &manyRoutes{env: e, events: size, types: 1000, routes: n}})
		}
		if e.check { // a worker counts as alive by its last beats, and a busy machine delays these
			return all
		}
		return append(all, &idle{env: e})
	},
	reach: func(rs results) (goals []goal) {
		for _, what := range []string{routesGrow, tableGrows} {
			for _, n := range []int{10_000, 100_000, 10 * largest} {
				v, ok := rs.between(backlogName(what, n), backlogName(what, largest), func(s, base sample) float64 {
					return s.figures[workFigure] / base.figures[workFigure]
				})
				f := figure{workFigure + ", " + backlogName(what, n) + " ÷ " + thousands(largest), v, ok}
				if ok || n < largest {
					goals = append(goals, within(0.9, 1.1, f))
				}
			}
		}
		for _, n := range []int{100_000, 10 * largest} {
			v, ok := rs.between(backlogName(daemonGrows, n), backlogName(daemonGrows, largest), func(s, base sample) float64 {
				return s.figures[memoryFigure] / base.figures[memoryFigure]
			})
			if ok || n < largest {
				goals = append(goals, note(figure{memoryFigure + ", " + backlogName(daemonGrows, n) + " ÷ " + thousands(largest), v, ok}))
			}
		}
		work := func(name, base string) figure {
			v, ok := rs.between(name, base, func(s, base sample) float64 { return s.figures[workFigure] / base.figures[workFigure] })
			return figure{workFigure + ", " + name + " ÷ " + base, v, ok}
		}
		for _, n := range routeCounts[1:] {
			goals = append(goals, atMost(1.3, work(countName(n, "route"), countName(1, "route"))))
		}
		for _, n := range workerCounts[1:] {
			goals = append(goals, note(work(countName(n, "worker"), countName(1, "worker"))))
		}
		goals = append(goals, note(work(typedName(1000), typedName(1))))
		statements, ok := rs.of(idleName, figureOf(statementsFigure))
		asleep, _ := rs.of(idleName, figureOf(asleepFigure))
		return append(goals, atMost(1, figure{statementsFigure + ", " + idleName, statements, ok}), note(figure{asleepFigure + ", " + idleName, asleep, ok}))
	},
}

// growth works off the last events of a log, or the last rows of a table, that is always as large. What is measured
// is passes alone: neither the way back to the beginning nor a session's first plans.
type growth struct {
	*env
	name string
	size int
	kind interface {
		setup(ctx context.Context) error
		back(ctx context.Context, size int) error // to so many before the end, as if they had never been read
		pass() string
		check(ctx context.Context, size int) error
	}
	took  passCost
	items int
}

// passCost is what passes took, by the clock and of their backend's CPU.
type passCost struct{ time, cpu time.Duration }

func (c *growth) Name() string { return c.name }
func (c *growth) Figures() map[string]float64 {
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(c.items) }
	return map[string]float64{costFigure: each(c.took.time), workFigure: each(c.took.cpu)}
}

func (c *growth) Setup(ctx context.Context) error {
	if err := c.kind.setup(ctx); err != nil {
		return err
	}
	_, err := c.once(ctx, min(c.size, 20_000))
	return err
}

func (c *growth) Run(ctx context.Context) (int, error) {
	// Passes are all that this session does meanwhile, so its CPU is theirs.
	pid := int(c.conn.PgConn().PID())
	before := processCPU(pid)
	c.took, c.items = passCost{}, 0
	for c.items < max(c.size, c.scaled(fewestEvents)) {
		took, err := c.once(ctx, c.size)
		if err != nil {
			return 0, err
		}
		c.took.time += took
		c.items += c.size
	}
	c.took.cpu = processCPU(pid) - before
	return c.items, nil
}

func (c *growth) once(ctx context.Context, size int) (took time.Duration, err error) {
	if err := c.kind.back(ctx, size); err != nil {
		return 0, err
	}
	began := time.Now()
	err = passes(ctx, c.conn, c.kind.pass(), size)
	return time.Since(began), err
}

func (c *growth) Check(ctx context.Context) error { return c.kind.check(ctx, c.size) }
func (c *growth) Clean(context.Context) error     { return nil }

// routeGrowth is four routes in dry run.
type routeGrowth struct{ *env }

func (c *routeGrowth) setup(ctx context.Context) error {
	s := sqlWorker{env: c.env, types: everyType}
	return s.Setup(ctx)
}

// backBy is on another connection: what it does there makes a session forget its plans.
func (c *routeGrowth) back(ctx context.Context, size int) error { return c.backBy(ctx, c.events, size) }

func (e *env) backBy(ctx context.Context, events, size int) error {
	if _, err := e.pool.Exec(ctx, `
		set session_replication_role = replica;
		delete from tidemark.decision;
		reset session_replication_role`); err != nil {
		return err
	}
	_, err := e.pool.Exec(ctx, "update tidemark.worker_cursor set watermark_id = ($1::int4 - $2::int4)::text, decided_through = ($1 - $2)::text where worker = 'bench'", events, size)
	return err
}

func (c *routeGrowth) pass() string { return "select tidemark.route_worker_run('bench', 5000)" }

func (c *routeGrowth) check(ctx context.Context, size int) error {
	return c.expect(ctx, "events decided", size, "select coalesce(sum(events), 0) from tidemark.decision where outcome = 'dry_run'")
}

// tableGrowth is a table whose handler only counts.
type tableGrowth struct{ births }

func (c *tableGrowth) setup(ctx context.Context) error {
	c.rows = c.events
	if err := c.seed(ctx); err != nil {
		return err
	}
	t := tableSweep{births: c.births, source: birthsSource, page: 5000, handler: "bench.births_count"}
	return t.freshCursor(ctx)
}

func (c *tableGrowth) back(ctx context.Context, size int) error {
	_, err := c.pool.Exec(ctx, `
		update tidemark.worker_cursor c set watermark_ts = b.born_at, watermark_id = b.id, events_seen = 0, phase = 'seeding', last_run_summary = '{}',
		       decided_through = tidemark.source_place(b.born_at, b.id::text)
		  from (select min(born_at) - interval '1 second' as born_at, 0 as id
		          from (select born_at from bench.birth_registry order by born_at desc, id desc limit $1) l) b where c.worker = 'sweep'`, size)
	return err
}

func (c *tableGrowth) pass() string { return "select tidemark.worker_run('sweep')" }

func (c *tableGrowth) check(ctx context.Context, size int) error {
	return c.expect(ctx, "rows that the cursor has seen", size, "select coalesce(sum(events_seen), 0)::int8 from tidemark.worker_cursor where worker = 'sweep'")
}
