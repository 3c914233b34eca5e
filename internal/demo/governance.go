package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/trial"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/packs"
)

//go:embed governance.sql
var registry string

// GovernanceOptions are those of the demo of the pack governance.
type GovernanceOptions struct {
	Rows   int           // births that are there when it begins
	Load   time.Duration // how long the application writes meanwhile, at least: it goes on until half is done
	Binary string        // the command tidemark
}

const (
	governancePack = "governance"
	registryTables = "birth_registry, registry_changelog"
	writers        = 4
	// One of so many transactions of a writer rolls back; one stays open for up to a second.
	rollsBackEvery = 10
	staysOpenEvery = 40
	// Parts of the sweep after which the daemon is killed, and up to which the application writes at least.
	killAfter   = 0.35
	writesUntil = 0.5
	// governancePatience is how long there may be no progress.
	governancePatience = time.Minute
)

// Governance shows the pack governance on out: five workers over tables of an application that writes on, with the
// daemon killed in the middle. It returns an error unless the result is perfect.
func Governance(ctx context.Context, out io.Writer, o GovernanceOptions) (err error) {
	g := &governance{out: out, options: o}
	began := time.Now()
	defer func() { err = errors.Join(err, g.close(context.WithoutCancel(ctx))) }()
	for _, part := range []func(context.Context) error{g.start, g.install, g.attach, g.sweep, g.audit, g.report} {
		if err := part(ctx); err != nil {
			if log := g.daemon.log.String(); log != "" && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%w\nThe daemon's log:\n%s", err, log)
			}
			return err
		}
	}
	g.say("Done in %.0f s.", time.Since(began).Seconds())
	return nil
}

// governance is that demo under way.
type governance struct {
	options GovernanceOptions
	server  *devpg.Server
	conn    *pgx.Conn
	daemon  process
	began   time.Time
	kills   int
	half    atomic.Bool // the sweep has come so far that the application may stop

	mu  sync.Mutex
	out io.Writer

	written wrote
}

// wrote is what the application did while the workers were at it, counted by itself.
type wrote struct {
	mu                              sync.Mutex
	births, changes, events         int
	rolledBack, stayedOpen, commits int
}

func (g *governance) say(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.out, format+"\n", args...)
}

func (g *governance) note(format string, args ...any) {
	g.say("%7.1f s  %s", time.Since(g.began).Seconds(), fmt.Sprintf(format, args...))
}

func (g *governance) start(ctx context.Context) (err error) {
	if g.server, err = devpg.Start(ctx, devpg.Options{Durable: true, Fetch: download.Postgres, Settings: map[string]string{
		"max_wal_size": "4GB", "shared_buffers": "512MB",
	}}); err != nil {
		return err
	}
	g.daemon = process{binary: g.options.Binary, env: []string{
		"TIDEMARK_CONFIG=", "TIDEMARK_DATABASE_URL=" + g.server.URL("postgres"), "TIDEMARK_ADMIN_LISTEN=127.0.0.1:0", "TIDEMARK_LEASE=3s", "TIDEMARK_LOG_LEVEL=warn",
	}}
	g.conn, err = pgx.Connect(ctx, g.server.URL("postgres"))
	return err
}

func (g *governance) close(ctx context.Context) error {
	g.daemon.kill()
	if g.conn != nil {
		_ = g.conn.Close(ctx)
	}
	if g.server != nil {
		return g.server.Stop()
	}
	return nil
}

func (g *governance) install(ctx context.Context) error {
	var version string
	if err := g.conn.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	g.say("Tidemark on a private PostgreSQL %s, gone when this ends.\n", version)
	if _, err := migrate.Up(ctx, g.conn); err != nil {
		return err
	}
	pack, found, err := packs.Find(governancePack)
	if err != nil || !found {
		return errors.Join(err, errors.New("pack governance is not in this build"))
	}
	if err := pgx.BeginFunc(ctx, g.conn, func(tx pgx.Tx) error {
		_, err := store.New(tx).InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, pack.SQL)
		return err
	}); err != nil {
		return err
	}
	if _, err := g.conn.Exec(ctx, registry); err != nil {
		return err
	}
	if _, err := g.conn.Exec(ctx, `insert into birth_registry (collection_name, entity_code, born_at)
		select 'collection-' || i % 40, 'entity-' || i, clock_timestamp() from generate_series(1, $1::integer) i`, g.options.Rows); err != nil {
		return err
	}
	if _, err := g.conn.Exec(ctx, `vacuum analyze birth_registry`); err != nil {
		return err
	}
	g.say("1. Pack %s: its types, its five workers and its own tables, all switched off. An application's registry\n"+
		"   of %s births, whose canonical_address is null throughout, and a log of changes, whose timestamp is\n"+
		"   without time zone.", pack.Name, thousands(g.options.Rows))
	return nil
}

