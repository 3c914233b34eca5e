package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

func manyKeys(n int) string { return fmt.Sprint(n % 97) }

// The sink keeps its promises with Apache Kafka itself. One node serves all cases, one after the other.
func TestRealKafka(t *testing.T) {
	t.Parallel()
	node := testkafka.New(t)
	addresses := []string{node.Address()}
	if err := node.CreateTopic(t.Context(), topic, 6); err != nil {
		t.Fatal(err)
	}

	t.Run("delivers in order per key", func(t *testing.T) {
		s := target(t, kafka.Options{Brokers: addresses})
		delivered := map[string]bool{}
		for list := batch(5000, manyKeys); len(list) > 0; list = list[min(len(list), s.Limits().Batch):] {
			now := list[:min(len(list), s.Limits().Batch)]
			if left := undelivered(t, now, s.Deliver(t.Context(), now), delivered); len(left) != 0 {
				t.Fatalf("%d of %d are not delivered", len(left), len(now))
			}
		}
		records := stored(t, addresses)
		if len(records) != 5000 {
			t.Errorf("%d records", len(records))
		}
		wantOrder(t, records, delivered)
		// A broker takes numbered batches only from a producer that waits for all copies (acks=all).
		if records[0].ProducerID < 0 {
			t.Error("the producer is not idempotent")
		}
		if header(records[0], "content-type") != "application/json" || header(records[0], "tidemark-epoch") != "7" {
			t.Errorf("headers %v", records[0].Headers)
		}
	})

	t.Run("passes marks on", func(t *testing.T) { marksAreHeard(t, addresses) })
	t.Run("goes away and comes back", func(t *testing.T) { awayAndBack(t, node) })
}

// awayAndBack kills the node while a batch is under way, and delivers what is left when it is back.
func awayAndBack(t *testing.T, node *testkafka.Node) {
	addresses := []string{node.Address()}
	s := target(t, kafka.Options{Brokers: addresses, Timeout: 2 * time.Second})
	delivered := map[string]bool{}
	left := batch(8000, manyKeys)[5000:]
	killed, failed := make(chan struct{}), false
	for passes := 0; len(left) > 0; passes++ {
		if passes == 2 {
			go func() { defer close(killed); node.Kill() }()
		}
		if passes > 100 {
			t.Fatalf("%d are not delivered", len(left))
		}
		now := left[:min(len(left), 300)]
		again := undelivered(t, now, s.Deliver(t.Context(), now), delivered)
		left = append(again, left[len(now):]...)
		if len(again) > 0 && !failed {
			failed = true
			<-killed
			if err := node.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !failed {
		t.Error("every delivery succeeded, although the node was killed")
	}
	wantOrder(t, stored(t, addresses), delivered)
}
