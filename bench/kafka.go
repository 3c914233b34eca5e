package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

const (
	drainSuffix = ", backlog"
	liveSuffix  = ", 1,000/s"
	liveRate    = 1000

	moverFigure  = "own CPU s/million"
	serverFigure = "PostgreSQL CPU s/million"
	brokerFigure = "Kafka CPU s/million"
	memoryFigure = "own peak MB"
)

var wKafka = workload{
	number:    "kafka",
	title:     "to Apache Kafka: a backlog, and from a commit to a consumer",
	unit:      "event",
	baselines: []string{relayMover + drainSuffix},
	columns: []string{
		moverFigure, serverFigure, brokerFigure, memoryFigure,
		p50Figure, p95Figure, p99Figure, maxFigure, lostFigure, twiceFigure, disorderFigure,
	},
	contestants: func(e *env) (all []contestant) {
		kafka := &realKafka{env: e}
		e.atEnd = append(e.atEnd, kafka.stop)
		for _, name := range []string{relayMover, tidemarkMover, debeziumMover} {
			all = append(all, &kafkaDrain{env: e, items: e.scaled(400_000), mover: newMover(e, kafka, name)})
		}
		// The records of the relay and of Debezium are the payload alone.
		alone := newMover(e, kafka, tidemarkMover)
		alone.format = "payload"
		all = append(all, &kafkaDrain{env: e, items: e.scaled(400_000), mover: alone})
		for _, name := range []string{relayMover, tidemarkMover, debeziumMover} {
			all = append(all, &latency{
				env: e, name: name + liveSuffix, rate: liveRate, strict: name == tidemarkMover, stream: &kafkaStream{mover: newMover(e, kafka, name)},
			})
		}
		return all
	},
	reach: func(rs results) (goals []goal) {
		goals = []goal{
			atLeast(0.85, rs.quotient(payloadMover+drainSuffix, relayMover+drainSuffix)),
			atLeast(0.85, rs.quotient(tidemarkMover+drainSuffix, relayMover+drainSuffix)),
			atLeast(3, rs.quotient(tidemarkMover+drainSuffix, debeziumMover+drainSuffix)),
			atMost(3, rs.figure(p50Figure, tidemarkMover+liveSuffix)),
			atMost(10, rs.figure(p99Figure, tidemarkMover+liveSuffix)),
		}
		for _, what := range []string{moverFigure, serverFigure, brokerFigure, memoryFigure} {
			v, ok := rs.between(tidemarkMover+drainSuffix, debeziumMover+drainSuffix, func(s, base sample) float64 {
				return s.figures[what] / base.figures[what]
			})
			goals = append(goals, note(figure{what + ", " + tidemarkMover + " ÷ " + debeziumMover, v, ok}))
		}
		return goals
	},
}

// realKafka is one node, which all contestants share. Each run has a topic of its own.
type realKafka struct {
	*env
	node   *testkafka.Node
	client *kgo.Client
	topics int
}

func (k *realKafka) start(ctx context.Context) (err error) {
	if k.node != nil {
		return nil
	}
	jars := os.Getenv(testkafka.JarsVariable)
	if jars == "" {
		return skipped("no " + testkafka.JarsVariable + ": run make bench-kafka")
	}
	if k.node, err = testkafka.Start(ctx, jars); err != nil {
		return err
	}
	k.client, err = kgo.NewClient(kgo.SeedBrokers(k.node.Address()))
	return err
}

func (k *realKafka) stop() {
	if k.client != nil {
		k.client.Close()
	}
	if k.node != nil {
		_ = k.node.Stop()
	}
}

func (k *realKafka) newTopic(ctx context.Context) (name string, err error) {
	k.topics++
	name = fmt.Sprintf("events-%d", k.topics)
	return name, k.node.CreateTopic(ctx, name, partitions)
}

// holds waits until the topic has so many records.
func (k *realKafka) holds(ctx context.Context, topic string, records int, within time.Duration) error {
	admin := kadm.NewClient(k.client)
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		var sum int64
		ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		if sum >= int64(records) {
			return nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("the topic has %d records of %d after %s", sum, records, within)
		}
	}
}
