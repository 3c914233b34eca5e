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

// line is all network connections of one producer. It knows what the client does not
// tell: whether records left. And it does what the client cannot: hold records back, and
// be cut, so that nothing is sent from then on whatever the client has still to retry.
type line struct {
	dialer dialer

	mu      sync.Mutex
	change  *sync.Cond // of held and cutOff
	open    map[net.Conn]bool
	held    bool
	cutOff  bool
	left    bool  // a request with records was written, or begun, since hold
	dialErr error // of the last dial since hold
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

// hold keeps requests with records waiting until release.
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

// cut closes all connections, lets nothing pass any more, and says whether records left
// since hold, and why the last dial failed if it did.
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

// cause is why the last dial failed, where this host is to blame for it: the client tries again, and tells in the end that its time
// is up. Otherwise it is err.
func (l *line) cause(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sink.IsLocal(l.dialErr) {
		return l.dialErr
	}
	return err
}

// drop closes without what TLS would write as a farewell, which can block, and without
// what the kernel has not sent yet.
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

// Write gets a whole request: four bytes of length, two of its kind, 0 for records.
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
