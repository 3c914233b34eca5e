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

// The codes of results. The first two come with Permanent, the others with Retry; no_stream,
// not_authorized, connect, timeout and cancelled also come with Unknown.
const (
	TooLarge     = "too_large"     // the message exceeds a limit of the server or of the stream
	InvalidEvent = "invalid_event" // the event cannot be encoded

	NoStream      = "no_stream" // no stream takes the subject, or JetStream is off
	StreamFull    = "stream_full"
	NotAuthorized = "not_authorized" // the user may not log in, or not publish to the subject
	Connect       = "connect"        // no server can be reached, or the connection broke
	Server        = "server"         // any other answer of the server
	Local         = sink.CodeLocal
	Timeout       = "timeout"
	Cancelled     = "cancelled"
)

// Connection is shared by the sinks of the same servers. It reconnects by itself.
type Connection struct {
	conn    *nats.Conn
	timeout time.Duration
	dialer  *dialer

	mu     sync.Mutex
	down   error // why the connection is down
	active map[*call]bool
}

// Dial checks the options, reads the files that they name and begins to connect in the background,
// so a program can start while the servers are down. See [Connection.Ping].
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
		nats.ReconnectBufSize(-1), // no buffer: its messages would be sent after Deliver has returned
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

// Ping waits for a connection and an answer of the server, at most Options.Timeout.
func (c *Connection) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout) // FlushWithContext requires a deadline
	defer cancel()
	if err := c.up(ctx); err != nil {
		return err
	}
	return c.conn.FlushWithContext(ctx)
}

// Close closes the connection. Its sinks deliver nothing after it.
func (c *Connection) Close() error {
	c.conn.Close()
	return nil
}

func (c *Connection) isDown(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// failed receives errors that the server reports outside of answers, such as a missing permission.
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

// connectWait is how long a Deliver waits for a connection that is down. The restart of a server
// should cost no attempt.
const connectWait = 2 * time.Second

var errAway = errors.New("no server is connected")

// up waits for a connection. Its error says why the connection is down.
func (c *Connection) up(ctx context.Context) error {
	status := c.conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.conn.RemoveStatusListener(status)
	limit := time.NewTimer(connectWait)
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

// dialer keeps the latest network connection, so that breakConn can break it.
type dialer struct {
	net.Dialer
	hereOnly bool // refuse connections to other hosts

	mu   sync.Mutex
	last net.Conn
}

// Dial is called by the client.
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

// breakConn closes the connection and so ends a write that hangs. Unsent bytes are dropped.
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
	publish        chan error // the user may not publish to the subject
	answers        chan error // the user may not subscribe to the inbox
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

// hear passes on a permission error if the subject that it quotes is one of this call.
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
