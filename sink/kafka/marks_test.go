package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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
	leave(a, text("a1"))
	hears(a)
	hears(b) // it may have been there for days
	leave(b, text("b1"))
	hears(b)
	hears(a, text("b1"))
	hears(a)
	leave(a, text("a2"))
	leave(b, text("b2"))
	leave(b, text("b3"))
	hears(a, text("b3"))
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
	leave(a, text("a3"))
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
	leave(text("a1"))
	hears()
	leave(text("a2"))
	hears(text("a2"))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	leave(text("a3"))
	hears()
}

// Where marks cannot be left, the producers of deliveries stay as they are.
func TestMarksLeaveProducersAlone(t *testing.T) {
	t.Parallel()
	// warm returns a connection with two idle producers.
	warm := func(t *testing.T, cluster *kfake.Cluster) (*kafka.Connection, []any) {
		t.Helper()
		connection := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()})
		s, err := connection.Sink(topic, sink.JSON)
		if err != nil {
			t.Fatal(err)
		}
		both := make(chan struct{}, 2)
		proceed := make(chan struct{})
		cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			both <- struct{}{}
			cluster.SleepControl(func() { <-proceed })
			return nil, nil, false
		})
		delivered := make(chan struct{})
		for n := range 2 {
			go func() {
				list := batch(1, func(int) string { return "k" + string(rune('0'+n)) })
				s.Deliver(context.Background(), list)
				delivered <- struct{}{}
			}()
		}
		<-both
		<-both
		close(proceed)
		<-delivered
		<-delivered
		idle := connection.Idle()
		if len(idle) != 2 {
			t.Fatalf("%d idle producers", len(idle))
		}
		return connection, idle
	}
	for name, key := range map[string]kmsg.Key{"to read": kmsg.OffsetFetch, "to write": kmsg.OffsetCommit, "to find": kmsg.FindCoordinator} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t, 1)
			refuse(cluster, key)
			connection, idle := warm(t, cluster)
			m := connection.Marks("g")
			var aside any
			for range 3 {
				_, heard := m.Heard(t.Context())
				if err := errors.Join(heard, m.Leave(t.Context(), text("a1"))); !errors.Is(err, kerr.GroupAuthorizationFailed) {
					t.Fatalf("the error %v", err)
				}
				if now := connection.Idle(); !slices.Equal(now, idle) {
					t.Fatalf("the idle producers were %v, and are %v", idle, now)
				}
				now := connection.Aside()
				if aside != nil && now != aside {
					t.Error("the client of the marks does not stay")
				}
				aside = now
			}
		})
	}
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		cluster := broker(t, 1)
		connection, idle := warm(t, cluster)
		done := make(chan struct{})
		t.Cleanup(func() { close(done) })
		cluster.ControlKey(int16(kmsg.OffsetFetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			cluster.SleepControl(func() { <-done })
			return nil, nil, false
		})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := connection.Marks("g").Heard(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error %v", err)
		}
		if now := connection.Idle(); !slices.Equal(now, idle) {
			t.Errorf("the idle producers were %v, and are %v", idle, now)
		}
	})
}

// refuse makes the brokers answer these requests as they answer a user without rights on the group.
func refuse(cluster *kfake.Cluster, key kmsg.Key) {
	no := kerr.GroupAuthorizationFailed.Code
	cluster.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := request.ResponseKind()
		switch r := response.(type) {
		case *kmsg.OffsetFetchResponse:
			r.ErrorCode = no
			for _, g := range request.(*kmsg.OffsetFetchRequest).Groups {
				group := kmsg.NewOffsetFetchResponseGroup()
				group.Group, group.ErrorCode = g.Group, no
				r.Groups = append(r.Groups, group)
			}
		case *kmsg.OffsetCommitResponse:
			for _, asked := range request.(*kmsg.OffsetCommitRequest).Topics {
				answer := kmsg.NewOffsetCommitResponseTopic()
				answer.Topic, answer.TopicID = asked.Topic, asked.TopicID
				for _, p := range asked.Partitions {
					partition := kmsg.NewOffsetCommitResponseTopicPartition()
					partition.Partition, partition.ErrorCode = p.Partition, no
					answer.Partitions = append(answer.Partitions, partition)
				}
				r.Topics = append(r.Topics, answer)
			}
		case *kmsg.FindCoordinatorResponse:
			r.ErrorCode = no
			for _, key := range request.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
				coordinator := kmsg.NewFindCoordinatorResponseCoordinator()
				coordinator.Key, coordinator.ErrorCode = key, no
				r.Coordinators = append(r.Coordinators, coordinator)
			}
		}
		return response, nil, true
	})
}

// text makes a mark of a short name.
func text(name string) string { return "00000000-0000-4000-8000-0000000000" + name }

// Others may commit offsets of the group too. What is no mark is dropped, and of too many marks a few are heard.
func TestMarksOfForgers(t *testing.T) {
	t.Parallel()
	const topics = 2000
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("t%d", i)
	}
	cluster := broker(t, 1, kfake.SeedTopics(1, names...))
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	forge := func(mark func(i int) string, topics ...string) {
		t.Helper()
		var offsets kadm.Offsets
		for i, name := range topics {
			offsets.Add(kadm.Offset{Topic: name, LeaderEpoch: -1, Metadata: mark(i)})
		}
		if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "g", offsets); err != nil {
			t.Fatal(err)
		}
	}
	always := func(mark string) func(int) string { return func(int) string { return mark } }
	many := func(from int) func(int) string {
		return func(i int) string { return fmt.Sprintf("00000000-0000-4000-9000-%012d", from+i) }
	}
	connection := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	if _, err := connection.Sink(topic, sink.JSON); err != nil {
		t.Fatal(err)
	}
	m := connection.Marks("g")
	heard := func() []string {
		t.Helper()
		all, err := m.Heard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Leave(t.Context(), text("a1")); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if err := m.Leave(t.Context(), text("a1")); err != nil {
		t.Fatal(err)
	}
	heard()
	for _, bad := range []string{"\x00", "\xff\xfe", "mark", "\x00" + text("b2")[1:], strings.Repeat("a", 1<<20)} {
		forge(always(bad), topic)
		if all := heard(); len(all) > 0 {
			t.Errorf("heard %.200q", all)
		}
	}
	forge(always(strings.Repeat("a", 4096)), names...)
	forge(always(text("b1")), topic)
	if all := heard(); !slices.Equal(all, []string{text("b1")}) {
		t.Errorf("heard %.500q", all)
	}
	forge(many(0), names...)
	if all := heard(); len(all) != 10 {
		t.Errorf("heard %d marks of %d", len(all), topics)
	}
	if places := m.Places(); places > 1001 {
		t.Errorf("it remembers %d topics", places)
	}
}
