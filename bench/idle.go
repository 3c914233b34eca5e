package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/config"
)

const (
	idleName         = "100 workers asleep"
	idleOutboxes     = 50
	idleTables       = 50
	statementsFigure = "statements/s asleep"
	asleepFigure     = "CPU % of a core asleep"
	fallAsleep       = time.Minute // at most
)

// idle is `tidemark run` with nothing to do: workers of the log and cursors of tables, wake-up on. Its statements are
// counted between it and the server.
type idle struct {
	*env
	counter  *statementCounter
	routing  *routing
	rate     float64
	cpuShare float64
}

func (c *idle) Name() string { return idleName }

func (c *idle) Figures() map[string]float64 {
	return map[string]float64{statementsFigure: c.rate, asleepFigure: c.cpuShare}
}

func (c *idle) Setup(ctx context.Context) error {
	if err := c.emptyWorld(ctx); err != nil {
		return err
	}
	if err := c.exec(ctx, "create function bench.idle_take(rows anyarray) returns void language sql as 'select'"); err != nil {
		return err
	}
	for n := range idleTables {
		safety := []string{"sequence", "clock"}[n%2]
		if err := c.exec(ctx, fmt.Sprintf(`
			create table bench.idle%[1]d (id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp());
			create index on bench.idle%[1]d (at, id);
			insert into bench.idle%[1]d (at) select clock_timestamp() from generate_series(1, 1000);
			select tidemark.source_set('idle%[1]d', '{"table": "bench.idle%[1]d", "id_column": "id", "timestamp_column": "at", "safety": "%[2]s"}');
			select tidemark.worker_set('idle%[1]d', '{"source": "table", "handler": "sql", "handler_ref": "bench.idle_take"}');
			select tidemark.worker_source_add('idle%[1]d', 'idle%[1]d', 'bench'), tidemark.gate_set('worker.idle%[1]d.enabled', true, 'bench')`, n, safety)); err != nil {
			return err
		}
	}
	for n := range idleOutboxes {
		if err := c.exec(ctx, fmt.Sprintf("select tidemark.worker_set('idle_log%[1]d'), tidemark.gate_set('worker.idle_log%[1]d.enabled', true, 'bench')", n)); err != nil {
			return err
		}
	}
	if err := c.setWakeUp(ctx, true); err != nil {
		return err
	}
	var err error
	if c.counter, err = newStatementCounter(c.dsn); err != nil {
		return err
	}
	c.routing, err = startRouting(ctx, c.env, func(k *config.Config) {
		k.Workers = nil
		k.Database.URL = config.NewSecret(c.counter.url)
	})
	if err != nil {
		return err
	}
	return c.asleep(ctx)
}

// asleep waits until all are: until there was less than a statement every half second for five.
func (c *idle) asleep(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < fallAsleep; {
		before := c.counter.statements.Load()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
		if c.counter.statements.Load()-before <= 10 {
			return nil
		}
	}
	return errors.New("they do not fall asleep")
}

func (c *idle) Run(ctx context.Context) (int, error) {
	cpu, statements, began := c.meter.cpu.total(), c.counter.statements.Load(), time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(max(c.duration, 30*time.Second)):
	}
	took := time.Since(began).Seconds()
	c.rate = float64(c.counter.statements.Load()-statements) / took
	c.cpuShare = 100 * (c.meter.cpu.total() - cpu).Seconds() / took
	return idleOutboxes + idleTables, nil
}

// Check wants all of them to have a lease and to have beaten, and a row and an event to be noticed.
func (c *idle) Check(ctx context.Context) error {
	if err := c.expect(ctx, "workers that live", idleOutboxes+idleTables, `
		select count(*) from tidemark.heartbeat where executor_id like 'idle%/%' and lease_owner is not null and last_beat_at > clock_timestamp() - interval '5 seconds'`); err != nil {
		return err
	}
	if err := c.exec(ctx, "insert into bench.idle0 default values; insert into bench.idle1 default values; select tidemark.emit('bench', 'type.0', '{}')"); err != nil {
		return err
	}
	for began := time.Now(); ; {
		n, err := c.count(ctx, `
			select count(*) from tidemark.worker_cursor where worker in ('idle0', 'idle1') and events_seen = 1001
			   or worker like 'idle\_log%' and watermark_id::bigint > 0`)
		if err != nil || n == 2+idleOutboxes {
			return err
		}
		if time.Since(began) > 10*time.Second {
			return fmt.Errorf("only %d of %d have noticed", n, 2+idleOutboxes)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *idle) Clean(ctx context.Context) error {
	err := c.routing.stop()
	c.routing = nil
	if c.counter != nil {
		c.counter.close()
		c.counter = nil
	}
	err = errors.Join(err, c.setWakeUp(ctx, false), c.emptyWorld(ctx), c.removeWorkers(ctx, "idle%"),
		c.exec(ctx, "delete from tidemark.heartbeat where executor_id like 'daemon/%'; delete from tidemark.source where source like 'idle%'; drop function if exists bench.idle_take(anyarray)"))
	for n := range idleTables {
		err = errors.Join(err, c.exec(ctx, fmt.Sprintf("drop table if exists bench.idle%d", n)))
	}
	return err
}

// A statementCounter stands between a program and the server, and counts the statements that pass.
type statementCounter struct {
	net.Listener
	url              string
	network, address string
	statements       atomic.Int64
	running          sync.WaitGroup
}

func newStatementCounter(dsn string) (*statementCounter, error) {
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c := &statementCounter{}
	c.network, c.address = pgconn.NetworkAddress(server.Host, server.Port)
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: c.Addr().String(), Path: "/" + server.Database, RawQuery: "sslmode=disable"}
	c.url = u.String()
	c.running.Go(c.serve)
	return c, nil
}

func (c *statementCounter) serve() {
	for {
		client, err := c.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(c.network, c.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		c.running.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		c.running.Go(func() { c.copy(server, client); _ = server.Close() })
	}
}

// copy passes on what a client says: a first message without a type, then a type, a length and the rest of it.
func (c *statementCounter) copy(to io.Writer, from io.Reader) {
	for head := make([]byte, 4); ; head = make([]byte, 5) {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		if head[0] == 'Q' || head[0] == 'E' {
			c.statements.Add(1)
		}
		if _, err := to.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[len(head)-4:]))-4); err != nil {
			return
		}
	}
}

func (c *statementCounter) close() {
	_ = c.Close()
	c.running.Wait()
}
