package nats_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func isAnswer(b []byte) bool { return bytes.Contains(b, []byte("MSG _INBOX")) }

func TestMessage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	into := stream(t, client(t, s), nil)
	connection := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	ours := map[string]string{
		"tidemark-route": "r", "tidemark-epoch": "7", "tidemark-attempt": "1",
		"tidemark-replay": "true", "traceparent": traceparent,
	}
	attributes := map[string]string{
		"ce-specversion": "1.0", "ce-source": "/tidemark/shop", "ce-type": "invoice.paid", "ce-subject": "%22a%20%25%C3%BC",
		"ce-partitionkey": "%22a%20%25%C3%BC", "ce-domain": "shop", "ce-actor": "clerk", "ce-traceparent": traceparent, "ce-replay": "true",
		"ce-datacontenttype": "application/json",
	}
	for n, test := range []struct {
		format      sink.Format
		contentType string
	}{{sink.CloudEvents, "application/cloudevents+json"}, {sink.CloudEventsBinary, "application/json"}, {sink.JSON, "application/json"}} {
		target, err := connection.Sink(subject, test.format)
		if err != nil {
			t.Fatal(err)
		}
		d := delivery(n, 10)
		d.Event.Trace, d.Event.Key, d.Replay = traceparent, `"a %ü`, true
		if got := target.Deliver(t.Context(), []sink.Delivery{d}); got[0] != (sink.Result{Status: sink.Delivered}) {
			t.Fatal(got)
		}
		m := stored(t, into)[n]
		encoded, _ := sink.Encode(test.format, d)
		if !bytes.Equal(m.Data(), encoded.Body) || m.Subject() != subject {
			t.Errorf("subject %s, body %s", m.Subject(), m.Data())
		}
		want := map[string]string{"content-type": test.contentType, "Nats-Msg-Id": id(n) + "/r/1", "tidemark-event-id": id(n)}
		for name, value := range ours {
			want[name] = value
		}
		if test.format == sink.CloudEventsBinary {
			want["ce-id"], want["ce-sequence"] = id(n), "0000000000000000001"
			for name, value := range attributes {
				want[name] = value
			}
		}
		got := map[string]string{}
		for name, values := range m.Headers() {
			got[name] = strings.Join(values, "|")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(test.format, diff)
		}
	}
}

// A delivery that is repeated is Delivered, and stored as one message.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	into := stream(t, client(t, s), nil)
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	for range 3 {
		if got := outcomes(target.Deliver(t.Context(), batch(1, 20))); got["delivered"] != 20 {
			t.Fatal(got)
		}
	}
	if got := len(stored(t, into)); got != 20 {
		t.Errorf("%d arrived", got)
	}
}

