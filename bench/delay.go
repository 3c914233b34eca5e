package main

import (
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	roundTrip  = time.Millisecond
	awaySuffix = ", server 1 ms away"
)

// A delayLine stands between programs and what they call, as if it were in another zone: what either side says arrives half a round
// trip later, in its order, and any number of bytes may be on their way.
type delayLine struct {
	net.Listener
	network, address string
	trip             time.Duration // a round
	running          sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// newDelayLine listens on an address of this host, with a free port.
func newDelayLine(host, network, address string, trip time.Duration) (*delayLine, error) {
	l := &delayLine{network: network, address: address, trip: trip}
	var err error
	if l.Listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return nil, err
	}
	l.running.Go(l.serve)
	return l, nil
}

// newServerLine is one to a server, and the URL by which its database is called through it.
func newServerLine(dsn, host string, trip time.Duration) (*delayLine, string, error) {
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, "", err
	}
	network, address := pgconn.NetworkAddress(server.Host, server.Port)
	l, err := newDelayLine(host, network, address, trip)
	if err != nil {
		return nil, "", err
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Host: l.Addr().String(), Path: "/" + server.Database, RawQuery: "sslmode=disable",
	}
	return l, u.String(), nil
}

func (l *delayLine) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(l.network, l.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		l.pass(server, client)
		l.pass(client, server)
	}
}

// pass takes bytes from one side to the other.
func (l *delayLine) pass(to, from net.Conn) {
	type chunk struct {
		due   time.Time
		bytes []byte
	}
	chunks := make(chan chunk, 4096)
	l.running.Go(func() {
		defer close(chunks)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				chunks <- chunk{time.Now().Add(l.trip / 2), b[:n]}
			}
			if err != nil {
				return
			}
		}
	})
	l.running.Go(func() {
		defer to.Close()
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.bytes); err != nil {
				_ = from.Close() // ends the reader, and so this loop
			}
		}
	})
}

func (l *delayLine) close() {
	_ = l.Close()
	l.mu.Lock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.running.Wait()
}
