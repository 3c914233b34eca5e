package admin

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts its open connections, and the most at a time.
type counting struct {
	net.Listener

	open, most atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for n, most := c.open.Add(1), c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return counted{conn, c}, nil
}

type counted struct {
	net.Conn

	of *counting
}

func (c counted) Close() error {
	c.of.open.Add(-1)
	return c.Conn.Close()
}

// Idle clients take at most MaxConns file descriptors of the daemon. A later client gets its answer once one of them
// disconnects.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	l := s.listener.(*limited)
	count := &counting{Listener: l.Listener}
	l.Listener = count
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = time.Hour, time.Hour // so that the server does not cut off the idle clients
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	defer func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	var idle []net.Conn
	for range MaxConns + 20 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); count.open.Load() < MaxConns; <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open, want %d", count.open.Load(), MaxConns)
		}
	}
	answered := make(chan int, 1)
	go func() {
		status, _, _ := get(t, s, "/livez")
		answered <- status
	}()
	for _, conn := range idle {
		conn.Close()
	}
	if status := <-answered; status != http.StatusOK {
		t.Errorf("/livez: %d", status)
	}
	if most := count.most.Load(); most != MaxConns {
		t.Errorf("%d connections at once, want %d", most, MaxConns)
	}
}

// A server whose connection slots are all taken still stops.
func TestShutdownWhileConnectionsWait(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(inner, 1)
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a closed listener accepted a connection")
	}
}
