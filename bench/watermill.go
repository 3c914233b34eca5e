package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
)

// watermillSQL consumes messages one by one from Watermill's SQL subscriber, which reads and
// acknowledges them 1,000 at a time.
type watermillSQL struct {
	*env
	items      int
	subscriber *wsql.Subscriber
	received   int
	ordered    bool
}

func (c *watermillSQL) Name() string { return "Watermill SQL (batch 1000)" }

func (c *watermillSQL) Setup(ctx context.Context) error {
	var err error
	c.subscriber, err = wsql.NewSubscriber(wsql.BeginnerFromPgx(c.pool), wsql.SubscriberConfig{
		ConsumerGroup:    "bench",
		PollInterval:     time.Millisecond,
		SchemaAdapter:    wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 1000, GeneratePayloadType: func(string) string { return "JSONB" }},
		OffsetsAdapter:   wsql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	if err := c.subscriber.SubscribeInitialize("bench"); err != nil {
		return err
	}
	if err := c.exec(ctx, "truncate watermill_bench, watermill_offsets_bench"); err != nil {
		return err
	}
	const batch = 1000
	for first := 1; first <= c.items; first += batch {
		// The number of a message stands for its uuid, so that the order can be checked.
		if _, err := c.conn.Exec(ctx, `
			insert into watermill_bench (uuid, payload, metadata, transaction_id)
			select lpad(n::text, 36, '0'), `+payload+`, '{}', pg_current_xact_id()
			  from generate_series($1::int8, $2::int8) n`, first, min(first+batch-1, c.items)); err != nil {
			return err
		}
	}
	return c.vacuum(ctx, "watermill_bench", "watermill_offsets_bench")
}

// Run ends when the subscriber is closed: only then is the last batch acknowledged.
func (c *watermillSQL) Run(ctx context.Context) (int, error) {
	messages, err := c.subscriber.Subscribe(ctx, "bench")
	if err != nil {
		return 0, err
	}
	c.received, c.ordered = 0, true
	for m := range messages {
		c.received++
		n, _ := strconv.Atoi(m.UUID)
		c.ordered = c.ordered && n == c.received
		m.Ack()
		if c.received == c.items {
			break
		}
	}
	if err := c.acknowledged(ctx); err != nil {
		return 0, err
	}
	return c.received, c.subscriber.Close()
}

// acknowledged waits until the offset of the last message is committed.
func (c *watermillSQL) acknowledged(ctx context.Context) error {
	for {
		n, err := c.count(ctx, "select coalesce(max(offset_acked), 0) - (select min(\"offset\") from watermill_bench) + 1 from watermill_offsets_bench")
		if err != nil || n >= c.items {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *watermillSQL) Check(context.Context) error {
	if c.received != c.items || !c.ordered {
		return fmt.Errorf("received %d messages of %d, in order: %t", c.received, c.items, c.ordered)
	}
	return nil
}

func (c *watermillSQL) Clean(ctx context.Context) error {
	return c.exec(ctx, "truncate watermill_bench, watermill_offsets_bench")
}
