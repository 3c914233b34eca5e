package consumer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// An Outcome is what became of a command. Its name is empty if no such command is registered, since a record can name anything.
type Outcome struct {
	store.CommandOutcome
	store.CommandName
}

// passed tells what became of records of a partition.
func (s *session) passed(at place) func(context.Context, []store.Call, []store.CommandOutcome) {
	return func(ctx context.Context, calls []store.Call, outcomes []store.CommandOutcome) {
		for i, o := range outcomes {
			name := calls[i].Name
			if command.Reason(o.Code).Unregistered() {
				name = store.CommandName{}
			}
			s.o.Observe(Outcome{o, name})
			s.tell(ctx, calls[i].About, o, "topic", at.topic, "partition", at.partition, "offset", calls[i].Offset)
		}
	}
}

// retried tells what became of a parked command.
func (c *Consumer) retried(ctx context.Context, r store.Retried) {
	o := store.CommandOutcome{Status: r.Status, Code: r.Code, Letter: r.Status == "failed_terminal"}
	c.o.Observe(Outcome{o, store.CommandName{Service: r.Service, Command: r.Command, Version: r.Version}})
	c.tell(ctx, r.About, o, "retry", true)
}

// tell writes the log line of a command: for debugging only, unless it was refused, has failed or waits. What the producer wrote
// as payload, key or context is not in it.
func (c *Consumer) tell(ctx context.Context, about store.About, o store.CommandOutcome, more ...any) {
	level := slog.LevelDebug
	if strings.HasPrefix(o.Status, "failed") || o.Status == "rejected" {
		level = slog.LevelInfo
	}
	if !c.o.Log.Enabled(ctx, level) {
		return
	}
	c.o.Log.Log(ctx, level, "command", append([]any{
		"event_id", about.EventID, "service", about.Service, "command", about.Command, "trace_id", about.TraceID, "status", o.Status, "code", o.Code,
	}, more...)...)
}

// A Partition is one that this member reads.
type Partition struct {
	Topic     string
	Partition int32
	Behind    int64 // records that were not passed, as far as they were heard of
}

// Partitions are those of this member.
func (c *Consumer) Partitions() (all []Partition) {
	s := c.current.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, p := range s.parts {
		all = append(all, Partition{at.topic, at.partition, p.behind()})
	}
	slices.SortFunc(all, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

// Gate is what keeps the consumer from the group; empty: nothing does.
func (c *Consumer) Gate() string { return c.policy.Load().Gate }

// Reach asks a broker, and says why none answers. Behind a closed gate it asks none.
func (c *Consumer) Reach(ctx context.Context) error {
	if !c.open() {
		return nil
	}
	s := c.current.Load()
	if s == nil {
		return fmt.Errorf("it is not in the group %s", c.o.Group)
	}
	return s.client.Ping(ctx)
}
