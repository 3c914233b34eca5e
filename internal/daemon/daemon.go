// Package daemon is `tidemark run`: the workers of a database, their wake-up, the upkeep of
// the log, heartbeats, and the operator's HTTP pages. Call New, then Run.
package daemon

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/admin"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/systemd"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// Options configure a daemon in addition to its configuration file.
type Options struct {
	Log     *slog.Logger           // required
	Stdout  io.Writer              // target of routes of the kind stdout
	Version string                 // of the program
	Metrics []prometheus.Collector // of what runs beside the daemon, for its /metrics

	File string // with the configuration, told to the operator who starts it again; empty: none

	Systemd systemd.Manager // is told when the daemon is ready, reloads, stops and is alive; the zero value: none
}

// Daemon runs the workers of a database.
type Daemon struct {
	config     config.Config
	options    Options
	pool       *pgxpool.Pool
	db         *store.DB
	slots      *worker.Slots // of pool, for what runs code of users
	watch      *pgxpool.Pool // for polls: one connection, after a failure one for each part; one for looks of the watch, and one for scrapes
	transforms *pgxpool.Pool // for the transforms of routes
	targets    *targets
	metrics    *metrics
	poll       *worker.Poller
	bridge     *worker.Bridge
	watched    *watched
	ping       atomic.Pointer[webhook.Ping] // nil: none
	admin      *admin.Server
	owner      string
	made       time.Time
	jobs       chan struct{} // a job of dead letters is due

	consumer *consumer.Consumer // of commands; nil: none
	dialled  dialled            // by the consumer
	ingress  *server            // for commands; nil: none

	mu         sync.Mutex
	stopping   bool // no more workers are started
	running    map[string]*worker.Worker
	deliverers map[string]*deliver.Deliverer // of the workers that run
	paging     map[string]*worker.Paging     // likewise
	workers    sync.WaitGroup
}

// New connects, and checks that this build can work with the schema and that the configured
// workers exist. It starts no worker.
func New(ctx context.Context, c config.Config, o Options) (*Daemon, error) {
	pool, err := openPool(ctx, c, c.Database.MaxConnections)
	if err != nil {
		return nil, err
	}
	watch, err := openPool(ctx, c, 6, kept)
	if err != nil {
		pool.Close()
		return nil, err
	}
	// A transform that hangs must not hold a connection that a lease depends on.
	transforms, err := openPool(ctx, c, 5) // one of them for dry runs
	if err != nil {
		pool.Close()
		watch.Close()
		return nil, err
	}
	d := &Daemon{
		config: c, options: o, pool: pool, db: store.New(pool), slots: worker.NewSlots(c.Database.MaxConnections), watch: watch, transforms: transforms, targets: newTargets(c, o.Stdout, store.New(pool), o.Version),
		// A new name for each start: a restarted daemon must not take the leases of its
		// predecessor for its own.
		owner:   c.Name + "/" + rand.Text()[:8],
		made:    time.Now(),
		jobs:    make(chan struct{}, 1),
		running: map[string]*worker.Worker{}, deliverers: map[string]*deliver.Deliverer{}, paging: map[string]*worker.Paging{},
		watched: &watched{log: o.Log, born: time.Now()},
	}
	if err := d.check(ctx); err != nil {
		d.closePools()
		return nil, err
	}
	ping, err := newPing(c)
	if err != nil {
		d.closePools()
		return nil, err
	}
	d.ping.Store(ping)
	registry := prometheus.NewRegistry()
	d.metrics = newMetrics(registry)
	if d.metrics.traces, err = newTraces(ctx, o.Version, o.Log); err != nil {
		d.closePools()
		return nil, fmt.Errorf("traces (OTEL_*): %w", err)
	}
	registry.MustRegister(o.Metrics...)
	registry.MustRegister(newHealth(store.New(watch), d.watched))
	registerPool(registry, pool, d.slots)
	if d.consumer, err = d.newConsumer(); err != nil {
		d.closePools()
		return nil, err
	}
	if d.consumer != nil {
		d.metrics.registerCommands(registry, d.consumer)
	}
	if c.Admin.Listen != "" {
		if d.admin, err = d.newAdmin(ctx, registry); err != nil {
			d.closePools()
			return nil, err
		}
	}
	if d.ingress, err = d.newIngress(ctx, registry); err != nil {
		if d.admin != nil {
			_ = d.admin.Shutdown(ctx)
		}
		d.closePools()
		return nil, err
	}
	return d, nil
}

