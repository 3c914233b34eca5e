package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// Whatever the brokers, the network and the caller do, the first arrivals of a key's events are in
// order, and every Delivered event has arrived.
func TestOrderUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			orderUnderFaults(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func orderUnderFaults(t *testing.T, random *rand.Rand) {
	var lost atomic.Int32
	cluster := broker(t, 3, kfake.NumBrokers(2), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return deafListener{l, &lost}, err
	}))
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), MaxRecordBytes: 2000})
	left := batch(1500, func(n int) string { return fmt.Sprint(n % 11) })
	delivered := map[string]bool{}
	for pass := 0; len(left) > 0; pass++ {
		if pass > 2000 {
			t.Fatal("not everything is delivered in time")
		}
		ctx, cancel := context.WithCancel(t.Context())
		disturb(cluster, &lost, random)
		stop := func() bool { return true }
		if random.IntN(4) == 0 {
			stop = time.AfterFunc(time.Duration(random.IntN(5000))*time.Microsecond, cancel).Stop
		}
		now := left[:min(len(left), 10+random.IntN(40))]
		results := s.Deliver(ctx, now)
		stop()
		cancel()
		left = append(undelivered(t, now, results, delivered), left[len(now):]...)
	}

	wantOrder(t, stored(t, cluster.ListenAddrs()), delivered)
}

// wantOrder checks that the first records of each key's events are in order, and that what was delivered is there.
func wantOrder(t *testing.T, records []*kgo.Record, delivered map[string]bool) {
	t.Helper()
	first := map[string]bool{}
	last := map[string]int{}
	for _, r := range records {
		if id := header(r, "tidemark-event-id"); !first[id] {
			first[id] = true
			if n := number(r); n < last[string(r.Key)] {
				t.Errorf("key %s: %d came first after %d", r.Key, n, last[string(r.Key)])
			}
			last[string(r.Key)] = number(r)
		}
	}
	for id := range delivered {
		if !first[id] {
			t.Errorf("%s was delivered and did not arrive", id)
		}
	}
}

// disturb makes a later request go wrong.
func disturb(cluster *kfake.Cluster, lost *atomic.Int32, random *rand.Rand) {
	faults := []*kerr.Error{
		kerr.TopicAuthorizationFailed, kerr.UnknownServerError, kerr.MessageTooLarge, kerr.InvalidRecord,
		kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition, kerr.TopicAuthorizationFailed,
	}
	switch n := random.IntN(10); n {
	case 8:
		lost.Store(1)
	case 9:
		cluster.ShufflePartitionLeaders()
	default:
		skip := int64(random.IntN(4))
		cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Err: faults[n], Partitions: []int32{random.Int32N(3)},
			When: func(kmsg.Request) bool { skip--; return skip < 0 },
		})
	}
}

// undelivered returns the deliveries to send again.
func undelivered(t *testing.T, now []sink.Delivery, results []sink.Result, delivered map[string]bool) []sink.Delivery {
	t.Helper()
	var again []sink.Delivery
	failed := map[string]bool{}
	for i, r := range results {
		e := now[i].Event
		switch r.Status {
		case sink.Delivered:
			if failed[e.Key] {
				t.Errorf("%s was delivered, and one of its key before it was not", e.ID)
			}
			delivered[e.ID] = true
		case sink.Permanent: // a fault that was meant for one, and found it alone
		case sink.Retry, sink.Unknown:
			failed[e.Key] = true
			again = append(again, now[i])
		default:
			t.Fatalf("%s has no outcome", e.ID)
		}
	}
	return again
}
