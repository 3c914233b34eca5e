package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// receiver is an HTTP server that reads what it gets and says yes.
type receiver struct {
	server   *http.Server
	listener net.Listener
	journal  *journal
	unsigned int
	mu       sync.Mutex
	hang     chan struct{} // requests to /hang wait for it
	away     time.Duration // between a request and its answer
}

var bodies = sync.Pool{New: func() any { b := make([]byte, 4096); return &b }}

func newReceiver(j *journal, away time.Duration) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{listener: listener, journal: j, hang: make(chan struct{}), away: away}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == hangPath {
		select {
		case <-r.hang:
		case <-req.Context().Done():
		}
		return
	}
	buffer := bodies.Get().(*[]byte)
	defer bodies.Put(buffer)
	n, err := io.ReadFull(req.Body, *buffer)
	if err != io.ErrUnexpectedEOF && err != io.EOF {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !strings.HasPrefix(req.Header.Get("Webhook-Signature"), "v1,") {
		r.mu.Lock()
		r.unsigned++
		r.mu.Unlock()
	}
	r.journal.saw(number((*buffer)[:n]) - 1)
	time.Sleep(r.away)
	w.WriteHeader(http.StatusNoContent)
}

const hangPath = "/hang"

func (r *receiver) url(path string) string { return "http://" + r.listener.Addr().String() + path }

// check is for clean runs.
func (r *receiver) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsigned != 0 {
		return fmt.Errorf("%d requests without a signature", r.unsigned)
	}
	return r.journal.once()
}

func (r *receiver) close() error {
	if r == nil {
		return nil
	}
	close(r.hang)
	return r.server.Close()
}

// bareSink drives a sink without a database: events of a key one after the other, by as many
// senders as a route has.
type bareSink struct {
	*env
	name        string
	items       int
	concurrency int
	open        func() (sink.Sink, error)
	check       func(context.Context) error
	close       func() error

	sink  sink.Sink
	slots [][]sink.Delivery
}

func (c *bareSink) Name() string { return c.name }

func (c *bareSink) Setup(context.Context) error {
	var err error
	if c.sink, err = c.open(); err != nil {
		return err
	}
	c.slots = make([][]sink.Delivery, c.concurrency)
	for n := range c.items {
		slot := n % keysInBacklog % c.concurrency
		c.slots[slot] = append(c.slots[slot], delivery(n))
	}
	return nil
}

// delivery is like an event of the backlog.
func delivery(n int) sink.Delivery {
	return sink.Delivery{
		Route: "route", Attempt: 1, Epoch: 1,
		Event: tidemark.Event{
			ID: fmt.Sprintf("0199f3a2-7c1e-7d4a-9b1f-%012d", n), Seq: int64(n + 1), CreatedAt: time.Now().UTC(), OccurredAt: time.Now().UTC(),
			Domain: "bench", Type: fmt.Sprintf("type.%d", (n+1)%typesInBacklog), Key: fmt.Sprintf("key.%d", (n+1)%keysInBacklog),
			Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo, Actor: "postgres",
			Payload: fmt.Appendf(nil, `{"n": %d, "pad": "%s"}`, n+1, strings.Repeat("x", 183-len(fmt.Sprint(n+1)))),
		},
	}
}

func (c *bareSink) Run(ctx context.Context) (int, error) {
	var wg sync.WaitGroup
	failures := make(chan error, len(c.slots))
	for _, slot := range c.slots {
		wg.Go(func() {
			for at := 0; at < len(slot); {
				to := min(at+c.sink.Limits().Batch, len(slot))
				for _, r := range c.sink.Deliver(ctx, slot[at:to]) {
					if r.Outcome != sink.Delivered {
						failures <- fmt.Errorf("not delivered: %s: %s", r.Code, r.Detail)
						return
					}
				}
				at = to
			}
		})
	}
	wg.Wait()
	close(failures)
	return c.items, <-failures
}

func (c *bareSink) Check(ctx context.Context) error { return c.check(ctx) }

func (c *bareSink) Clean(context.Context) error {
	if c.sink != nil {
		_ = c.sink.Close()
	}
	c.sink, c.slots = nil, nil
	return c.close()
}

// bareWebhook is the client of a webhook without a database.
func bareWebhook(e *env, name string, items, concurrency int, away time.Duration) *bareSink {
	c := &bareSink{env: e, name: name, items: items, concurrency: concurrency}
	var r *receiver
	c.open = func() (sink.Sink, error) {
		var err error
		if r, err = newReceiver(newJournal(items, keysInBacklog), away); err != nil {
			return nil, err
		}
		return webhook.New(webhook.Options{
			URL: r.url("/"), Secrets: []string{signingKey}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxConns: concurrency,
		})
	}
	c.check = func(context.Context) error { return r.check() }
	c.close = func() error { return r.close() }
	return c
}
