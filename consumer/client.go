package consumer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/limit"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// Config says how a Client handles events. The zero value of a field is its default.
type Config struct {
	// Worker names the worker whose cursor the handlers of this program share. Programs with the same worker take turns: one
	// handles, the others stand by. Required.
	Worker string

	// Start is where a new worker begins in the log. "now" (the default): with what commits from the first Run on. "start":
	// with all that retention has left. The number of an event, or a time (RFC 3339): there. A worker that has begun before
	// goes on where it is, whatever Start says. A handler that is added to it gets events from then on; for earlier ones
	// there is `tidemark route replay`.
	Start string

	// Lease is how long the other instances wait for one that died without giving its cursor back. Default: 30 s; from 3 s
	// to 1 h. A short lease hands over sooner; with a long one a slow database or a paused process is less likely to lose
	// the cursor to another instance in the middle of a batch, which is then handled again.
	Lease time.Duration

	// Batch is the highest number of events that are read at once. Default: 100; from 1 to 5000. With a Concurrency of 1 they
	// are handled in one transaction: a large batch then costs less for each event; with a small one locks that handlers take
	// are held for a shorter time, and fewer handlers run twice when one fails.
	Batch int

	// Concurrency is how many events each handler works on at a time. Default: 1; up to 1000. Events of one key are handled
	// one after the other, in order. 1 suits handlers that are quick: those of a batch run in one transaction. With more, each event
	// has a transaction of its own, on a connection of its own, which suits handlers that wait for something else. A handler's
	// promise is the same: its effects in the database happen exactly once.
	Concurrency int

	// PollMin and PollMax bound the wait before the next look for events when there were none: it doubles from one to the
	// other. Default: 10 ms and 1 s; PollMax is raised to PollMin. Short waits find events sooner and cost queries on an
	// idle database; with wake-up (see DirectURL) they matter little.
	PollMin, PollMax time.Duration

	// DirectURL is where to listen for wake-up, which PgBouncer in transaction mode cannot do. Default: where the pool
	// connects to, by its BeforeConnect if it has one. The gate notify.bridge_enabled decides whether the client listens at all; then it opens two connections
	// beside the pool's.
	DirectURL string

	// StopTimeout is how long handlers under way may go on when Run is told to stop; no other begins. Default: 20 s. What is cut off is
	// rolled back, and handled again by the next instance.
	StopTimeout time.Duration

	// Logger gets what an operator may want to know. Default: slog.Default().
	Logger *slog.Logger
}

// Client handles events, and rows of tables, in a Go program. Register its handlers, then call Run.
type Client struct {
	pool   *pgxpool.Pool
	config Config

	mu       sync.Mutex // of running and off; the handlers do not change while it runs
	running  bool
	handlers []registration
	rows     []rowsRegistration
	around   []Middleware    // outermost first
	off      map[string]bool // routes that were said to be switched off
}

// mostConcurrency is the highest Config.Concurrency.
const mostConcurrency = 1000

