package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"sync"

	"github.com/tidemarkhq/tidemark/sink"
)

// line controls all network connections of one producer. It does three things that the client
// does not: it records whether records were sent, it can hold records back, and it can be cut,
// after which nothing is sent even if the client retries.
type line struct {
	dialer dialer

	mu      sync.Mutex
	change  *sync.Cond // held or cutOff has changed
	open    map[net.Conn]bool
	held    bool
	cutOff  bool
	left    bool  // since hold, the write of a request with records has begun
	dialErr error // error of the last dial since hold
}

func newLine(dial dialer) *line {
	l := &line{dialer: dial, open: map[net.Conn]bool{}}
	l.change = sync.NewCond(&l.mu)
	return l
}

var errCut = errors.New("given up")

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.dialer(ctx, network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialErr = err
	if err != nil {
		return nil, err
	}
	if l.cutOff {
		drop(conn)
		return nil, errCut
	}
	l.open[conn] = true
	return &lineConn{conn, l}, nil
}

// hold makes requests with records wait until release.
func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.left, l.dialErr = true, false, nil
}

func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.change.Broadcast()
}

// cut closes all connections and lets no further request pass. It returns whether records
// were sent since hold, and the error of the last dial.
func (l *line) cut() (left bool, dialErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutOff = true
	l.change.Broadcast()
	for conn := range l.open {
		drop(conn)
	}
	return l.left, l.dialErr
}

// cause returns the error of the last dial if this host lacked a resource for it, else err: the client retries such a dial,
// and reports only a timeout in the end.
func (l *line) cause(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sink.IsLocal(l.dialErr) {
		return l.dialErr
	}
	return err
}

// drop closes a connection without TLS's closing message, which can block, and discards the
// bytes that the kernel has not sent yet.
func drop(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (l *line) pass(records bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for records && l.held && !l.cutOff {
		l.change.Wait()
	}
	l.left = l.left || records && !l.cutOff
	return !l.cutOff
}

type lineConn struct {
	net.Conn
	line *line
}

// Write gets one whole request: four bytes of length, then two bytes of its kind, which is 0
// for records.
func (c *lineConn) Write(b []byte) (int, error) {
	records := len(b) >= 6 && binary.BigEndian.Uint16(b[4:]) == 0
	if !c.line.pass(records) {
		return 0, errCut
	}
	return c.Conn.Write(b)
}

func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.open, c.Conn)
	c.line.mu.Unlock()
	return c.Conn.Close()
}
