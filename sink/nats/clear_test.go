package nats

import (
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
	return &net.TCPAddr{IP: net.ParseIP(c.to), Port: 4222}
}

func (c *conn) Close() error { c.closed = true; return nil }

// A password that is shown on the way stays on this host, whatever server the cluster names.
func TestPlainPasswordStaysHere(t *testing.T) {
	t.Parallel()
	for to, here := range map[string]bool{"127.0.0.1": true, "::1": true, "192.0.2.1": false, "10.0.0.1": false, "fe80::1": false} {
		made := &conn{to: to}
		if err := toThisHost(made); (err == nil) != here || made.closed == here {
			t.Errorf("%s: %v, closed %v", to, err, made.closed)
		}
	}
	plain, encrypted := []string{"nats://a"}, []string{"tls://a", "tls://b"}
	for _, c := range []struct {
		o    Options
		want bool
	}{
		{Options{Servers: plain}, false},
		{Options{Servers: plain, NKeyFile: "f"}, false},
		{Options{Servers: plain, User: "u", Password: "p"}, true},
		{Options{Servers: plain, Token: "t"}, true},
		{Options{Servers: plain, Token: "t", Insecure: true}, false},
		{Options{Servers: plain, Token: "t", TLS: &TLS{}}, false},
		{Options{Servers: encrypted, Token: "t"}, false},
	} {
		if got := c.o.showsPassword(); got != c.want {
			t.Errorf("%+v: %v", c.o, got)
		}
	}
	c, err := Dial(Options{Servers: plain, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if !c.dialer.hereOnly {
		t.Error("the dialer does not look")
	}
}
