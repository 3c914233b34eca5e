package webhook

import (
	"context"
	"net"
	"sync"
)

// conns are all connections that there are. The transport closes those it believes to be idle, and a
// HTTP/2 connection is busy for a moment longer than its last request.
type conns struct {
	dialer *net.Dialer

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

type conn struct {
	net.Conn
	of *conns
}

func (c *conns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	made := &conn{raw, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // whoever wanted it has gone
		raw.Close()
		return nil, net.ErrClosed
	}
	c.open[made] = struct{}{}
	return made, nil
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for made := range c.open {
		made.Conn.Close()
	}
}
