package webhook

import (
	"context"
	"net"
	"sync"
)

// conns tracks all connections, so that Close can close them. The transport closes only idle ones, and an HTTP/2
// connection stays busy a moment longer than its last request.
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
	if c.closed { // the sink was closed meanwhile
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
