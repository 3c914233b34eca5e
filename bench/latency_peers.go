package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverStream is River with its fetch cooldown and poll interval at their minimum.
type riverStream struct {
	*env
	client *river.Client[pgx.Tx]
}

type riverEvent struct {
	Payload json.RawMessage `json:"payload"`
}

func (riverEvent) Kind() string { return "bench_event" }

type riverHandler struct {
	river.WorkerDefaults[riverEvent]
	handle func([]byte)
}

func (w riverHandler) Work(_ context.Context, job *river.Job[riverEvent]) error {
	w.handle(job.Args.Payload)
	return nil
}

func (s *riverStream) Prepare(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if err := s.exec(ctx, "truncate river_job"); err != nil {
		return err
	}
	return s.vacuum(ctx, "river_job")
}

func (s *riverStream) Start(ctx context.Context, handle func([]byte)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, riverHandler{handle: handle})
	var err error
	s.client, err = river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: river.FetchPollIntervalMin,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers:           workers,
	})
	if err != nil {
		return err
	}
	return s.client.Start(ctx)
}

// Emit takes a connection of River's pool where the job is no part of a transaction.
func (s *riverStream) Emit(ctx context.Context, db querier, _ int, _, payload string) (err error) {
	if tx, ok := db.(pgx.Tx); ok {
		_, err = s.client.InsertTx(ctx, tx, riverEvent{json.RawMessage(payload)}, nil)
	} else {
		_, err = s.client.Insert(ctx, riverEvent{json.RawMessage(payload)}, nil)
	}
	return err
}

func (s *riverStream) Stop(ctx context.Context) error {
	if s.client == nil {
		return nil
	}
	err := s.client.Stop(ctx)
	s.client = nil
	return errors.Join(err, s.exec(ctx, "truncate river_job"))
}

func (s *riverStream) Verify(context.Context) error { return nil }

// watermillStream is Watermill's subscriber with a poll interval of 10 ms.
type watermillStream struct {
	*env
	subscriber *wsql.Subscriber
	ended      chan struct{}
}

func (s *watermillStream) Prepare(ctx context.Context) error {
	var err error
	s.subscriber, err = wsql.NewSubscriber(wsql.BeginnerFromPgx(s.pool), wsql.SubscriberConfig{
		ConsumerGroup:    "bench",
		PollInterval:     10 * time.Millisecond,
		SchemaAdapter:    wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 1000, GeneratePayloadType: func(string) string { return "JSONB" }},
		OffsetsAdapter:   wsql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	if err := s.subscriber.SubscribeInitialize("bench"); err != nil {
		return err
	}
	if err := s.exec(ctx, "truncate watermill_bench, watermill_offsets_bench"); err != nil {
		return err
	}
	return s.vacuum(ctx, "watermill_bench", "watermill_offsets_bench")
}

func (s *watermillStream) Start(ctx context.Context, handle func([]byte)) error {
	messages, err := s.subscriber.Subscribe(ctx, "bench")
	if err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		for m := range messages {
			handle(m.Payload)
			m.Ack()
		}
	}()
	return nil
}

func (s *watermillStream) Emit(ctx context.Context, db querier, n int, _, payload string) error {
	_, err := db.Exec(ctx, `
		insert into watermill_bench (uuid, payload, metadata, transaction_id)
		values (lpad($1::int8::text, 36, '0'), $2::jsonb, '{}', pg_current_xact_id())`, n, payload)
	return err
}

func (s *watermillStream) Stop(ctx context.Context) error {
	if s.ended == nil {
		return nil
	}
	err := s.subscriber.Close()
	<-s.ended
	s.ended = nil
	return errors.Join(err, s.exec(ctx, "truncate watermill_bench, watermill_offsets_bench"))
}

func (s *watermillStream) Verify(context.Context) error { return nil }