// check returns an error for problems that an operator has to repair before the daemon can run.
func (d *Daemon) check(ctx context.Context) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := migrate.Check(ctx, conn.Conn()); err != nil {
		return err
	}
	all, err := d.db.Workers(ctx)
	if err != nil {
		return err
	}
	for _, name := range d.config.Workers {
		i := slices.IndexFunc(all, func(w store.Worker) bool { return w.Worker == name })
		switch {
		case i < 0:
			return fmt.Errorf("workers: there is no worker %q in the database", name)
		case all[i].Handler == "go":
			return fmt.Errorf("workers: worker %q belongs to a Go program (handler %s)", name, all[i].Handler)
		}
	}
	return nil
}

// kept: the connections of the pool are not replaced for their age. When other programs have taken all connections of the server, a
// closed one could not be, and the watch has to tell of that.
func kept(pc *pgxpool.Config) { pc.MaxConnLifetime = 100 * 365 * 24 * time.Hour }

func openPool(ctx context.Context, c config.Config, connections int, how ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.Database.URL.Reveal())
	if err != nil {
		return nil, errors.New("database.url cannot be read") // the driver's error may have a part of a password
	}
	pc.MaxConns = int32(connections) //nolint:gosec // at most 1000
	// Prepared statements do not work through PgBouncer in transaction mode.
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	name(pc.ConnConfig)
	// By default the pool pings a connection before each poll of an idle process, a second statement per poll. A broken
	// connection shows as an error of the statement, which is then retried.
	pc.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	for _, set := range how {
		set(pc)
	}
	return pgxpool.NewWithConfig(ctx, pc)
}

const pingAfter = 10 * time.Second

func name(c *pgx.ConnConfig) {
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "tidemark run"
	}
}

// connect opens a connection for LISTEN, which PgBouncer in transaction mode does not support.
func (d *Daemon) connect(ctx context.Context) (*pgx.Conn, error) {
	url := d.config.Database.DirectURL.Reveal()
	if url == "" {
		url = d.config.Database.URL.Reveal()
	}
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("database.direct_url cannot be read")
	}
	name(c)
	return pgx.ConnectConfig(ctx, c)
}

// Addr returns the address of the admin server, or an empty text without one.
func (d *Daemon) Addr() string {
	if d.admin == nil {
		return ""
	}
	return d.admin.Addr().String()
}

