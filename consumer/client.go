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

	// Batch is the highest number of events that are handled in one transaction. Default: 100; from 1 to 5000. A large
	// batch costs less for each event; with a small one locks that handlers take are held for a shorter time, and fewer
	// handlers run twice when one fails.
	Batch int

	// PollMin and PollMax bound the wait before the next look for events when there were none: it doubles from one to the
	// other. Default: 10 ms and 1 s; PollMax is raised to PollMin. Short waits find events sooner and cost queries on an
	// idle database; with wake-up (see DirectURL) they matter little.
	PollMin, PollMax time.Duration

	// DirectURL is where to listen for wake-up, which PgBouncer in transaction mode cannot do. Default: where the pool
	// connects to. The gate notify.bridge_enabled decides whether the client listens at all; then it opens two connections
	// beside the pool's.
	DirectURL string

	// StopTimeout is how long handlers under way may go on when Run is told to stop. Default: 20 s. What is cut off is
	// rolled back, and handled again by the next instance.
	StopTimeout time.Duration

	// Logger gets what an operator may want to know. Default: slog.Default().
	Logger *slog.Logger
}

// Client handles events, and rows of tables, in a Go program. Register its handlers, then call Run.
type Client struct {
	pool   *pgxpool.Pool
	config Config

	mu       sync.Mutex // of running; the handlers do not change while it runs
	running  bool
	handlers []registration
	rows     []rowsRegistration
}

// New returns a client that works on the pool's database. It needs 3 of the pool's
// connections, of a role that is a member of tidemark_executor.
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
	case pool.Config().MaxConns < 3:
		return nil, fmt.Errorf("tidemark: the pool has at most %d connections, and 3 are needed", pool.Config().MaxConns)
	}
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
//	tidemark stage live --reason '…'
//	tidemark route set WORKER.DOMAIN.TYPE --enabled --dry-run=false
//	tidemark activate WORKER
func (c *Client) Run(ctx context.Context) error {
	if !c.begin() {
		return errors.New("tidemark: Run of a client that runs already")
	}
	defer c.end()
	if len(c.handlers)+len(c.rows) == 0 {
		return errors.New("tidemark: Run without a handler")
	}
	if err := store.CheckSchema(ctx, c.pool); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("tidemark: %w", err)
	}
	host, _ := os.Hostname() // only a name
	owner := host + "/" + rand.Text()[:8]
	bridge := worker.NewBridge(c.connect, c.config.Logger)
	besides := worker.Besides{}
	if len(c.handlers) > 0 {
		besides.Registry = bridge.Tell
	}
	poll := worker.NewPoller(c.pool, owner, c.config.Lease, c.config.PollMax, c.config.Logger, besides)
	run, err := c.prepare(ctx, owner, poll, bridge)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return tidemark.AsError(err)
	}

	aside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var polling sync.WaitGroup
	polling.Go(func() { poll.Run(aside) })
	defer polling.Wait()
	defer cancel()

	// Where one worker cannot go on, the others are stopped: the program is to know.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make(chan error, len(run))
	for _, f := range run {
		go func() {
			err := f(ctx)
			stop()
			failures <- err
		}()
	}
	for range run {
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

// prepare registers the handlers and returns what is to run at the same time.
func (c *Client) prepare(
	ctx context.Context, owner string, poll *worker.Poller, bridge *worker.Bridge,
) (run []func(context.Context) error, err error) {
	tables, err := c.tables(ctx, owner, poll)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		run = append(run, t.Run)
	}
	if len(c.handlers) == 0 {
		return run, nil
	}
	patterns := make([]string, len(c.handlers))
	for i, r := range c.handlers {
		patterns[i] = r.pattern
	}
	routes, err := store.Register(ctx, c.pool, c.config.Worker, patterns, c.config.Start)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if !r.Enabled || r.DryRun {
			c.config.Logger.InfoContext(ctx, "a handler is switched off", "route", r.Code, "pattern", r.Pattern,
				"enabled", r.Enabled, "dry_run", r.DryRun)
		}
	}
	return append(run, func(ctx context.Context) error { return c.events(ctx, owner, poll, bridge) }), nil
}

// events runs the worker of the events' handlers.
func (c *Client) events(ctx context.Context, owner string, poll *worker.Poller, bridge *worker.Bridge) error {
	aside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var bridging sync.WaitGroup
	bridging.Go(func() { bridge.Run(aside) })
	defer bridging.Wait()
	defer cancel()

	permit := &worker.Permit{}
	h := &handling{client: c, permit: permit, routes: map[int32]store.Route{}}
	o := c.options(c.config.Worker, owner, poll)
	o.Wake = bridge.Waker()
	w := worker.New(c.pool, o, worker.Log{MaxBatch: c.config.Batch, Handler: h, Permit: permit})
	return w.Run(ctx)
}

// connect opens a session for listening.
func (c *Client) connect(ctx context.Context) (*pgx.Conn, error) {
	config := c.pool.Config().ConnConfig
	if c.config.DirectURL != "" {
		direct, err := pgx.ParseConfig(c.config.DirectURL)
		if err != nil {
			return nil, errors.New("tidemark: Config.DirectURL cannot be read")
		}
		config = direct
	}
	return pgx.ConnectConfig(ctx, config)
}

// options are those of a worker of this program.
func (c *Client) options(name, owner string, poll *worker.Poller) worker.Options {
	return worker.Options{
		Worker: name, Owner: owner, Lease: c.config.Lease, PollMin: c.config.PollMin, PollMax: c.config.PollMax,
		StopTime: c.config.StopTimeout, Poll: poll, Log: c.config.Logger,
	}
}
