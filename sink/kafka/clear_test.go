package kafka

import (
	"context"
	"net"
	"testing"
)

// conn is one to an address that need not be there.
type conn struct {
	net.Conn
	to     string
	closed bool
}

func (c *conn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.to), Port: 9092}
}

func (c *conn) Close() error { c.closed = true; return nil }

// A password that is shown on the way stays on this host, whatever broker the cluster names.
func TestPlainPasswordStaysHere(t *testing.T) {
	t.Parallel()
	for to, here := range map[string]bool{"127.0.0.1": true, "::1": true, "127.9.9.9": true, "192.0.2.1": false, "10.0.0.1": false, "fe80::1": false} {
		made := &conn{to: to}
		got, err := toThisHost(func(context.Context, string, string) (net.Conn, error) { return made, nil })(t.Context(), "tcp", "kafka:9092")
		if (err == nil) != here || made.closed == here || (got == nil) == here {
			t.Errorf("%s: %v, closed %v", to, err, made.closed)
		}
	}
	login := &SASL{Mechanism: "plain", User: "u", Password: "p"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, o := range []Options{{SASL: login}, {SASL: login, Insecure: true}, {SASL: &SASL{Mechanism: "scram-sha-256", User: "u", Password: "p"}}, {}} {
		dial, err := o.dialer()
		if err != nil {
			t.Fatal(err)
		}
		c, err := dial(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}