// Run runs the workers until ctx is done. Then it waits up to stop_timeout for the deliveries
// under way, settles, and releases its leases.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.closePools()
	log := d.options.Log
	log.InfoContext(ctx, "running", "name", d.owner, "admin", d.Addr(), "version", d.options.Version)
	if d.ingress != nil {
		log.InfoContext(ctx, "takes commands over HTTP", "at", d.IngressAddr())
	}
	for _, w := range d.config.Warnings {
		log.WarnContext(ctx, w)
	}
	d.warnOfConnection(ctx)
	d.bridge = worker.NewBridge(d.connect, log)
	dry := newDryRuns(store.New(d.transforms), log)
	// The check for silent executors must not stop together with the workers that it checks: it shares no connection with them.
	d.poll = worker.NewPoller(d.watch, d.owner, d.config.Lease, d.config.Poll.Max, log, worker.Besides{
		Daemon: d.config.Name, Facts: d.facts,
		Silence: true,
		Registry: func(all store.Registry) {
			d.bridge.Tell(all)
			d.supervise(ctx, all)
			dry.tell(all.Untried)
			if all.Jobs {
				select {
				case d.jobs <- struct{}{}:
				default: // it is told already
				}
			}
		},
	})
	aside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var rest sync.WaitGroup
	rest.Go(func() { dry.run(ctx) })
	rest.Go(func() { d.poll.Run(aside) })
	rest.Go(func() { d.bridge.Run(aside) })
	rest.Go(func() { d.looks(aside) })
	rest.Go(func() { d.upkeep(aside) })
	rest.Go(func() { d.letterJobs(ctx) })
	rest.Go(func() { d.copies(ctx) })
	if d.ping.Load() != nil {
		rest.Go(func() { d.pings(ctx) })
	}
	if d.consumer != nil {
		d.workers.Go(func() { d.consumer.Run(ctx) })
	}
	if d.admin != nil {
		rest.Go(func() {
			if err := d.admin.Serve(); err != nil {
				log.ErrorContext(ctx, "the admin server ended", "error", err)
			}
		})
	}
	if d.ingress != nil {
		rest.Go(func() {
			if err := d.ingress.Serve(); err != nil {
				log.ErrorContext(ctx, "the HTTP server for commands ended", "error", err)
			}
		})
	}

	if d.options.Systemd.Watchdog > 0 {
		rest.Go(func() { d.watchdog(aside) })
	}
	d.tell(ctx, systemd.Ready)

	<-ctx.Done()
	d.tell(ctx, systemd.Stopping)
	var err error
	if d.ingress != nil {
		shut, done := context.WithTimeout(context.WithoutCancel(ctx), d.config.StopTimeout)
		err = d.ingress.end(shut)
		done()
	}
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.workers.Wait()
	cancel()
	if d.admin != nil {
		shut, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		err = errors.Join(err, d.admin.Shutdown(shut))
		done()
	}
	rest.Wait()
	d.farewell(ctx)
	err = errors.Join(err, d.targets.Close())
	d.metrics.traces.close(ctx, log)
	log.InfoContext(context.WithoutCancel(ctx), "stopped")
	return err
}

