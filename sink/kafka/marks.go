package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemarkhq/tidemark/internal/mark"
)

// Marks are texts that daemons leave at the brokers for each other: as metadata of the offsets of a consumer group without members. The
// group never reads. Its offsets are the ends of a topic's partitions, so that monitors of consumers see no lag.
type Marks struct {
	connection *Connection
	group      string
	last       map[string]string // by topic: the mark that was there at the last look, or was left since
}

// Marks returns the marks of a group. They are used by one goroutine.
func (c *Connection) Marks(group string) *Marks {
	return &Marks{connection: c, group: group, last: map[string]string{}}
}

// mostPlaces is of how many topics the group's marks are known.
const mostPlaces = 1000

// Heard returns the marks that others have left since the last look: a few, and nothing that is no mark. What is there at the first look may
// be old, and is not among them.
func (m *Marks) Heard(ctx context.Context) (heard []string, err error) {
	err = m.connection.ask(ctx, func(client *kadm.Client) error {
		offsets, err := client.FetchOffsets(ctx, m.group)
		if err == nil {
			err = offsets.Error()
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			if o.Partition != 0 {
				return
			}
			last, known := m.last[o.Topic]
			switch {
			case !known && len(m.last) >= mostPlaces:
			case mark.Valid(o.Metadata):
				if known && o.Metadata != last {
					heard = mark.Add(heard, o.Metadata)
				}
				m.last[o.Topic] = o.Metadata
			case !known:
				m.last[o.Topic] = ""
			}
		})
		return err
	})
	return heard, err
}

// Leave leaves a mark, in place of the last one.
func (m *Marks) Leave(ctx context.Context, mark string) error {
	topics := m.connection.topics()
	if len(topics) == 0 {
		return nil
	}
	return m.connection.ask(ctx, func(client *kadm.Client) error {
		ends, err := client.ListEndOffsets(ctx, topics...)
		if err != nil {
			return err
		}
		var why error = kerr.UnknownTopicOrPartition
		for _, topic := range topics {
			end, ok := ends.Lookup(topic, 0)
			if !ok || end.Err != nil {
				why = cmp.Or(end.Err, why)
				continue // the topic is missing: another one will do
			}
			var offsets kadm.Offsets
			for _, e := range ends[topic] { // a partition without an offset would count as lag
				if e.Err == nil {
					offsets.Add(kadm.Offset{Topic: topic, Partition: e.Partition, At: e.Offset, LeaderEpoch: -1, Metadata: mark})
				}
			}
			if err := client.CommitAllOffsets(ctx, m.group, offsets); err != nil {
				return fmt.Errorf("consumer group %s: %w", m.group, err)
			}
			m.last[topic] = mark
			return nil
		}
		return fmt.Errorf("none of the topics can be read: %w", why)
	})
}

// ask lends a client for requests that are not deliveries. It is none of the producers that deliveries use again: an error here, such as a
// right on the group that is missing, or a coordinator that hangs, must not close those.
func (c *Connection) ask(ctx context.Context, do func(*kadm.Client) error) error {
	c.mu.Lock()
	p, closed := c.aside, c.closed
	c.aside = nil
	c.mu.Unlock()
	if closed {
		return errClosed
	}
	if p == nil {
		var err error
		if p, err = c.reach(ctx); err != nil {
			return err
		}
	}
	err := do(kadm.NewClient(p.client))
	var answer *kerr.Error
	c.putAside(p, err == nil || errors.As(err, &answer))
	return err
}

// putAside takes the client of ask back. It keeps it for the next time or closes it.
func (c *Connection) putAside(p *producer, keep bool) {
	c.mu.Lock()
	if keep && !c.closed && c.aside == nil {
		c.aside = p
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.release(p, false)
}

// opens counts the sinks of a topic.
func (c *Connection) opens(topic string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[topic] += n; c.open[topic] == 0 {
		delete(c.open, topic)
	}
}

// mostTopics are asked for a place for a mark.
const mostTopics = 20

// topics are those that open sinks deliver to.
func (c *Connection) topics() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Sorted(maps.Keys(c.open))
	return all[:min(len(all), mostTopics)]
}
