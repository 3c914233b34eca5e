package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/trial"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// receiver is a target that reads what it gets and says yes.
type receiver struct {
	*trial.Receiver

	journal  *trial.Numbers
	unsigned atomic.Int64
	first    atomic.Int64  // when the first request came, in nanoseconds
	away     time.Duration // between a request and its answer
}

// newReceiver checks of a signature only that there is one: to compute it is the sender's cost, and would be measured twice.
func newReceiver(ctx context.Context, j *trial.Numbers, away time.Duration) (*receiver, error) {
	r := &receiver{journal: j, away: away}
	var err error
	r.Receiver, err = trial.Receive(ctx, nil, r.take)
	return r, err
}

func (r *receiver) take(q trial.Request) trial.Answer {
	if q.Path == hangPath {
		return trial.Answer{Hang: true}
	}
	if !strings.HasPrefix(q.Header.Get("Webhook-Signature"), "v1,") {
		r.unsigned.Add(1)
	}
	r.first.CompareAndSwap(0, time.Now().UnixNano())
	r.journal.Saw(number(q.Body) - 1)
	time.Sleep(r.away)
	return trial.Answer{}
}

const hangPath = "/hang"

func (r *receiver) url(path string) string { return r.URL() + path }

// check is for clean runs.
func (r *receiver) check() error {
	if n := r.unsigned.Load(); n != 0 {
		return fmt.Errorf("%d requests without a signature", n)
	}
	return r.journal.Balance().Err()
}

func (r *receiver) close() error {
	if r == nil {
		return nil
	}
	return r.Close()
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
					if r.Status != sink.Delivered {
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
		if r, err = newReceiver(context.Background(), trial.NewNumbers(items, keysInBacklog), away); err != nil {
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
