package nats_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemarkhq/tidemark/sink"
	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
)

// BenchmarkDeliver reports messages per second into a stream in memory, of a server in this
// process, with a very short duplicate window.
func BenchmarkDeliver(b *testing.B) {
	s := start(b, nil)
	stream(b, client(b, s), func(c *jetstream.StreamConfig) {
		c.MaxMsgs, c.Duplicates = 10_000, 100_000_000
	})
	target := target(b, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	first := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		list := batch(first, target.Limits().Batch)
		first += len(list)
		b.StartTimer()
		for _, r := range target.Deliver(b.Context(), list) {
			if r.Status != sink.Delivered {
				b.Fatalf("got %+v", r)
			}
		}
	}
	b.ReportMetric(float64(first)/b.Elapsed().Seconds(), "messages/s")
}
