package kafka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "events"

// broker starts a cluster of one broker with a topic of so many partitions.
func broker(t testing.TB, partitions int32, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

func dial(t testing.TB, o kafka.Options) *kafka.Connection {
	t.Helper()
	connection, err := kafka.Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func target(t testing.TB, o kafka.Options) *kafka.Sink {
	t.Helper()
	s, err := dial(t, o).Sink(topic, sink.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// delivery makes a delivery with this number and key, and a payload of size bytes that does not compress.
func delivery(n int, key string, size int) sink.Delivery {
	noise := make([]byte, size)
	state := uint32(n + 1)
	for i := range noise {
		state = state*1664525 + 1013904223
		noise[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[state>>26]
	}
	return sink.Delivery{Route: "r", Attempt: 1, Epoch: 7, Event: tidemark.Event{
		ID: id(n), Seq: int64(n), Domain: "shop", Type: "invoice.paid", Key: key, Actor: "clerk",
		Payload: json.RawMessage(fmt.Sprintf(`{"n": %d, "noise": %q}`, n, noise)),
	}}
}

func id(n int) string { return fmt.Sprintf("0199f3a2-7c1e-7d4a-9b1f-%012d", n) }

// batch makes deliveries numbered from 1. key returns the key for a number.
func batch(size int, key func(n int) string) []sink.Delivery {
	var list []sink.Delivery
	for n := 1; n <= size; n++ {
		list = append(list, delivery(n, key(n), 10))
	}
	return list
}

func oneKey(int) string { return "k" }

func keys(n int) string { return fmt.Sprintf("k%d", n%7) }

// outcomes counts the results by outcome and code, as in "9 delivered, 1 permanent too_large".
func outcomes(results []sink.Result) map[string]int {
	got := map[string]int{}
	for _, r := range results {
		name := map[sink.Status]string{sink.Delivered: "delivered", sink.Retry: "retry", sink.Permanent: "permanent", sink.Unknown: "unknown"}[r.Status]
		if r.Code != "" {
			name += " " + r.Code
		}
		if r.Refused {
			name += " refused"
		}
		got[name]++
	}
	return got
}

// stored returns the records of the topic, partition by partition.
func stored(t testing.TB, addresses []string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addresses...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
	var records []*kgo.Record
	for int64(len(records)) < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		records = append(records, fetches.Records()...)
	}
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return int(a.Partition - b.Partition) })
	return records
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// arrived returns the ids of the records, in order.
func arrived(records []*kgo.Record) []string {
	var ids []string
	for _, r := range records {
		ids = append(ids, header(r, "tidemark-event-id"))
	}
	return ids
}

// number returns the number of the record's delivery.
func number(r *kgo.Record) int {
	id := header(r, "tidemark-event-id")
	n, _ := strconv.Atoi(id[strings.LastIndex(id, "-")+1:])
	return n
}

// holds reports whether a produce request contains the text.
func holds(request kmsg.Request, text string) bool {
	for _, topic := range request.(*kmsg.ProduceRequest).Topics {
		for _, partition := range topic.Partitions {
			var b kmsg.RecordBatch
			if b.ReadFrom(partition.Records) != nil {
				continue
			}
			records, err := kgo.DefaultDecompressor().Decompress(b.Records, kgo.CompressionCodecType(b.Attributes&7))
			if err == nil && bytes.Contains(records, []byte(text)) {
				return true
			}
		}
	}
	return false
}
