package nats

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/tidemarkhq/tidemark/internal/mark"
)

// Marks are texts that daemons publish for each other on a subject of their own. No stream needs to keep them.
type Marks struct {
	connection *Connection
	subject    string

	mu    sync.Mutex
	own   string // the last mark that was left; it comes back
	back  bool   // it has
	heard []string
}

// What waits in memory until it has been heard: the marks of very many daemons, but few large messages of others.
const (
	mostWaiting = 10_000
	mostBytes   = 4 << 20
)

// Marks listens to the subject, until the connection is closed. Heard and Leave are used by one goroutine.
func (c *Connection) Marks(subject string) (*Marks, error) {
	m := &Marks{connection: c, subject: subject}
	listening, err := c.conn.Subscribe(subject, func(message *nats.Msg) { m.hear(message.Data) })
	if err != nil {
		return nil, err
	}
	return m, listening.SetPendingLimits(mostWaiting, mostBytes)
}

func (m *Marks) hear(text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own != "" && string(text) == m.own {
		m.back = true
		return
	}
	m.heard = mark.Add(m.heard, text)
}

// Heard returns the marks that others have left since the last look: the first few, and nothing that is no mark.
func (m *Marks) Heard(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	heard := m.heard
	m.heard = nil
	if m.own != "" && !m.back {
		return heard, fmt.Errorf("the own mark does not come back: the user may not publish and subscribe to %s, or the connection broke", m.subject)
	}
	return heard, nil
}

// Leave publishes a mark.
func (m *Marks) Leave(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, m.connection.timeout) // FlushWithContext requires a deadline
	defer cancel()
	m.expect("")
	if err := m.connection.up(ctx); err != nil {
		return err
	}
	m.expect(mark)
	if err := m.connection.conn.Publish(m.subject, []byte(mark)); err != nil {
		m.expect("")
		return err
	}
	return m.connection.conn.FlushWithContext(ctx)
}

// expect says which mark comes back.
func (m *Marks) expect(own string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own, m.back = own, false
}
