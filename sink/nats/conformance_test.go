package nats_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemarkhq/tidemark/sink"
	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	tidemarktest.TestSink(t, func(t *testing.T) tidemarktest.SinkTarget {
		s := start(t, nil)
		js := client(t, s)
		into := stream(t, js, nil)
		p := between(t, s.Addr().String())
		return tidemarktest.SinkTarget{
			Open:    func() (sink.Sink, error) { return open(p.url()) },
			Arrived: func() []tidemarktest.Arrival { return arrivals(t, into) },
			Behave: func(how tidemarktest.Behaviour, ids ...string) bool {
				if len(ids) > 0 || how == tidemarktest.TargetIsGone { // a stream treats all events alike
					return false
				}
				stream(t, js, func(c *jetstream.StreamConfig) {
					switch how {
					case tidemarktest.TargetRefuses:
						c.MaxBytes, c.Discard = 1, jetstream.DiscardNew
					case tidemarktest.TargetRefusesForGood:
						c.MaxMsgSize = 1
					}
				})
				p.set(func() { p.hang, p.lose = how == tidemarktest.TargetHangs, how == tidemarktest.TargetLosesAnswers })
				return true
			},
			TooLarge: 1 << 20,
		}
	})
}

// alone is a sink whose Close also closes its connection.
type alone struct {
	*tidemarknats.Sink
	connection *tidemarknats.Connection
}

func (s alone) Close() error { return errors.Join(s.Sink.Close(), s.connection.Close()) }

func open(url string) (sink.Sink, error) {
	connection, err := tidemarknats.Dial(tidemarknats.Options{Servers: []string{url}})
	if err != nil {
		return nil, err
	}
	s, err := connection.Sink(subject, sink.JSON)
	return alone{s, connection}, err
}

func arrivals(t *testing.T, from jetstream.Stream) []tidemarktest.Arrival {
	t.Helper()
	var list []tidemarktest.Arrival
	for _, m := range stored(t, from) {
		var body struct {
			Key     string          `json:"key"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(m.Data(), &body); err != nil {
			t.Error(err)
		}
		list = append(list, tidemarktest.Arrival{
			ID: m.Headers().Get("tidemark-event-id"), Key: body.Key, Trace: m.Headers().Get("traceparent"), Payload: body.Payload,
		})
	}
	return list
}
