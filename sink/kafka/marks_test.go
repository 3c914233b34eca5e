package kafka_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	marksAreHeard(t, broker(t, 2).ListenAddrs())
}

// marksAreHeard lets two connections leave marks for each other. What was left before a connection listens is not heard.
func marksAreHeard(t *testing.T, brokers []string) {
	t.Helper()
	const group = "tidemark-copies-1-2"
	marks := func() *kafka.Marks {
		connection := dial(t, kafka.Options{Brokers: brokers})
		for _, topic := range []string{topic, "a-topic-that-is-missing"} {
			if _, err := connection.Sink(topic, sink.JSON); err != nil {
				t.Fatal(err)
			}
		}
		return connection.Marks(group)
	}
	leave := func(m *kafka.Marks, mark string) {
		t.Helper()
		if err := m.Leave(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(m *kafka.Marks, want ...string) {
		t.Helper()
		if got, err := m.Heard(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("heard %v, %v, want %v", got, err, want)
		}
	}
	a, b := marks(), marks()
	leave(a, "a1")
	hears(a)
	hears(b) // it may have been there for days
	leave(b, "b1")
	hears(b)
	hears(a, "b1")
	hears(a)
	leave(a, "a2")
	leave(b, "b2")
	leave(b, "b3")
	hears(a, "b3")
	hears(b)

	// Monitors of consumers see a group without lag.
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := target(t, kafka.Options{Brokers: brokers})
	list := batch(50, func(int) string { return "k" })
	undelivered(t, list, s.Deliver(t.Context(), list), map[string]bool{})
	leave(a, "a3")
	lag, err := kadm.NewClient(client).Lag(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if l := lag[group]; l.Lag.Total() != 0 || len(l.Members) != 0 {
		t.Errorf("lag %d, members %v", l.Lag.Total(), l.Members)
	}
}

// A connection whose sinks are closed leaves nothing.
func TestMarksWithoutSinks(t *testing.T) {
	t.Parallel()
	connection := dial(t, kafka.Options{Brokers: broker(t, 1).ListenAddrs()})
	s, err := connection.Sink(topic, sink.JSON)
	if err != nil {
		t.Fatal(err)
	}
	a, b := connection.Marks("g"), connection.Marks("g")
	hears := func(want ...string) {
		t.Helper()
		if heard, err := b.Heard(t.Context()); err != nil || !slices.Equal(heard, want) {
			t.Errorf("heard %v, %v, want %v", heard, err, want)
		}
	}
	leave := func(mark string) {
		t.Helper()
		if err := a.Leave(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
	}
	leave("a1")
	hears()
	leave("a2")
	hears("a2")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	leave("a3")
	hears()
}