// attach makes the application's tables sources.
func (g *governance) attach(ctx context.Context) error {
	g.say("\n2. The tables are read, and never written: a trigger would show it. Everything is off until it is switched on:")
	for _, sql := range []string{
		`grant select on ` + registryTables + ` to tidemark_executor;`,
		`select governance.watch('birth_registry', 'birth');`,
		`select governance.watch('registry_changelog', 'change');`,
		`select tidemark.type_set('registry', 'changed');
select governance.watch('tidemark.outbox', 'change', '{"collection": "subject_table", "entity": "subject_ref"}');`,
		`select governance.ruleset_set('1', '{"verdict_rule": "public.current_version"}', 'the demo''s own rule');`,
		`-- By day the workers rest for a second between two passes. Let it be night:
select tidemark.worker_set(worker, '{"off_peak": null}') from tidemark.worker where worker like 'gov%';`,
		`select tidemark.gate_set(gate, true) from unnest(array['routes.enabled', 'worker.gov_backfill_sweep.enabled',
    'worker.gov_handoff_intake.enabled', 'worker.gov_input_gate.enabled', 'worker.gov_candidate_scan.enabled',
    'worker.gov_periodic_full_audit.enabled']) gate;`,
	} {
		g.say("   %s", strings.ReplaceAll(sql, "\n", "\n   "))
		if _, err := g.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// sweep runs the workers over all rows while the application goes on writing, and kills the daemon in between.
func (g *governance) sweep(ctx context.Context) error {
	g.say("\n3. A daemon (tidemark run) goes through all of it, while the application writes on: %d writers, of whose transactions\n"+
		"   some roll back, and some stay open for up to a second after they wrote. Rows are those that have come through\n"+
		"   the sweep, the gate and the scan.\n", writers)
	g.began = time.Now()
	if err := g.daemon.start(ctx); err != nil {
		return err
	}
	written := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(written)
		return g.write(ctx)
	})
	group.Go(func() error { return g.watch(ctx, written) })
	return group.Wait()
}

