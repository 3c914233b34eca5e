// Package nats delivers events to NATS JetStream.
package nats

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidemarkhq/tidemark/internal/loopback"
	"github.com/tidemarkhq/tidemark/sink"
)

// The codes of results. All but the first two come with Retry; no_stream, not_authorized,
// connect, timeout and cancelled with Unknown too.
const (
	TooLarge     = "too_large"     // for the server or for the stream
	InvalidEvent = "invalid_event" // it fits in no envelope

	NoStream      = "no_stream" // no stream takes the subject, or JetStream is off
	StreamFull    = "stream_full"
	NotAuthorized = "not_authorized" // to publish to the subject, or to log in at all
	Connect       = "connect"        // no server can be reached, or the connection broke
	Server        = "server"         // any other answer of the server
	Local         = sink.CodeLocal
	Timeout       = "timeout"
	Cancelled     = "cancelled"
)

// Connection is what sinks of the same servers share. It comes back by itself.
type Connection struct {
	conn    *nats.Conn
	timeout time.Duration
	dialer  *dialer

	mu     sync.Mutex
	down   error // why there is no connection
	active map[*call]bool
}

// Dial checks the options, reads the files they name and begins to connect. A server that
// is down keeps nobody from starting. See [Connection.Ping].
func Dial(o Options) (*Connection, error) {
	return dialWith(o, net.Dialer{Timeout: 5 * time.Second})
}

func dialWith(o Options, d net.Dialer) (*Connection, error) {
	c := &Connection{timeout: o.Timeout, active: map[*call]bool{}}
	if c.timeout == 0 {
		c.timeout = 30 * time.Second
	}
	options, err := o.client()
	if err != nil {
		return nil, err
	}
	c.dialer = &dialer{Dialer: d, hereOnly: o.showsPassword()}
	options = append(options,
		nats.SetCustomDialer(c.dialer),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(500*time.Millisecond),
		nats.ReconnectBufSize(-1), // what waits for a connection would be sent after Deliver returned
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.isDown(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.isDown(err) }),
		nats.ConnectHandler(func(*nats.Conn) { c.isDown(nil) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.isDown(nil) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.failed(err) }),
	)
	if c.conn, err = nats.Connect(strings.Join(o.Servers, ","), options...); err != nil {
		return nil, errors.New("nats client: " + oneLine(err))
	}
	return c, nil
}

// Ping waits for an answer of the server.
func (c *Connection) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout) // a flush asks for a deadline
	defer cancel()
	if err := c.up(ctx); err != nil {
		return err
	}
	return c.conn.FlushWithContext(ctx)
}

// Close closes the connection. No sink of it delivers any more.
func (c *Connection) Close() error {
	c.conn.Close()
	return nil
}

func (c *Connection) isDown(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// failed hears of what no answer is given to: a permission that is missing.
func (c *Connection) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isLogin(err) {
		c.down = err
	}
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	for call := range c.active {
		call.hear(err)
	}
}

func isLogin(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// patience is how long a Deliver waits for a connection that is away. A server that
// restarts should cost no attempt.
const patience = 2 * time.Second

var errAway = errors.New("no server is connected")

// up waits until there is a connection. The error says why there is none.
func (c *Connection) up(ctx context.Context) error {
	status := c.conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.conn.RemoveStatusListener(status)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !c.conn.IsConnected() {
		if c.conn.IsClosed() {
			return nats.ErrConnectionClosed
		}
		select {
		case <-status:
			continue
		case <-limit.C:
		case <-ctx.Done():
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.down == nil {
			return errAway
		}
		return c.down
	}
	return ctx.Err()
}

// dialer keeps the network connection, to break it.
type dialer struct {
	net.Dialer
	hereOnly bool // no connection to another host

	mu   sync.Mutex
	last net.Conn
}

// Dial is what the client calls.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err == nil && d.hereOnly {
		if err = loopback.Only(conn); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = conn
	return conn, err
}

// breakConn frees who is stuck in writing. What was not sent yet is dropped.
func (d *dialer) breakConn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if tcp, ok := d.last.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// call is a Deliver under way.
type call struct {
	subject, inbox string
	publish        chan error // the subject may not be published to
	answers        chan error // the inbox may not be read
}

func (c *Connection) begin(subject string) *call {
	k := &call{subject, c.conn.NewInbox(), make(chan error, 1), make(chan error, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[k] = true
	return k
}

func (c *Connection) end(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, k)
}

// hear finds the subject that the server names between quotes.
func (k *call) hear(err error) {
	to := k.publish
	switch text := err.Error(); {
	case strings.Contains(text, strconv.Quote(k.inbox+".*")):
		to = k.answers
	case !strings.Contains(text, strconv.Quote(k.subject)):
		return
	}
	select {
	case to <- err:
	default:
	}
}
