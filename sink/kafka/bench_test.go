package kafka_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// BenchmarkDeliver reports records per second through the protocol and the network stack, to
// a broker in this process that stores nothing.
func BenchmarkDeliver(b *testing.B) {
	for _, format := range []sink.Format{sink.CloudEvents, sink.CloudEventsBinary, sink.JSON} {
		for _, senders := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/%d", format, senders), func(b *testing.B) { benchmarkDeliver(b, format, senders) })
		}
	}
}

func benchmarkDeliver(b *testing.B, format sink.Format, senders int) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, "events"), kfake.BlackholeProduce())
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	connection, err := kafka.Dial(kafka.Options{Brokers: cluster.ListenAddrs()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	target, err := connection.Sink("events", format)
	if err != nil {
		b.Fatal(err)
	}
	batch := make([]sink.Delivery, target.Limits().Batch)
	for i := range batch {
		batch[i] = sink.Delivery{Route: "r", Attempt: 1, Epoch: 1, Event: tidemark.Event{
			ID: fmt.Sprintf("0199f3a2-7c1e-7d4a-9b1f-%012d", i), Seq: int64(i + 1), Domain: "shop", Type: "invoice.paid",
			Key: fmt.Sprintf("customer-%d", i%500), Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo, Actor: "clerk",
			Payload: json.RawMessage(`{"total": 12.50, "text": "` + strings.Repeat("x", 200) + `"}`),
		}}
	}
	b.ReportAllocs()
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range senders {
		wg.Go(func() {
			for range work {
				for _, r := range target.Deliver(b.Context(), batch) {
					if r.Status != sink.Delivered {
						b.Errorf("got %+v", r)
						return
					}
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "records/s")
}