// New returns a client that works on the pool's database. It needs 3 of the pool's connections, and with a Concurrency above 1
// that many more for each handler. Their role is a member of tidemark_executor.
func New(pool *pgxpool.Pool, c Config) (*Client, error) {
	switch {
	case pool == nil:
		return nil, errors.New("tidemark: pool is nil")
	case c.Worker == "":
		return nil, errors.New("tidemark: Config.Worker is empty")
	case c.Lease != 0 && (c.Lease < limit.MinLease || c.Lease > limit.MaxLease):
		return nil, fmt.Errorf("tidemark: Config.Lease is %s, and must be from 3 s to 1 h", c.Lease)
	case c.Batch < 0 || c.Batch > 5000:
		return nil, fmt.Errorf("tidemark: Config.Batch is %d, and must be from 1 to 5000", c.Batch)
	case c.Concurrency < 0 || c.Concurrency > mostConcurrency:
		return nil, fmt.Errorf("tidemark: Config.Concurrency is %d, and must be from 1 to %d", c.Concurrency, mostConcurrency)
	case pool.Config().MaxConns < 3:
		return nil, fmt.Errorf("tidemark: the pool has at most %d connections, and 3 are needed", pool.Config().MaxConns)
	}
	c.Concurrency = cmp.Or(c.Concurrency, 1)
	c.Start = cmp.Or(c.Start, "now")
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Batch = cmp.Or(c.Batch, 100)
	c.PollMin = cmp.Or(c.PollMin, 10*time.Millisecond)
	c.PollMax = max(cmp.Or(c.PollMax, time.Second), c.PollMin)
	c.StopTimeout = cmp.Or(c.StopTimeout, 20*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Client{pool: pool, config: c}, nil
}

// Run registers the handlers with the database and handles events until ctx is done. Then
// it ends what is under way, for at most Config.StopTimeout, and gives the cursor back.
//
// It returns tidemark.ErrSchema at once if the schema in the database is older than this module, or newer by a breaking
// migration. Before it returns an error it stops all handlers.
//
// Call it again after it has returned, if you like. A second Run of a client that runs returns an error at once, and leaves
// the first alone: for two workers in one program use two clients.
//
// A worker and a route for each handler are made when there are none: off, in dry run,
// and behind closed gates, as everything in Tidemark is at first. A new worker begins where
// Config.Start says. To switch a handler on:
//
//	tidemark route go-live WORKER.DOMAIN.TYPE --reason '…'
func (c *Client) Run(ctx context.Context) error {
	bridge := worker.NewBridge(c.connect, c.config.Logger)
	tables := pagings{}
	besides := worker.Besides{Registry: func(all store.Registry) {
		if len(c.handlers) > 0 {
			bridge.Tell(all)
		}
		tables.hear(all)
	}}
	owner := newOwner()
	poll := worker.NewPoller(c.pool, owner, c.config.Lease, c.config.PollMax, c.config.Logger, besides)
	return c.run(ctx, worker.Options{Owner: owner, Poll: poll, Wake: bridge.Waker()}, tables, poll.Run, bridge.Run)
}

// Drain handles all that is committed and due, and returns when nothing is left to do: for tests, and for programs that a timer
// starts. What a handler fails at stays pending or becomes a dead letter, as with Run; that is no error of Drain, and a retry
// that is due later is not waited for.
//
// It returns tidemark.ErrGateClosed if a gate is closed or another instance has the cursor, and the error of ctx if that ends
// first.
func (c *Client) Drain(ctx context.Context) error {
	return cmp.Or(c.run(ctx, worker.Options{Owner: newOwner(), Drain: true}, pagings{}), ctx.Err())
}

// Register creates the worker, its cursor and a route for each handler, where they are missing: off, in dry run and behind closed
// gates. Run and Drain do so too. It is for a deployment that registers before the program runs, and for tests
// (tidemarktest.GoLive).
func (c *Client) Register(ctx context.Context) error {
	_, err := c.workers(ctx, worker.Options{}, pagings{})
	return err
}

// newOwner names an instance.
func newOwner() string {
	host, _ := os.Hostname() // only a name
	return host + "/" + rand.Text()[:8]
}

// run registers the handlers and runs a worker for each cursor until all have returned, and the others beside them.
func (c *Client) run(ctx context.Context, o worker.Options, p pagings, beside ...func(context.Context)) error {
	if !c.begin() {
		return errors.New("tidemark: the client runs already")
	}
	defer c.end()
	needed := 3
	if c.config.Concurrency > 1 {
		needed += c.config.Concurrency * len(c.handlers)
	}
	switch most := c.pool.Config().MaxConns; {
	case len(c.handlers)+len(c.rows) == 0:
		return errors.New("tidemark: the client has no handler")
	case int(most) < needed:
		return fmt.Errorf("tidemark: the pool has at most %d connections, and %d are needed: 3, and Config.Concurrency (%d) for each "+
			"of %d handlers; set pool_max_conns in its URL", most, needed, c.config.Concurrency, len(c.handlers))
	}
	workers, err := c.workers(ctx, o, p)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}

	aside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var besides sync.WaitGroup
	for _, f := range beside {
		besides.Go(func() { f(aside) })
	}
	defer besides.Wait()
	defer cancel()

	// Where one worker cannot go on, the others are stopped: the program is to know.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make(chan error, len(workers))
	for _, w := range workers {
		go func() {
			err := w.Run(ctx)
			if err != nil {
				stop()
			}
			failures <- err
		}()
	}
	for range workers {
		err = errors.Join(err, <-failures)
	}
	return tidemark.AsError(err)
}