// A stream looks for duplicates whatever the subject: an event of two routes is two messages, and so is one that is sent again by a
// replay. Retries of either are duplicates.
func TestNotDuplicates(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	into := stream(t, client(t, s), nil)
	connection := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	got := map[string]int{}
	for _, d := range []sink.Delivery{
		{Route: "orders", Attempt: 1, First: 1},
		{Route: "orders", Attempt: 2, First: 1},
		{Route: "audit", Attempt: 1, First: 1},
		{Route: "audit", Attempt: 3, First: 2}, // it waited for its turn
		{Route: "orders", Attempt: 4, First: 4, Replay: true},
		{Route: "orders", Attempt: 5, First: 4, Replay: true},
		{Route: "orders", Attempt: 7, First: 7, Replay: true},
		{Route: "audit", Attempt: 4, First: 4, Replay: true},
		{Route: "audit", Attempt: 6, Replay: true}, // of a sender that does not say
	} {
		target, err := connection.Sink("shop."+d.Route, sink.JSON)
		if err != nil {
			t.Fatal(err)
		}
		d.Event = delivery(1, 10).Event
		if got := target.Deliver(t.Context(), []sink.Delivery{d}); got[0] != (sink.Result{Status: sink.Delivered}) {
			t.Fatal(got)
		}
	}
	for _, m := range stored(t, into) {
		if got := m.Headers().Get("tidemark-event-id"); got != id(1) {
			t.Errorf("the event is %s", got)
		}
		got[m.Subject()+" "+m.Headers().Get("tidemark-attempt")]++
	}
	if diff := cmp.Diff(map[string]int{"shop.orders 1": 1, "shop.audit 1": 1, "shop.orders 4": 1, "shop.orders 7": 1, "shop.audit 4": 1, "shop.audit 6": 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoStream(t *testing.T) {
	t.Parallel()
	for name, jetStream := range map[string]bool{"no stream": true, "JetStream is off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *server.Options) { o.JetStream = jetStream })
			target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
			if got := outcomes(target.Deliver(t.Context(), batch(1, 5))); got["retry no_stream"] != 5 {
				t.Errorf("got %v", got)
			}
			if !jetStream {
				return
			}
			stream(t, client(t, s), nil)
			if got := outcomes(target.Deliver(t.Context(), batch(1, 5))); got["delivered"] != 5 {
				t.Errorf("then %v", got)
			}
		})
	}
}

// An answer from another service on the subject is not that of a stream.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"text": "thanks", "nothing": "", "no stream": `{"seq": 1}`, "no object": `[]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			conn := client(t, s).Conn()
			if _, err := conn.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer)) }); err != nil {
				t.Fatal(err)
			}
			if err := conn.Flush(); err != nil {
				t.Fatal(err)
			}
			target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
			if got := outcomes(target.Deliver(t.Context(), batch(1, 2))); got["unknown no_stream"] != 2 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) { o.MaxPayload = 20_000 })
	into := stream(t, client(t, s), func(c *jetstream.StreamConfig) { c.MaxMsgSize = 10_000 })
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	list := batch(1, 30)
	list[7], list[20] = delivery(8, 30_000), delivery(21, 12_000) // for the server, for the stream
	results := target.Deliver(t.Context(), list)
	got := outcomes(results)
	if got["delivered"] != 28 || results[7].Code != tidemarknats.TooLarge || results[20].Code != tidemarknats.TooLarge || got["permanent too_large"] != 2 {
		t.Errorf("got %v", got)
	}
	if got := len(stored(t, into)); got != 28 {
		t.Errorf("%d arrived", got)
	}
}

func TestStreamFull(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	js := client(t, s)
	into := stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 10, jetstream.DiscardNew })
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	if got := outcomes(target.Deliver(t.Context(), batch(1, 15))); got["delivered"] != 10 || got["retry stream_full"] != 5 {
		t.Fatalf("got %v", got)
	}
	if err := into.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(target.Deliver(t.Context(), batch(11, 5))); got["delivered"] != 5 {
		t.Errorf("then %v", got)
	}
}

