package admin

import (
	"net"
	"sync"
)

// MaxConns is how many connections the server accepts at a time. Each takes a file descriptor of the process: without a
// limit, idle clients could leave none for deliveries and the database. Further connections wait in the system's queue.
const MaxConns = 64

// limited accepts at most cap(slots) connections at a time.
type limited struct {
	net.Listener

	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Limit returns a listener that accepts at most so many connections at a time.
func Limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits for a slot and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close closes the listener. It also ends an Accept that waits for a slot.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotted struct {
	net.Conn

	release func()
}

func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
