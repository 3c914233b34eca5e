package nats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const subject = "shop.events"

// soon limits the wait for an event that should come at once. It is long for busy machines.
const soon = 10 * time.Second

// start starts a server with JetStream and without streams.
func start(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(soon) {
		t.Fatal("the server is not ready")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// client returns a plain client, next to the sink.
func client(t testing.TB, s *server.Server, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func stream(t testing.TB, js jetstream.JetStream, change func(*jetstream.StreamConfig)) jetstream.Stream {
	t.Helper()
	config := jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.>"}, Storage: jetstream.MemoryStorage}
	if change != nil {
		change(&config)
	}
	s, err := js.CreateOrUpdateStream(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t testing.TB, o tidemarknats.Options) *tidemarknats.Connection {
	t.Helper()
	connection, err := tidemarknats.Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func target(t testing.TB, o tidemarknats.Options) *tidemarknats.Sink {
	t.Helper()
	s, err := dial(t, o).Sink(subject, sink.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func delivery(n, size int) sink.Delivery {
	return sink.Delivery{Route: "r", Attempt: 1, Epoch: 7, Event: tidemark.Event{
		ID: id(n), Seq: int64(n), Domain: "shop", Type: "invoice.paid", Key: "k" + strconv.Itoa(n), Actor: "clerk",
		Payload: json.RawMessage(fmt.Sprintf(`{"n": %d, "fill": "%0*d"}`, n, size, 0)),
	}}
}

func id(n int) string { return fmt.Sprintf("0199f3a2-7c1e-7d4a-9b1f-%012d", n) }

func batch(from, size int) []sink.Delivery {
	var list []sink.Delivery
	for n := from; n < from+size; n++ {
		list = append(list, delivery(n, 10))
	}
	return list
}

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

// stored returns the messages of the stream.
func stored(t testing.TB, s jetstream.Stream) []jetstream.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	var list []jetstream.Msg
	for range info.State.Msgs {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// proxy stands between a sink and its server.
type proxy struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	wait   *sync.Cond
	ended  bool
	hang   bool // holds back the server's answers
	lose   bool // hangs up when the server answers a message
	deaf   bool // holds back the client's requests
	toEnd  map[net.Conn]bool
	active sync.WaitGroup
}

func between(t testing.TB, address string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: address, toEnd: map[net.Conn]bool{}}
	p.wait = sync.NewCond(&p.mu)
	p.active.Go(p.accept)
	t.Cleanup(func() {
		p.set(func() {
			p.ended = true
			for c := range p.toEnd {
				_ = c.Close()
			}
		})
		_ = l.Close()
		p.active.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.wait.Broadcast()
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.set(func() { p.toEnd[in], p.toEnd[out] = true, true })
		p.active.Go(func() { p.copy(out, in, func([]byte) bool { return p.pass(&p.deaf) }) })
		p.active.Go(func() { p.copy(in, out, p.answers) })
	}
}

func (p *proxy) copy(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil || !pass(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// pass waits while *keep is true.
func (p *proxy) pass(keep *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for *keep && !p.ended {
		p.wait.Wait()
	}
	return !p.ended
}

func (p *proxy) answers(b []byte) bool {
	if !p.pass(&p.hang) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lose || !isAnswer(b)
}
