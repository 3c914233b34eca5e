package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// lose takes in a loss: of what was fetched, Kafka has what is before kept. The partition is not fetched any more.
func (s *session) lose(at place, p *part, kept int64) {
	s.Consumer.mu.Lock()
	s.losses[loss{at, p.topicID}] = kept
	s.Consumer.mu.Unlock()
	_ = s.tellLosses(s.ctx) // told again by mend
}

// remains asks the leader up to where it has what was fetched of a partition that is not fetched now. The client asks when the leader changes, and
// an offset that is set meanwhile takes its question back. It returns an error if asking again may help.
func (s *session) remains(ctx context.Context, at place, p *part) (int64, error) {
	end, _ := p.last()
	if end.Epoch < 0 {
		return end.Offset, nil
	}
	asked, topic, partition := kmsg.NewPtrOffsetForLeaderEpochRequest(), kmsg.NewOffsetForLeaderEpochRequestTopic(), kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	partition.Partition, partition.LeaderEpoch = at.partition, end.Epoch
	topic.Topic, topic.Partitions = at.topic, append(topic.Partitions, partition)
	asked.Topics = append(asked.Topics, topic)
	answer, err := asked.RequestWith(ctx, s.client)
	if err == nil && (len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1) {
		err = errors.New("the leader does not tell")
	}
	if err == nil {
		is := answer.Topics[0].Partitions[0]
		if err = kerr.ErrorForCode(is.ErrorCode); err == nil && is.EndOffset >= 0 { // negative: the leader does not know the epoch
			return min(is.EndOffset, end.Offset), nil
		}
	}
	if ctx.Err() != nil || kerr.IsRetriable(err) || kgo.IsRetryableBrokerErr(err) {
		return 0, err
	}
	return end.Offset, nil
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
