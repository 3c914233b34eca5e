package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A loss is that Kafka has lost the end of what was fetched of a partition: another leader has other records at these offsets, or will have.
type loss struct {
	place
	topicID string
}

func isLoss(err error) bool {
	_, is := errors.AsType[*kgo.ErrDataLoss](err)
	return is
}

// lose takes in a loss. The partition is not fetched any more.
func (s *session) lose(at place, p *part, why *kgo.ErrDataLoss) {
	s.Consumer.mu.Lock()
	s.losses[loss{at, p.topicID}] = why.ResetTo
	s.Consumer.mu.Unlock()
	_ = s.tellLosses(s.ctx) // told again by mend
}

// tellLosses tells the database of losses, and ends the session then: a pass under way may have moved the cursor, so only when none is can
// it be known whether the cursor is past what is lost. What it does not know is told by a later session.
func (s *session) tellLosses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s.Consumer.mu.Lock()
	losses := maps.Clone(s.losses)
	s.Consumer.mu.Unlock()
	for l, kept := range losses {
		if err := store.New(s.db).CommandPartitionLost(ctx, l.topic, l.partition, l.topicID, kept); err != nil {
			return err
		}
		s.Consumer.mu.Lock()
		delete(s.losses, l)
		s.Consumer.mu.Unlock()
		if s.part(l.place) != nil {
			s.end(fmt.Errorf("partition %d of %s: Kafka has lost the records from %d on", l.partition, l.topic, kept))
		}
	}
	return nil
}
