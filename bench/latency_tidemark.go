package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

const emitOne = "select tidemark.emit('bench', 'type.0', $1::jsonb, $2)"

// setWakeUp opens or closes the gate behind which workers are woken by notifications.
func (e *env) setWakeUp(ctx context.Context, open bool) error {
	return e.exec(ctx, "select tidemark.gate_set('notify.bridge_enabled', "+strconv.FormatBool(open)+", 'bench')")
}

// emptyWorld is a log without events, and worker bench without routes.
func (e *env) emptyWorld(ctx context.Context) error {
	e.backlog.events = 0
	return errors.Join(e.emptyLog(ctx), e.resetWorker(ctx),
		e.vacuum(ctx, "tidemark.outbox", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.outbound_route", "tidemark.setting"))
}

// daemonStream delivers to a sink in this process by the loop of `tidemark run`.
type daemonStream struct {
	*env
	wake bool
	stop func() error
}

func (s *daemonStream) Prepare(ctx context.Context) error {
	if err := s.emptyWorld(ctx); err != nil {
		return err
	}
	if err := s.exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, target_kind, target_ref, enabled, dry_run, ordering)
		values ('handler', 'bench', 'bench', 'stdout', 'handler', true, false, 'key')`); err != nil {
		return err
	}
	return s.setWakeUp(ctx, s.wake)
}

// Start sets the loop up as internal/daemon does, but for the target.
func (s *daemonStream) Start(ctx context.Context, handle func([]byte)) error {
	config, err := pgxpool.ParseConfig(s.dsn)
	if err != nil {
		return err
	}
	config.MaxConns = 10
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	owner := "bench/" + strconv.FormatInt(time.Now().UnixNano(), 36)
	bridge := worker.NewBridge(func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.dsn) }, log)
	poller := worker.NewPoller(pool, owner, 30*time.Second, time.Second, log, worker.Besides{Registry: bridge.Tell})
	permit := &worker.Permit{}
	handler := deliver.New(opener{handle}, permit, silent{})
	w := worker.New(pool, worker.Options{
		Worker: "bench", Owner: owner, Lease: 30 * time.Second,
		PollMin: 10 * time.Millisecond, PollMax: time.Second, StopTime: 20 * time.Second,
		Wake: bridge.Waker(), Poll: poller, Log: log,
	}, worker.Log{MaxBatch: 5000, Targets: handler, Permit: permit})
	ctx, cancel := context.WithCancel(ctx)
	ended, down := make(chan error, 1), make(chan struct{})
	var aside sync.WaitGroup
	aside.Go(func() { poller.Run(ctx) })
	go func() { ended <- w.Run(ctx) }()
	go func() {
		defer close(down)
		bridge.Run(ctx)
	}()
	s.stop = func() error {
		cancel()
		err := <-ended
		<-down
		aside.Wait()
		pool.Close()
		return errors.Join(err, handler.Close())
	}
	return nil
}

func (s *daemonStream) Emit(ctx context.Context, db querier, _ int, key, payload string) error {
	_, err := db.Exec(ctx, emitOne, payload, key)
	return err
}

func (s *daemonStream) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	err := s.stop()
	s.stop = nil
	return errors.Join(err, s.setWakeUp(ctx, false), s.emptyWorld(ctx))
}

// Verify gives the loop the time to settle what it has delivered last.
func (s *daemonStream) Verify(ctx context.Context) error { return s.verifiedSoon(ctx, "bench") }

func (e *env) verifiedSoon(ctx context.Context, worker string) error {
	for range 1000 {
		n, err := e.count(ctx, `
			select count(*) from tidemark.worker_cursor c
			 where c.worker = $1 and c.watermark_id::bigint >= (select max(seq) from tidemark.outbox)
			   and not exists (select from tidemark.pending)`, worker)
		if err != nil {
			return err
		}
		if n == 1 {
			return e.verified(ctx)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("not settled after five seconds")
}

type silent struct{}

func (silent) Delivered(string, []sink.Delivery, []sink.Result, time.Duration) {}
func (silent) Paused(string, bool)                                             {}

// opener opens the one target in this process.
type opener struct{ handle func([]byte) }

func (o opener) Open(store.Route) (sink.Sink, error) { return target{o.handle}, nil }

type target struct{ handle func([]byte) }

func (t target) Deliver(_ context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	for i := range batch {
		t.handle(batch[i].Event.Payload)
		results[i].Status = sink.Delivered
	}
	return results
}

func (target) Limits() sink.Limits { return sink.Limits{Batch: 1} }
func (target) Close() error        { return nil }

// clientStream handles events by a function of a Go program, in the transaction that records it.
type clientStream struct {
	*env
	wake bool
	stop func() error
}

const goWorker = "bench_go"

func (s *clientStream) Prepare(ctx context.Context) error {
	if err := s.emptyWorld(ctx); err != nil {
		return err
	}
	if err := s.exec(ctx, `
		select tidemark.handlers_register('`+goWorker+`', '{bench/*}');
		update tidemark.outbound_route set enabled = true, dry_run = false, ordering = 'key' where worker = '`+goWorker+`';
		select tidemark.gate_set('worker.`+goWorker+`.enabled', true, 'bench')`); err != nil {
		return err
	}
	return s.setWakeUp(ctx, s.wake)
}

func (s *clientStream) Start(ctx context.Context, handle func([]byte)) error {
	pool, err := newPool(ctx, s.dsn)
	if err != nil {
		return err
	}
	client, err := consumer.New(pool, consumer.Config{Worker: goWorker, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	client.Handle("bench/*", func(_ context.Context, _ pgx.Tx, e tidemark.Event) error {
		handle(e.Payload)
		return nil
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	s.stop = func() error {
		cancel()
		defer pool.Close()
		return <-ended
	}
	return nil
}

func (s *clientStream) Emit(ctx context.Context, db querier, _ int, key, payload string) error {
	_, err := db.Exec(ctx, emitOne, payload, key)
	return err
}

func (s *clientStream) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	err := s.stop()
	s.stop = nil
	return errors.Join(err, s.setWakeUp(ctx, false), s.emptyWorld(ctx), s.resetCursor(ctx, goWorker))
}

func (s *clientStream) Verify(ctx context.Context) error { return s.verifiedSoon(ctx, goWorker) }
