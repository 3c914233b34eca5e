package kafka_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestRecord(t *testing.T) {
	t.Parallel()
	ours := map[string]string{
		"tidemark-event-id": id(1), "tidemark-route": "r", "tidemark-epoch": "7", "tidemark-attempt": "1",
		"tidemark-replay": "true", "traceparent": traceparent,
	}
	attributes := map[string]string{
		"ce_specversion": "1.0", "ce_id": id(1), "ce_source": "/tidemark/shop", "ce_type": "invoice.paid", "ce_subject": "k",
		"ce_partitionkey": "k", "ce_sequence": "0000000000000000001", "ce_domain": "shop", "ce_actor": "clerk",
		"ce_traceparent": traceparent, "ce_replay": "true",
	}
	for format, contentType := range map[sink.Format]string{
		sink.CloudEvents: "application/cloudevents+json", sink.CloudEventsBinary: "application/json", sink.JSON: "application/json",
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			cluster := broker(t, 1)
			s, err := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()}).Sink(topic, format)
			if err != nil {
				t.Fatal(err)
			}
			d := delivery(1, "k", 10)
			d.Event.Trace, d.Replay = traceparent, true
			if got := s.Deliver(t.Context(), []sink.Delivery{d}); got[0] != (sink.Result{Status: sink.Delivered}) {
				t.Fatal(got)
			}
			record := stored(t, cluster.ListenAddrs())[0]
			encoded, _ := sink.Encode(format, d)
			if !bytes.Equal(record.Value, encoded.Body) || string(record.Key) != "k" {
				t.Errorf("key %q, value %s", record.Key, record.Value)
			}
			want := map[string]string{"content-type": contentType}
			for name, value := range ours {
				want[name] = value
			}
			if format == sink.CloudEventsBinary {
				for name, value := range attributes {
					want[name] = value
				}
			}
			got := map[string]string{}
			for _, h := range record.Headers {
				got[h.Key] += string(h.Value)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoKeyNoReplay(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1)
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	s.Deliver(t.Context(), []sink.Delivery{delivery(1, "", 10)})
	if r := stored(t, cluster.ListenAddrs())[0]; r.Key != nil || header(r, "tidemark-replay") != "" {
		t.Errorf("key %q, headers %v", r.Key, r.Headers)
	}
}

// Records that fit into one request are sent in one.
func TestRequests(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1)
	sent := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	for range 3 {
		before := sent.Hits()
		if got := outcomes(s.Deliver(t.Context(), batch(200, oneKey))); got["delivered"] != 200 {
			t.Fatal(got)
		}
		if got := sent.Hits() - before; got != 1 {
			t.Errorf("it went in %d", got)
		}
	}
}

func TestTooLargeHere(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 3)
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), MaxRecordBytes: 4096})
	list := batch(100, keys)
	list[50] = delivery(51, keys(51), 5000)
	results := s.Deliver(t.Context(), list)
	if got := outcomes(results); got["delivered"] != 99 || results[50].Code != kafka.TooLarge || results[50].Status != sink.Permanent {
		t.Errorf("got %v, %+v", got, results[50])
	}
	if got := len(stored(t, cluster.ListenAddrs())); got != 99 {
		t.Errorf("%d arrived", got)
	}
}

// The broker refuses a batch because of one record. The other records are delivered, once
// and in order, although several batches are under way at a time.
func TestRefusedByTheBroker(t *testing.T) {
	t.Parallel()
	poison := map[int]bool{101: true, 117: true, 118: true, 400: true, 877: true, 1100: true}
	for code, fault := range map[string]kfake.Fault{
		kafka.TooLarge:      {Err: kerr.MessageTooLarge},
		kafka.InvalidRecord: {Err: kerr.InvalidRecord},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t, 2)
			fault.Keys, fault.Count = []kmsg.Key{kmsg.Produce}, -1
			fault.When = func(request kmsg.Request) bool { return holds(request, "poison") }
			cluster.Fault(fault)
			s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), MaxRecordBytes: 20_000})
			// Once the broker knows the producer, up to five batches of a partition are under way
			// at a time.
			if got := outcomes(s.Deliver(t.Context(), batch(100, keys))); got["delivered"] != 100 {
				t.Fatal(got)
			}
			list := batch(1100, keys)[100:]
			for i := range list {
				if poison[i+101] {
					list[i].Event.Stream = "poison"
				}
			}
			for i, r := range s.Deliver(t.Context(), list) {
				want := sink.Result{Status: sink.Delivered}
				if poison[i+101] {
					want = sink.Result{Status: sink.Permanent, Code: code, Detail: r.Detail}
				}
				if r != want {
					t.Errorf("%d: got %+v", i+101, r)
				}
			}
			records := stored(t, cluster.ListenAddrs())
			if len(records) != 1100-len(poison) {
				t.Errorf("%d arrived", len(records))
			}
			last := map[string]int{}
			for _, r := range records {
				if n := number(r); n <= last[string(r.Key)] {
					t.Fatalf("key %s: %d after %d", r.Key, n, last[string(r.Key)])
				}
				last[string(r.Key)] = number(r)
			}
		})
	}
}

func TestBrokerAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  kfake.Fault
		want   string
		copies int
	}{
		"not leader once":           {kfake.Fault{Err: kerr.NotLeaderForPartition}, "delivered", 1},
		"written, and timed out":    {kfake.Fault{Err: kerr.RequestTimedOut}, "delivered", 1},
		"written, and not copied":   {kfake.Fault{Err: kerr.NotEnoughReplicasAfterAppend}, "delivered", 1},
		"not authorized":            {kfake.Fault{Err: kerr.TopicAuthorizationFailed}, "retry not_authorized refused", 0},
		"not authorized to cluster": {kfake.Fault{Err: kerr.ClusterAuthorizationFailed}, "retry not_authorized refused", 0},
		"not authorized to be idempotent": {kfake.Fault{
			Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: kerr.ClusterAuthorizationFailed,
		}, "retry not_authorized refused", 0},
		"disk full": {kfake.Fault{Err: kerr.UnknownServerError}, "retry broker", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t, 1)
			if test.fault.Keys == nil {
				test.fault.Keys = []kmsg.Key{kmsg.Produce}
			}
			cluster.Fault(test.fault)
			s := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
			results := s.Deliver(t.Context(), batch(10, oneKey))
			if got := outcomes(results); got[test.want] != 10 {
				t.Errorf("got %v %+v", got, results[0])
			}
			if got := len(stored(t, cluster.ListenAddrs())); got != 10*test.copies {
				t.Errorf("%d arrived", got)
			}
			// The sink works again.
			if got := outcomes(s.Deliver(t.Context(), batch(10, oneKey))); got["delivered"] != 10 {
				t.Errorf("afterwards got %v", got)
			}
		})
	}
}

// A failed partition does not hold up the others, and in it no record overtakes the failed one.
func TestPartitionsFailAlone(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 8)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Partitions: []int32{3}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), MaxRecordBytes: 20_000})
	list := batch(1000, func(n int) string { return fmt.Sprint(n % 97) })
	results := s.Deliver(t.Context(), list)
	got := outcomes(results)
	if got["delivered"]+got["retry not_authorized refused"] != 1000 || got["delivered"] < 500 || got["retry not_authorized refused"] == 0 {
		t.Fatal(got)
	}
	if n := len(stored(t, cluster.ListenAddrs())); n != got["delivered"] {
		t.Errorf("%d delivered, %d arrived", got["delivered"], n)
	}
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1)
	s, err := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()}).Sink("later", sink.JSON)
	if err != nil {
		t.Fatal(err)
	}
	results := s.Deliver(t.Context(), batch(10, keys))
	if got := outcomes(results); got["retry unknown_topic"] != 10 {
		t.Fatalf("got %v %+v", got, results[0])
	}
	if err := cluster.CreateTopic("later", 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(s.Deliver(t.Context(), batch(10, keys))); got["delivered"] != 10 {
		t.Error(got)
	}
}

func TestEventThatFitsNoEnvelope(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1)
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	list := append(batch(3, oneKey), sink.Delivery{Event: tidemark.Event{Key: "k"}})
	if got := outcomes(s.Deliver(t.Context(), list)); got["delivered"] != 3 || got["permanent invalid_event"] != 1 {
		t.Error(got)
	}
	if got := s.Deliver(t.Context(), nil); len(got) != 0 {
		t.Error(got)
	}
}

// Routes share a connection: a route that gives up or fails does not affect the others.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 4)
	connection := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	var wg sync.WaitGroup
	for range 8 {
		s, err := connection.Sink(topic, sink.CloudEventsBinary)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 5 {
				if got := outcomes(s.Deliver(t.Context(), batch(200, keys))); got["delivered"] != 200 {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
	counts := map[string]int{}
	for _, id := range arrived(stored(t, cluster.ListenAddrs())) {
		counts[id]++
	}
	for n := 1; n <= 200; n++ {
		if counts[id(n)] != 40 {
			t.Errorf("%d arrived %d times", n, counts[id(n)])
		}
	}
}
