package kafka

import (
	"context"
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
	return &net.TCPAddr{IP: net.ParseIP(c.to), Port: 9092}
}

func (c *conn) Close() error { c.closed = true; return nil }

// An unencrypted password never leaves this host, whatever broker the cluster names.
func TestPlainPasswordStaysHere(t *testing.T) {
	t.Parallel()
	login := &SASL{Mechanism: "plain", User: "u", Password: "p"}
	for to, here := range map[string]bool{"127.0.0.1": true, "::1": true, "127.9.9.9": true, "192.0.2.1": false, "10.0.0.1": false, "fe80::1": false} {
		for _, c := range []struct {
			o    Options
			want bool
		}{
			{Options{SASL: login}, here},
			{Options{SASL: login, Insecure: true}, true},
			{Options{SASL: &SASL{Mechanism: "scram-sha-256", User: "u", Password: "p"}}, true},
			{Options{}, true},
		} {
			made := &conn{to: to}
			got, err := c.o.inTheClear(func(context.Context, string, string) (net.Conn, error) { return made, nil })(t.Context(), "tcp", "kafka:9092")
			if (err == nil) != c.want || made.closed == c.want || (got != nil) != c.want {
				t.Errorf("%s, %+v: %v, closed %v", to, c.o, err, made.closed)
			}
		}
	}
}
