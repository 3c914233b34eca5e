package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// stream takes events from a commit to a handler.
type stream interface {
	// Prepare leaves no event behind.
	Prepare(ctx context.Context) error
	// Start returns when the handler is called for what is emitted from then on, or soon after.
	Start(ctx context.Context, handle func(payload []byte)) error
	// Emit emits event n: with a connection, one commit; with a transaction, as a part of it.
	Emit(ctx context.Context, db querier, n int, key, payload string) error
	// Stop ends what Start began. It may be called without a Start.
	Stop(ctx context.Context) error
	// Verify looks at the system's own records.
	Verify(ctx context.Context) error
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// latency measures a stream under a steady load.
type latency struct {
	*env
	name   string
	rate   int
	open   bool // others hold write transactions open
	strict bool // nothing may be lost, come twice or out of order
	stream stream

	journal *trial.Numbers
	origin  time.Time
	due     []time.Duration // since origin, as the next two
	acked   []time.Duration
	began   []time.Duration
	conns   []*pgx.Conn
	ready   chan struct{}
}

func (c *latency) Name() string { return c.name }

// events of a run; the last one is that of the transaction that was open.
func (c *latency) events() int {
	n := int((c.duration + c.pause(latencyTail)).Seconds() * float64(c.rate))
	if c.open {
		n++
	}
	return n
}

const drain = time.Minute

// warm are events before the first, which say that the handler is there.
const warm = 20

func (c *latency) Setup(ctx context.Context) error {
	if err := c.stream.Prepare(ctx); err != nil {
		return err
	}
	for range emitters {
		conn, err := pgx.Connect(ctx, c.dsn)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	n := c.events()
	c.journal = trial.NewNumbers(n, emitters*keysByEmit)
	if c.open {
		c.journal.Apart(n - 1)
	}
	c.due, c.acked, c.began = make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n)
	c.origin = time.Now()
	c.ready = make(chan struct{})
	warmed := trial.NewNumbers(warm, 1)
	go func() {
		<-warmed.Done()
		close(c.ready)
	}()
	if err := c.stream.Start(ctx, func(payload []byte) {
		now := time.Since(c.origin)
		if n := number(payload) - 1 - warm; n < 0 {
			warmed.Saw(n + warm)
		} else if c.journal.Saw(n) {
			c.began[n] = now
		}
	}); err != nil {
		return err
	}
	for i := range warm {
		if err := c.emit(ctx, c.conns[0], i-warm); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	select {
	case <-c.ready:
		time.Sleep(c.pause(500 * time.Millisecond))
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("the handler is not called")
	}
}

// emit gives each emitter keys of its own, so that their order is that of the commits.
func (c *latency) emit(ctx context.Context, db querier, n int) error {
	number := n + 1 + warm
	payload := fmt.Sprintf(`{"n": %d, "pad": "%0*d"}`, number, 183-len(fmt.Sprint(number)), 0)
	key := fmt.Sprintf("key.%d", (n+warm)%(emitters*keysByEmit))
	if c.open && n == c.events()-1 {
		key = "apart"
	}
	return c.stream.Emit(ctx, db, number, key, payload)
}

func (c *latency) Run(ctx context.Context) (int, error) {
	start := time.Since(c.origin) + 20*time.Millisecond
	steady := c.events()
	var wg sync.WaitGroup
	failures := make([]error, emitters+1)
	if c.open {
		steady--
		wg.Go(func() { failures[emitters] = c.holdOpen(ctx, steady) })
	}
	for e := range emitters {
		wg.Go(func() {
			for n := e; n < steady && failures[e] == nil; n += emitters {
				c.due[n] = start + time.Duration(n)*time.Second/time.Duration(c.rate)
				time.Sleep(c.due[n] - time.Since(c.origin))
				failures[e] = c.emit(ctx, c.conns[e], n)
				c.acked[n] = time.Since(c.origin)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return 0, err
	}
	select {
	case <-c.journal.Done():
	case <-time.After(drain): // what has not come by now is lost, or as good as
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return c.events(), nil
}

// holdOpen keeps two write transactions open for the duration: one that has emitted an event, and
// one in another database of the cluster.
func (c *latency) holdOpen(ctx context.Context, n int) error {
	time.Sleep(c.pause(openAfter))
	here, err := pgx.Connect(ctx, c.dsn)
	if err != nil {
		return err
	}
	defer here.Close(ctx)
	there, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return err
	}
	defer there.Close(ctx)
	other, err := there.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Rollback(ctx) }()
	if _, err := other.Exec(ctx, "create table bench_open ()"); err != nil {
		return err
	}
	tx, err := here.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := c.emit(ctx, tx, n); err != nil {
		return err
	}
	time.Sleep(c.duration)
	c.due[n] = time.Since(c.origin)
	err = tx.Commit(ctx)
	c.acked[n] = time.Since(c.origin)
	return err
}

func (c *latency) Check(ctx context.Context) error {
	if c.strict {
		if err := c.journal.Balance().Err(); err != nil {
			return err
		}
	} else if lost := c.journal.Balance().Lost; lost != 0 {
		return fmt.Errorf("%d events not handled %s after the last commit", lost, drain)
	}
	return c.stream.Verify(ctx)
}

// Figures are in milliseconds. What the handler saw before the emitter heard of its commit took
// no time.
func (c *latency) Figures() map[string]float64 {
	var waits, sinceDue []float64
	for n := range c.began {
		if c.began[n] != 0 {
			waits = append(waits, max(0, (c.began[n]-c.acked[n]).Seconds()*1000))
			sinceDue = append(sinceDue, (c.began[n]-c.due[n]).Seconds()*1000)
		}
	}
	slices.Sort(waits)
	slices.Sort(sinceDue)
	at := trial.Percentile[float64]
	f := figures(c.journal.Balance())
	f[p50Figure], f[p95Figure], f[p99Figure], f[maxFigure] = at(waits, 0.5), at(waits, 0.95), at(waits, 0.99), at(waits, 1)
	f[dueFigure] = at(sinceDue, 0.99)
	return f
}

func (c *latency) Clean(ctx context.Context) error {
	err := c.stream.Stop(ctx)
	for _, conn := range c.conns {
		_ = conn.Close(ctx)
	}
	c.conns = nil
	return err
}