// warnOfConnection warns if the daemon is a superuser: SQL targets, handlers and triggers of their tables run with its rights; and if what
// it reads and writes goes to another host unencrypted.
func (d *Daemon) warnOfConnection(ctx context.Context) {
	conn, err := d.watch.Acquire(ctx)
	if err != nil {
		return // the workers meet the same error and log it
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	if pg.ParameterStatus("is_superuser") == "on" {
		d.options.Log.WarnContext(ctx, "the daemon runs as a superuser, and so do SQL targets, transforms and handlers: give it a role of its own",
			"role", conn.Conn().Config().User, "see", "docs/roles.md")
	}
	to, network := pg.Conn().RemoteAddr().(*net.TCPAddr)
	if _, encrypted := pg.Conn().(*tls.Conn); network && !encrypted && !to.IP.IsLoopback() {
		d.options.Log.WarnContext(ctx, "the connection to the database on another host is not encrypted: add sslmode=verify-full to its address",
			"address", to.String(), "see", "docs/daemon.md")
	}
}

// closePools closes the pools. It waits at most a second: on a dead network, the close of a connection can hang.
func (d *Daemon) closePools() {
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		d.watch.Close()
		d.transforms.Close()
		if d.ingress != nil {
			d.ingress.pool.Close()
		}
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

// supervise starts the workers of the database that do not run yet, and tells those of tables that run what was changed.
func (d *Daemon) supervise(ctx context.Context, all store.Registry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours := func(name, running string) bool {
		return !d.stopping && d.running[running] == nil && (len(d.config.Workers) == 0 || slices.Contains(d.config.Workers, name))
	}
	shards := map[string]int{}
	for _, c := range all.Logs {
		shards[c.Worker]++
	}
	for _, c := range all.Logs {
		name := store.CursorName(c.Worker, "outbox", c.Shard)
		if !ours(c.Worker, name) {
			continue
		}
		permit := &worker.Permit{}
		handler := deliver.New(d.targets, permit, d.metrics)
		handler.Shared = shards[c.Worker] > 1
		handler.Transform = func(ctx context.Context, route store.Route, payloads []json.RawMessage) ([]json.RawMessage, error) {
			return store.TransformAlone(ctx, d.transforms, route, payloads)
		}
		d.deliverers[name] = handler
		o := d.workerOptions(c.Worker, d.metrics.of(c.Worker, "outbox", c.Shard))
		o.Wake = d.bridge.Waker()
		d.start(ctx, name, worker.New(d.pool, o, worker.Log{
			Shard: c.Shard, MaxBatch: d.config.Batch.Max, Targets: handler, Permit: permit,
		}))
	}
	for _, c := range all.Tables {
		name := store.CursorName(c.Worker, c.Source, c.Shard)
		if paging := d.paging[name]; paging != nil {
			paging.Set(c.Paging)
		}
		if c.Handler == "go" || !ours(c.Worker, name) {
			continue
		}
		paging := worker.NewPaging(c.Paging)
		d.paging[name] = paging
		d.start(ctx, name, worker.New(d.pool, d.workerOptions(c.Worker, d.metrics.of(c.Worker, c.Source, c.Shard)), worker.Table{
			Source: c.Source, Shard: c.Shard, Paging: paging,
		}))
	}
}

// start runs a worker, and the deliverer of its name, if there is one. The caller holds mu.
func (d *Daemon) start(ctx context.Context, name string, w *worker.Worker) {
	handler := d.deliverers[name]
	d.running[name] = w
	d.workers.Go(func() {
		switch err := w.Run(ctx); {
		case store.Is(err, tidemark.ErrNotFound): // it was deleted, or has fewer shards now
			d.options.Log.InfoContext(ctx, "the worker ended", "worker", name, "error", err)
		case err != nil:
			d.options.Log.ErrorContext(ctx, "the worker ended", "worker", name, "error", err)
		}
		if handler != nil {
			if err := handler.Close(); err != nil {
				d.options.Log.WarnContext(ctx, "cannot close a target", "worker", name, "error", err)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.running, name)
		delete(d.deliverers, name)
		delete(d.paging, name)
	})
}

func (d *Daemon) workerOptions(name string, observe worker.Observer) worker.Options {
	return worker.Options{
		Worker: name, Owner: d.owner, Lease: d.config.Lease, PollMin: d.config.Poll.Min, PollMax: d.config.Poll.Max,
		StopTime: d.config.StopTimeout, Poll: d.poll, Slots: d.slots, Observe: observe, Log: d.options.Log,
	}
}

func (d *Daemon) newAdmin(ctx context.Context, registry *prometheus.Registry) (*admin.Server, error) {
	s, err := admin.New(ctx, admin.Options{
		Listen: d.config.Admin.Listen, Pprof: d.config.Admin.Pprof, Version: d.options.Version,
		Registry: registry, Logger: d.options.Log,
	})
	if err != nil {
		return nil, err
	}
	s.Live(admin.Check{Name: "supervisor", Run: d.alive})
	s.Ready(admin.Check{Name: "database", Run: d.pool.Ping})
	s.Ready(admin.Check{Name: "workers", Advisory: true, Run: d.closedWorkers})
	s.Ready(admin.Check{Name: "passes", Run: d.failingWorkers})
	if d.consumer != nil {
		s.Ready(admin.Check{Name: "commands", Run: d.failingCommands, Detail: d.describeCommands})
	}
	return s, nil
}

// closedWorkers names the workers that are switched off. The check is advisory: the daemon is
// ready nevertheless.
func (d *Daemon) closedWorkers(ctx context.Context) error {
	all, err := d.db.WorkerHealth(ctx)
	if err != nil {
		return err
	}
	var closed []error
	for _, w := range all {
		if w.Gate != nil {
			closed = append(closed, fmt.Errorf("%s: closed by %s", w.Worker, *w.Gate))
		}
	}
	return errors.Join(closed...)
}

// failingWorkers names the workers that meet the same error again and again.
func (d *Daemon) failingWorkers(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var failing []error
	for _, name := range slices.Sorted(maps.Keys(d.running)) {
		if err := d.running[name].Failing(); err != nil {
			failing = append(failing, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(failing...)
}