func TestEventThatFitsNoEnvelope(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream(t, client(t, s), nil)
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	list := append(batch(1, 3), sink.Delivery{Event: tidemark.Event{Key: "k"}})
	if got := outcomes(target.Deliver(t.Context(), list)); got["delivered"] != 3 || got["permanent invalid_event"] != 1 {
		t.Error(got)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	into := stream(t, client(t, s), nil)
	connection := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	var wg sync.WaitGroup
	for i := range 8 {
		target, err := connection.Sink(subject, sink.CloudEventsBinary)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for j := range 5 {
				if got := outcomes(target.Deliver(t.Context(), batch(1000*i+100*j, 100))); got["delivered"] != 100 {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
	info, err := into.Info(t.Context())
	if err != nil || info.State.Msgs != 4000 {
		t.Errorf("%+v %v", info.State, err)
	}
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	port := s.Addr().String()
	dir := s.StoreDir()
	js := client(t, s)
	stream(t, js, func(c *jetstream.StreamConfig) { c.Storage = jetstream.FileStorage })
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	if got := outcomes(target.Deliver(t.Context(), batch(1, 5))); got["delivered"] != 5 {
		t.Fatalf("up: got %v", got)
	}
	s.Shutdown()
	s.WaitForShutdown()
	begin := time.Now()
	got := outcomes(target.Deliver(t.Context(), batch(6, 5)))
	if got["retry connect"]+got["unknown connect"] != 5 {
		t.Fatalf("down: got %v", got)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("took %s", took)
	}
	start(t, func(o *server.Options) {
		o.Port, o.StoreDir = portOf(t, port), strings.TrimSuffix(dir, "/jetstream")
	})
	if got := outcomes(target.Deliver(t.Context(), batch(6, 5))); got["delivered"] != 5 {
		t.Fatalf("up again: got %v", got)
	}
	into, err := js.Stream(t.Context(), "SHOP")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(stored(t, into)); got != 10 {
		t.Errorf("%d arrived", got)
	}
}

// The server takes the messages, and the connection breaks before it can say so.
func TestRestartMidway(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	into := stream(t, client(t, s), nil)
	p := between(t, s.Addr().String())
	target := target(t, tidemarknats.Options{Servers: []string{p.url()}})
	p.set(func() { p.lose = true })
	if got := outcomes(target.Deliver(t.Context(), batch(1, 50))); got["unknown connect"] == 0 || got["unknown connect"]+got["retry connect"] != 50 {
		t.Errorf("got %v", got)
	}
	p.set(func() { p.lose = false })
	if got := outcomes(target.Deliver(t.Context(), batch(1, 50))); got["delivered"] != 50 {
		t.Errorf("then %v", got)
	}
	if got := len(stored(t, into)); got != 50 {
		t.Errorf("%d arrived", got)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream(t, client(t, s), nil)
	p := between(t, s.Addr().String())
	target := target(t, tidemarknats.Options{Servers: []string{p.url()}, Timeout: 500 * time.Millisecond})
	if got := outcomes(target.Deliver(t.Context(), batch(1, 5))); got["delivered"] != 5 {
		t.Fatal(got)
	}
	p.set(func() { p.hang = true })
	if got := outcomes(target.Deliver(t.Context(), batch(6, 5))); got["unknown timeout"] != 5 {
		t.Errorf("timed out: got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if got := outcomes(target.Deliver(ctx, batch(11, 5))); got["unknown cancelled"] != 5 {
		t.Errorf("cancelled: got %v", got)
	}
	if got := outcomes(target.Deliver(ctx, batch(16, 5))); got["retry cancelled"] != 5 {
		t.Errorf("cancelled before: got %v", got)
	}
}

// A server that stops reading does not hold up Deliver.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream(t, client(t, s), nil)
	p := between(t, s.Addr().String())
	target := target(t, tidemarknats.Options{Servers: []string{p.url()}, Timeout: 2 * time.Second})
	if got := outcomes(target.Deliver(t.Context(), batch(1, 5))); got["delivered"] != 5 {
		t.Fatal(got)
	}
	p.set(func() { p.deaf = true })
	var list []sink.Delivery
	for n := range 20 {
		list = append(list, delivery(n+100, 900_000))
	}
	begin := time.Now()
	got := outcomes(target.Deliver(t.Context(), list))
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
	if got["delivered"] > 0 || got["retry timeout"] == 0 || got["retry timeout"] == 20 {
		t.Errorf("got %v", got)
	}
	p.set(func() { p.deaf = false })
	// The first one may find the connection before the client sees that it is broken.
	first := outcomes(target.Deliver(t.Context(), batch(6, 5)))
	if got := outcomes(target.Deliver(t.Context(), batch(6, 5))); got["delivered"] != 5 {
		t.Error(first, got)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	connection := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}})
	if err := connection.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if err := connection.Ping(t.Context()); err == nil {
		t.Error("a closed connection answered")
	}
	target, err := connection.Sink(subject, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomes(target.Deliver(t.Context(), batch(1, 1))); got["retry connect"] != 1 {
		t.Error(got)
	}
}