// write plays the application.
func (g *governance) write(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, g.server.URL("postgres"))
	if err != nil {
		return err
	}
	defer pool.Close()
	over := time.Now().Add(g.options.Load)
	group, ctx := errgroup.WithContext(ctx)
	for writer := range writers {
		group.Go(func() error {
			for n := 0; time.Now().Before(over) || !g.half.Load(); n++ {
				if err := g.transaction(ctx, pool, fmt.Sprintf("live-%d-%d", writer, n)); err != nil {
					return err
				}
				if err := trial.Wait(ctx, time.Duration(rand.IntN(10))*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (g *governance) transaction(ctx context.Context, pool *pgxpool.Pool, entity string) error {
	var births, changes, events, open int
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		sql, args := `select change($1, $2)`, []any{1 + rand.IntN(g.options.Rows), false}
		switch rand.IntN(3) {
		case 0:
			births++
			sql, args = `insert into birth_registry (collection_name, entity_code) values ('live', $1)`, []any{entity}
		case 1:
			events++
			args[1] = true
		default:
			changes++
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
		if rand.IntN(staysOpenEvery) == 0 {
			open++
			if err := trial.Wait(ctx, time.Duration(100+rand.IntN(900))*time.Millisecond); err != nil {
				return err
			}
		}
		if rand.IntN(rollsBackEvery) == 0 {
			return errTakenBack
		}
		return nil
	})
	w := &g.written
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, errTakenBack) {
		w.rolledBack++
		return nil
	}
	if err != nil {
		return err
	}
	w.commits++
	w.births, w.changes, w.events, w.stayedOpen = w.births+births, w.changes+changes, w.events+events, w.stayedOpen+open
	return nil
}

// place is the progress of the workers.
type place struct {
	Seen, Total int64 // rows through sweep, gate and scan; and how many that will be
	Intake      int64 // rows that gov_handoff_intake has seen
	Births      int64
	Judged      int64 // candidates with a verdict
	Dirty       int64
}

func (g *governance) place(ctx context.Context, conn *pgx.Conn) (p place, err error) {
	g.written.mu.Lock()
	defer g.written.mu.Unlock()
	p.Births = int64(g.options.Rows + g.written.births)
	p.Total = 3 * p.Births
	err = conn.QueryRow(ctx, `
select coalesce(sum(p.rows_seen) filter (where p.worker in ('gov_backfill_sweep', 'gov_input_gate') or p.source = 'governance_gated'), 0)::bigint,
       coalesce(sum(p.rows_seen) filter (where p.worker = 'gov_handoff_intake'), 0)::bigint,
       (select coalesce(sum(v.value::bigint), 0)::bigint from governance.summary s, jsonb_each_text(s.verdicts) v where s.is_current),
       (select s.dirty from governance.summary s where s.is_current)
from governance.progress p`).Scan(&p.Seen, &p.Intake, &p.Judged, &p.Dirty)
	return p, err
}

// watch prints the progress, kills the daemon in between, and returns when all is done.
func (g *governance) watch(ctx context.Context, written <-chan struct{}) error {
	conn, err := pgx.Connect(ctx, g.server.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var last, said place
	moved, saidAt := time.Now(), time.Now()
	for {
		now, err := g.place(ctx, conn)
		if err != nil {
			return err
		}
		if now != last {
			last, moved = now, time.Now()
		}
		g.half.Store(float64(now.Seen) > writesUntil*float64(now.Total))
		done := written == nil && now.Judged == now.Births && now.Dirty == 0 && now.Intake == g.told(now.Births)
		if done || time.Since(saidAt) > g.options.Load/8 {
			g.bar(now, said, time.Since(saidAt))
			said, saidAt = now, time.Now()
		}
		switch {
		case done:
			return nil
		case time.Since(moved) > governancePatience:
			return errors.New("not everything is done, and nothing makes progress any more")
		case g.kills == 0 && float64(now.Seen) > killAfter*float64(now.Total):
			if err := g.killAndGoOn(ctx, conn); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-written:
			g.note("the application is done")
			written = nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// told returns how many rows gov_handoff_intake has to read.
func (g *governance) told(births int64) int64 {
	g.written.mu.Lock()
	defer g.written.mu.Unlock()
	return births + int64(g.written.changes+g.written.events)
}

func (g *governance) killAndGoOn(ctx context.Context, conn *pgx.Conn) error {
	g.daemon.kill()
	g.kills++
	left, err := g.place(ctx, conn)
	if err != nil {
		return err
	}
	g.note("the daemon is killed (kill -9) with %s rows done", thousands(int(left.Seen)))
	if err := trial.Wait(ctx, time.Second); err != nil {
		return err
	}
	if err := g.daemon.start(ctx); err != nil {
		return err
	}
	g.note("another one takes over as soon as the leases of the dead one have ended")
	return nil
}

const barWidth = 30

func (g *governance) bar(now, before place, since time.Duration) {
	part := min(1, float64(now.Seen)/float64(now.Total))
	full := int(part * barWidth)
	rate := float64(now.Seen-before.Seen) / since.Seconds()
	left := ""
	if rate > 0 && now.Seen < now.Total {
		left = fmt.Sprintf("%4.0f s left", float64(now.Total-now.Seen)/rate)
	}
	g.say("%7.1f s  [%s%s] %3.0f %%  %9s judged %7s dirty %9s rows/s  %s", time.Since(g.began).Seconds(), strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), 100*part, thousands(int(now.Judged)), thousands(int(now.Dirty)), thousands(int(rate)), left)
}

// thousands writes 1037724 as 1,037,724.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
