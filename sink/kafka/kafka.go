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

// The codes of results. The first three come with Permanent, the others with Retry; timeout
// and cancelled also come with Unknown.
const (
	TooLarge      = "too_large"      // the record alone exceeds MaxRecordBytes or the broker's limit
	InvalidRecord = "invalid_record" // the broker refuses the record, such as one without key on a compacted topic
	InvalidEvent  = "invalid_event"  // the event cannot be encoded

	UnknownTopic  = "unknown_topic"
	NotAuthorized = "not_authorized" // the user may not log in, or not write to the topic
	Connect       = "connect"        // no broker can be reached
	Broker        = "broker"         // any other answer of the broker
	Local         = sink.CodeLocal
	Timeout       = "timeout"
	Cancelled     = "cancelled"
)

// maxIdle is how many idle producers a connection keeps for later calls of Deliver.
const maxIdle = 16

// lifetime is how long a producer is used. A broker forgets a producer that writes nothing
// to a partition for a day. It could then accept the producer's second batch after it has
// refused the first.
const lifetime = time.Hour

// Connection is shared by the sinks of the same brokers.
//
// It lends each Deliver a client of its own. With a shared client, a Deliver that gives up
// its records would give up those of others too, and records that are added to a partition
// while others fail there would overtake them.
type Connection struct {
	options []kgo.Opt
	dial    dialer
	timeout time.Duration

	mu      sync.Mutex
	idle    []*producer
	aside   *producer // for requests that are not deliveries; nil while it is lent
	closed  bool
	closing sync.WaitGroup
	open    map[string]int // by topic: its sinks
}

// Dial checks the options and reads the files that they name. It does not connect, so a
// program can start while the brokers are down. See [Connection.Ping].
func Dial(o Options) (*Connection, error) {
	c := &Connection{timeout: o.Timeout, open: map[string]int{}}
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
	// The client checks the options when it is made.
	probe, err := newProducer(c.options, c.dial)
	if err != nil {
		return nil, err
	}
	probe.close()
	return c, nil
}

// Ping connects to one broker, logs in if SASL is set, and waits for an answer.
func (c *Connection) Ping(ctx context.Context) error {
	p, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	err = p.client.Ping(ctx)
	c.release(p, err == nil)
	return err
}

// Close closes all connections. The sinks of the connection deliver nothing after it.
func (c *Connection) Close() error {
	c.mu.Lock()
	c.closed = true
	idle := c.idle
	if c.aside != nil {
		idle = append(idle, c.aside)
	}
	c.idle, c.aside = nil, nil
	c.mu.Unlock()
	for _, p := range idle {
		p.close()
	}
	c.closing.Wait()
	return nil
}

var errClosed = errors.New("connection is closed")

// acquire lends a producer. A new one has pinged the broker, so that an unreachable broker is not
// mistaken for a slow delivery.
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
	return c.reach(ctx)
}

// reach makes a producer that has reached a broker.
func (c *Connection) reach(ctx context.Context) (*producer, error) {
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

// release takes a producer back. It keeps the producer for another Deliver or closes it.
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
	// In the background: Deliver must return soon after its context is done.
	c.closing.Go(p.close)
	c.mu.Unlock()
}
