package kafka_test

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	tidemarktest.TestSink(t, func(t *testing.T) tidemarktest.SinkTarget {
		b := &behaving{}
		b.cluster = broker(t, 3, kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			return deafListener{l, &b.lost}, err
		}))
		b.cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
			b.cluster.KeepControl()
			if b.is(tidemarktest.TargetLosesAnswers, request) {
				b.lost.Store(1 << 30)
			}
			return nil, nil, b.is(tidemarktest.TargetHangs, request)
		})
		for behaviour, answer := range map[tidemarktest.Behaviour]*kerr.Error{
			tidemarktest.TargetRefuses: kerr.TopicAuthorizationFailed, tidemarktest.TargetRefusesForGood: kerr.InvalidRecord,
		} {
			b.cluster.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Count: -1, Err: answer,
				When: func(request kmsg.Request) bool { return b.is(behaviour, request) },
			})
		}
		return tidemarktest.SinkTarget{
			Open:     func() (sink.Sink, error) { return open(b.cluster.ListenAddrs()) },
			Arrived:  func() []tidemarktest.Arrival { return arrivals(t, b.cluster.ListenAddrs()) },
			Behave:   b.behave,
			TooLarge: 1_000_000,
		}
	})
}

// alone is a sink whose Close also closes its connection.
type alone struct {
	*kafka.Sink
	connection *kafka.Connection
}

func (s alone) Close() error { return errors.Join(s.Sink.Close(), s.connection.Close()) }

func open(addresses []string) (sink.Sink, error) {
	connection, err := kafka.Dial(kafka.Options{Brokers: addresses, Timeout: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	s, err := connection.Sink(topic, sink.JSON)
	return alone{s, connection}, err
}

func arrivals(t *testing.T, addresses []string) []tidemarktest.Arrival {
	t.Helper()
	var list []tidemarktest.Arrival
	for _, r := range stored(t, addresses) {
		var body struct {
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(r.Value, &body); err != nil {
			t.Error(err)
		}
		list = append(list, tidemarktest.Arrival{
			ID: header(r, "tidemark-event-id"), Key: string(r.Key), Trace: header(r, "traceparent"), Payload: body.Payload,
		})
	}
	return list
}

// behaving is a broker whose behaviour the suite sets.
type behaving struct {
	cluster *kfake.Cluster
	lost    atomic.Int32 // answers to requests with records

	mu  sync.Mutex
	how tidemarktest.Behaviour
	ids []string
}

func (b *behaving) behave(how tidemarktest.Behaviour, ids ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.how, b.ids = how, ids
	b.lost.Store(0)
	switch how {
	case tidemarktest.TargetIsGone: // Kafka has no such answer
		return false
	case tidemarktest.TargetLosesAnswers: // an answer is for all records of a request
		return len(ids) == 0
	}
	return true
}

func (b *behaving) is(how tidemarktest.Behaviour, request kmsg.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.how == how && (len(b.ids) == 0 || slices.ContainsFunc(b.ids, func(id string) bool { return holds(request, id) }))
}
