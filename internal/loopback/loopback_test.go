package loopback

import (
	"net"
	"testing"
)

// conn is a connection to an address that need not exist.
type conn struct {
	net.Conn
	to     string
	closed bool
}

func (c *conn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.to), Port: 4222}
}

func (c *conn) Close() error { c.closed = true; return nil }

func TestOnly(t *testing.T) {
	t.Parallel()
	for to, here := range map[string]bool{"127.0.0.1": true, "::1": true, "192.0.2.1": false, "10.0.0.1": false, "fe80::1": false} {
		made := &conn{to: to}
		if err := Only(made); (err == nil) != here || made.closed == here {
			t.Errorf("%s: %v, closed %v", to, err, made.closed)
		}
	}
}