// begin reports whether this Run is the only one.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	alone := !c.running
	c.running = true
	return alone
}

func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

// register calls add, or panics: call is the one to Handle or HandleRows that is wrong.
func (c *Client) register(call string, isNil bool, twice func() bool, add func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case isNil:
		panic("tidemark: " + call + " with a nil handler")
	case twice():
		panic("tidemark: " + call + " twice")
	case c.running:
		panic("tidemark: " + call + " while the client runs: register handlers before Run")
	}
	add()
}

// workers registers the handlers and returns a worker for each of their cursors.
func (c *Client) workers(ctx context.Context, o worker.Options, p pagings) ([]*worker.Worker, error) {
	if err := store.CheckSchema(ctx, c.pool); err != nil {
		return nil, fmt.Errorf("tidemark: %w", err)
	}
	workers, err := c.tables(ctx, o, p)
	if err != nil || len(c.handlers) == 0 {
		return workers, tidemark.AsError(err)
	}
	patterns := make([]string, len(c.handlers))
	for i, r := range c.handlers {
		patterns[i] = r.pattern
	}
	routes, err := store.Register(ctx, c.pool, c.config.Worker, patterns, c.config.Start)
	if err != nil {
		return nil, tidemark.AsError(err)
	}
	for _, r := range routes {
		if c.saysOff(r.Code, !r.Enabled || r.DryRun) {
			c.config.Logger.InfoContext(ctx, "a handler is switched off", "route", r.Code, "pattern", r.Pattern,
				"enabled", r.Enabled, "dry_run", r.DryRun)
		}
	}
	return append(workers, worker.New(c.pool, c.options(c.config.Worker, o), c.log())), nil
}

// saysOff tells whether to say that a route is switched off: once, until it was on.
func (c *Client) saysOff(route string, off bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off == nil {
		c.off = map[string]bool{}
	}
	said := c.off[route]
	c.off[route] = off
	return off && !said
}

// log is the log as the source of the events' handlers.
func (c *Client) log() worker.Log {
	calls := calls{handlers: map[string]Handler{}}
	for _, r := range c.handlers {
		calls.handlers[r.pattern] = surrounded(r.handler, c.around)
	}
	log := worker.Log{MaxBatch: c.config.Batch, Permit: &worker.Permit{}}
	if c.config.Concurrency == 1 {
		log.Handler = &handling{calls: calls, permit: log.Permit, routes: map[int32]store.Route{}, untold: map[int32]bool{}}
	} else {
		log.Targets = newTargets(c, calls, log.Permit)
	}
	return log
}

// connect opens a session for listening.
func (c *Client) connect(ctx context.Context) (*pgx.Conn, error) {
	if c.config.DirectURL != "" {
		direct, err := pgx.ParseConfig(c.config.DirectURL)
		if err != nil {
			return nil, errors.New("tidemark: Config.DirectURL cannot be read")
		}
		return pgx.ConnectConfig(ctx, direct)
	}
	pool := c.pool.Config()
	if pool.BeforeConnect != nil { // such as one that fetches a password that holds for a quarter of an hour
		if err := pool.BeforeConnect(ctx, pool.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, pool.ConnConfig)
}

// options completes those of a worker of this program.
func (c *Client) options(name string, o worker.Options) worker.Options {
	o.Worker, o.Lease, o.PollMin, o.PollMax = name, c.config.Lease, c.config.PollMin, c.config.PollMax
	o.StopTime, o.Log = c.config.StopTimeout, c.config.Logger
	return o
}
