// Package kafka delivers events to Kafka topics.
package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/sink"
)

// The codes of results. All but the first three come with Retry, and timeout and
// cancelled with Unknown too.
const (
	TooLarge      = "too_large"      // of the record alone, by the limit here or the broker's
	InvalidRecord = "invalid_record" // the broker says so, such as of one without key on a compacted topic
	InvalidEvent  = "invalid_event"  // it fits in no envelope

	UnknownTopic  = "unknown_topic"
	NotAuthorized = "not_authorized" // to write to the topic, or to log in at all
	Connect       = "connect"        // no broker can be reached
	Broker        = "broker"         // any other answer of the broker
	Local         = sink.CodeLocal
	Timeout       = "timeout"
	Cancelled     = "cancelled"
)

// maxIdle bounds the producers that are kept for the next Deliver.
const maxIdle = 16

// lifetime is how old a producer gets. A broker forgets one that wrote nothing to a
// partition for a day, and would then take its second batch there when it refused the
// first.
const lifetime = time.Hour

// Connection is what sinks of the same brokers share.
//
// It lends each Deliver a client of its own. In a shared one, giving up one Deliver's
// records gives up those of others, and records that join a partition while another's
// fail there overtake them.
type Connection struct {
	options []kgo.Opt
	dial    dialer
	timeout time.Duration

	mu      sync.Mutex
	idle    []*producer
	closed  bool
	closing sync.WaitGroup
}

// Dial checks the options and reads the files they name. It reaches for no broker: a
// broker that is down keeps nobody from starting. See [Connection.Ping].
func Dial(o Options) (*Connection, error) {
	c := &Connection{timeout: o.Timeout}
	if c.timeout == 0 {
		c.timeout = 30 * time.Second
	}
	var err error
	if c.options, err = o.client(); err != nil {
		return nil, err
	}
	if c.dial, err = o.dialer(); err != nil {
		return nil, err
	}
	// What the client makes of the options it tells when it is made.
	probe, err := newProducer(c.options, c.dial)
	if err != nil {
		return nil, err
	}
	probe.close()
	return c, nil
}

// Ping asks one broker for an answer, logging in if so configured.
func (c *Connection) Ping(ctx context.Context) error {
	p, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	err = p.client.Ping(ctx)
	c.release(p, err == nil)
	return err
}

// Close closes all connections. No sink of it delivers any more.
func (c *Connection) Close() error {
	c.mu.Lock()
	c.closed = true
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, p := range idle {
		p.close()
	}
	c.closing.Wait()
	return nil
}

var errClosed = errors.New("connection is closed")

// acquire lends a producer. A new one is tried first, so that brokers which are away are
// told from a delivery that takes long.
func (c *Connection) acquire(ctx context.Context) (*producer, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	if last := len(c.idle) - 1; last >= 0 {
		p := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		return p, nil
	}
	c.mu.Unlock()

	p, err := newProducer(c.options, c.dial)
	if err != nil {
		return nil, err
	}
	if err := p.client.Ping(ctx); err != nil {
		err = p.line.cause(err)
		c.release(p, false)
		return nil, err
	}
	return p, nil
}

// release takes a producer back, to lend it again or to close it.
func (c *Connection) release(p *producer, keep bool) {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		p.close()
		return
	case keep && len(c.idle) < maxIdle && time.Since(p.born) < lifetime:
		c.idle = append(c.idle, p)
		c.mu.Unlock()
		return
	}
	// Not awaited: Deliver owes its answer soon after its context is done.
	c.closing.Go(p.close)
	c.mu.Unlock()
}
