package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// mend asks for partitions that are held, and for those that cannot be fetched. It may wait for brokers.
func (s *session) mend() {
	for s.ctx.Err() == nil {
		sleep(s.ctx, min(commitEvery, s.o.Lease))
		s.release(s.ctx)
	}
}

// release has partitions fetched that may be now: those that were held, and those whose turn it is again. Where the client does not have
// the partition, or has that of another topic of this name, the session ends.
func (s *session) release(ctx context.Context) {
	if s.tellLosses(ctx) != nil {
		return // told again
	}
	s.mu.Lock()
	held, failed := maps.Clone(s.held), map[place]*part{}
	for at, p := range s.parts {
		if p.due() {
			failed[at] = p
		}
	}
	s.mu.Unlock()
	asked := slices.AppendSeq(slices.Collect(maps.Keys(held)), maps.Keys(failed))
	if len(asked) == 0 {
		return
	}
	all, err := s.locate(ctx, asked)
	if err != nil {
		return // asked again
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for at, w := range all {
		p := failed[at]
		switch {
		case w.err != nil:
			s.still(at, w.err)
			continue
		case p != nil && p.fits(w):
			end, _ := p.last()
			switch kept, err := s.remains(ctx, at, p); {
			case err != nil: // asked again
			case kept < end.Offset:
				s.lose(at, p, kept)
				return
			default:
				s.fetchAgain(at, start{})
			}
			continue
		case p != nil: // what became of it, the next session finds out, when no pass is under way
			s.end(fmt.Errorf("partition %d of %s: %w", at.partition, at.topic, p.failure()))
			return
		}
		next, why, err := store.New(s.db).CommandPartition(ctx, at.topic, at.partition, w.topicID, w.first, w.end, w.reached)
		switch {
		case err != nil: // asked again
		case why != "":
			s.still(at, nil)
		case held[at].topicID != w.topicID:
			s.end(fmt.Errorf("partition %d of %s may go on: %w", at.partition, at.topic, errRenewed))
		default:
			s.fetchAgain(at, start{w.topicID, next})
		}
	}
}

func (s *session) fetchAgain(at place, from start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again[at] = from
}

// refetch begins with partitions that were held, and goes on to fetch those whose turn it is again, from where their feeds end: the client
// may be elsewhere, or have given the partition up. It is for poll alone, between two fetches: no record is under way that was fetched from
// elsewhere, and no partition is taken away meanwhile.
func (s *session) refetch() {
	s.mu.Lock()
	again := s.again
	s.again = map[place]start{}
	s.mu.Unlock()
	if len(again) == 0 {
		// Offsets that are set stop the client's fetching and begin it anew. Where one follows the other at once, the beginning can be lost,
		// and nothing would be fetched until some partition moves.
		if s.nudges > 0 {
			s.nudges--
			s.client.ResumeFetchPartitions(nil)
		}
		return
	}
	given := s.client.CommittedOffsets() // as adjust gave them, until the partition is taken away
	first, then := map[string]map[int32]kgo.EpochOffset{}, map[string]map[int32]kgo.EpochOffset{}
	var begin []func()
	for at, from := range again {
		next, goOn := kgo.EpochOffset{Epoch: -1, Offset: from.next}, func() { s.start(at, from) }
		if p := s.part(at); p != nil {
			end, held := p.last()
			if !held {
				continue
			}
			next, goOn = end, p.retry
		} else if _, has := given[at.topic][at.partition]; !has {
			continue // not yet, or not any more
		}
		if first[at.topic] == nil {
			first[at.topic], then[at.topic] = map[int32]kgo.EpochOffset{}, map[int32]kgo.EpochOffset{}
		}
		first[at.topic][at.partition] = kgo.EpochOffset{Epoch: -1, Offset: next.Offset + 1}
		then[at.topic][at.partition] = next // with the epoch by which the client finds that another leader lacks what is before
		begin = append(begin, goOn)
	}
	// The client does nothing for an offset that it takes for its own. Both come before the partitions are fetched.
	s.client.SetOffsets(first)
	s.client.SetOffsets(then)
	for _, goOn := range begin {
		goOn()
	}
	s.nudges = 3
}
