package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the brokers carry.
const (
	subject = "units.applied"
	topic   = "units"
)

const brokerStart = 10 * time.Second

// A natsBroker is a NATS server with JetStream in this process, and a consumer of its stream.
type natsBroker struct {
	url     string
	journal *journal

	server *server.Server
	dir    string
	conn   *nats.Conn
}

// newNATS returns one that has to be closed, also with an error.
func newNATS(ctx context.Context) (*natsBroker, error) {
	n := &natsBroker{journal: newJournal()}
	if err := n.start(ctx); err != nil {
		return n, fmt.Errorf("NATS: %w", err)
	}
	return n, nil
}

func (n *natsBroker) start(ctx context.Context) (err error) {
	if n.dir, err = os.MkdirTemp("", "tidemark-demo-nats-"); err != nil {
		return err
	}
	n.server, err = server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: n.dir, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 512 << 20,
	})
	if err != nil {
		return err
	}
	n.server.Start()
	if !n.server.ReadyForConnections(brokerStart) {
		return errors.New("the server does not answer")
	}
	n.url = n.server.ClientURL()
	if n.conn, err = nats.Connect(n.url); err != nil {
		return err
	}
	return n.consume(ctx)
}

func (n *natsBroker) consume(ctx context.Context) error {
	stream, err := jetstream.New(n.conn)
	if err != nil {
		return err
	}
	if _, err := stream.CreateStream(ctx, jetstream.StreamConfig{Name: "units", Subjects: []string{"units.>"}}); err != nil {
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, "units", jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) {
		if got, err := read(m.Data()); err == nil {
			n.journal.add(got)
		}
	})
	return err
}

func (n *natsBroker) close() error {
	if n.conn != nil {
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
	}
	return os.RemoveAll(n.dir)
}

// A kafkaBroker is a broker that speaks Kafka's protocol in this process, and a consumer of its topic.
type kafkaBroker struct {
	addresses []string
	journal   *journal

	cluster  *kfake.Cluster
	client   *kgo.Client
	consumer sync.WaitGroup
}

func newKafka(ctx context.Context) (*kafkaBroker, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, topic)) // it listens on 127.0.0.1
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	k := &kafkaBroker{addresses: cluster.ListenAddrs(), journal: newJournal(), cluster: cluster}
	k.client, err = kgo.NewClient(kgo.SeedBrokers(k.addresses...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		cluster.Close()
		return nil, fmt.Errorf("kafka: %w", err)
	}
	ctx = context.WithoutCancel(ctx) // until the client is closed
	k.consumer.Go(func() {
		for {
			fetches := k.client.PollFetches(ctx)
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if got, err := read(r.Value); err == nil {
					k.journal.add(got)
				}
			})
		}
	})
	return k, nil
}

func (k *kafkaBroker) close() {
	k.client.Close()
	k.consumer.Wait()
	k.cluster.Close()
}
