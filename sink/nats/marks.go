package nats

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// Marks are texts that daemons publish for each other on a subject of their own. No stream needs to keep them.
type Marks struct {
	connection *Connection
	subject    string
	own        string // the last mark that was left; it comes back

	mu    sync.Mutex
	heard []string
}

// mostHeard is how many marks wait for a look.
const mostHeard = 1000

// Marks listens to the subject, until the connection is closed. Heard and Leave are used by one goroutine.
func (c *Connection) Marks(subject string) (*Marks, error) {
	m := &Marks{connection: c, subject: subject}
	_, err := c.conn.Subscribe(subject, func(message *nats.Msg) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.heard) < mostHeard {
			m.heard = append(m.heard, string(message.Data))
		}
	})
	return m, err
}

// Heard returns the marks that others have left since the last look.
func (m *Marks) Heard(context.Context) ([]string, error) {
	m.mu.Lock()
	heard := m.heard
	m.heard = nil
	m.mu.Unlock()
	if m.own != "" && !slices.Contains(heard, m.own) {
		return heard, fmt.Errorf("the own mark does not come back: the user may not publish and subscribe to %s, or the connection broke", m.subject)
	}
	return slices.DeleteFunc(heard, func(mark string) bool { return mark == m.own }), nil
}

// Leave publishes a mark.
func (m *Marks) Leave(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, m.connection.timeout) // FlushWithContext requires a deadline
	defer cancel()
	m.own = ""
	if err := m.connection.up(ctx); err != nil {
		return err
	}
	if err := m.connection.conn.Publish(m.subject, []byte(mark)); err != nil {
		return err
	}
	m.own = mark
	return m.connection.conn.FlushWithContext(ctx)
}
