package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/trial"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

const (
	topicName  = "events"
	partitions = 6
)

func newBroker() (*kfake.Cluster, error) {
	return kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topicName))
}

// consumed reads the topic and wants every event once, those of a key in their order.
func consumed(ctx context.Context, brokers []string, topic string, items int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	var want, got int64
	ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
	j := trial.NewNumbers(items, keysInBacklog)
	for got < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d records of %d: %w", got, want, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			if n := number(r.Value); n != 0 { // 0 comes before the first, to see that all is ready
				j.Saw(n - 1)
			}
		})
	}
	return j.Balance().Err()
}

// bareTopic is the client of a topic without a database.
func bareTopic(e *env, name string, items, concurrency int) *bareSink {
	c := &bareSink{env: e, name: name, items: items, concurrency: concurrency}
	var broker *kfake.Cluster
	var connection *kafka.Connection
	c.open = func() (_ sink.Sink, err error) {
		if broker, err = newBroker(); err != nil {
			return nil, err
		}
		if connection, err = kafka.Dial(kafka.Options{Brokers: broker.ListenAddrs()}); err != nil {
			return nil, err
		}
		return connection.Sink(topicName, sink.CloudEvents)
	}
	c.check = func(ctx context.Context) error { return consumed(ctx, broker.ListenAddrs(), topicName, items) }
	c.close = func() (err error) {
		if connection != nil {
			err = connection.Close()
		}
		if broker != nil {
			broker.Close()
		}
		broker, connection = nil, nil
		return err
	}
	return c
}

// topic delivers a backlog to Kafka by the daemon, with evidence.
type topic struct {
	*env
	name        string
	items       int
	concurrency int

	broker  *kfake.Cluster
	routing *routing
}

func (c *topic) Name() string { return c.name }

func (c *topic) Setup(ctx context.Context) error {
	if err := c.backlog.seed(ctx, c.items, typesInBacklog); err != nil {
		return err
	}
	if err := c.resetWorker(ctx); err != nil {
		return err
	}
	var err error
	if c.broker, err = newBroker(); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, `
		insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, enabled, dry_run, ordering, concurrency)
		values ('topic', 'bench', 'bench', '*', 'kafka', $1, true, false, 'key', $2)`, topicName, c.concurrency); err != nil {
		return err
	}
	return c.vacuum(ctx, "tidemark.outbound_route", "tidemark.worker_cursor", "tidemark.heartbeat", "tidemark.setting", "tidemark.pending", "tidemark.attempt")
}

func (c *topic) Run(ctx context.Context) (int, error) {
	var err error
	if c.routing, err = startRouting(ctx, c.env, func(o *config.Config) {
		o.Connections = map[string]config.Connection{"bench": {Kind: "kafka", Brokers: c.broker.ListenAddrs()}}
	}); err != nil {
		return 0, err
	}
	return c.items, c.routing.settled(ctx, c.items, "not exists (select from tidemark.pending)")
}

func (c *topic) Check(ctx context.Context) error {
	return errors.Join(c.verified(ctx), consumed(ctx, c.broker.ListenAddrs(), topicName, c.items))
}

func (c *topic) Clean(ctx context.Context) error {
	err := c.routing.stop()
	c.routing = nil
	if c.broker != nil {
		c.broker.Close()
		c.broker = nil
	}
	if err != nil {
		return err
	}
	return c.resetWorker(ctx)
}
