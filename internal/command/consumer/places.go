package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// where is what a partition has, or why that is not known.
type where struct {
	topicID    string // empty: not known either
	first, end int64
	reached    int64 // where the cursor was before the end was asked for; 0: there was none
	err        error
}

// locate reads the cursors, and then asks the brokers, for each topic alone: what one does not answer keeps no other. It returns an error if no broker answers for any.
func (s *session) locate(ctx context.Context, places []place) (map[place]where, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	of := map[string][]int32{}
	for _, at := range places {
		of[at.topic] = append(of[at.topic], at.partition)
	}
	reached := map[place]int64{}
	for topic := range of {
		cursors, err := store.New(s.db).CommandCursors(ctx, topic)
		if err != nil {
			return nil, err
		}
		for _, c := range cursors {
			reached[place{topic, c.Partition}] = c.Next
		}
	}
	var mu sync.Mutex
	var topics sync.WaitGroup
	all := map[place]where{}
	for topic, partitions := range of {
		topics.Go(func() {
			found := s.locateIn(ctx, topic, partitions)
			for at, w := range found {
				w.reached = reached[at]
				found[at] = w
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, found)
		})
	}
	topics.Wait()
	var last error
	for _, w := range all {
		if _, answered := errors.AsType[*kerr.Error](w.err); w.err == nil || answered {
			return all, nil
		}
		last = w.err
	}
	return nil, last
}

// locateIn asks for partitions of a topic.
func (s *session) locateIn(ctx context.Context, topic string, partitions []int32) map[place]where {
	admin := kadm.NewClient(s.client)
	details, failed := admin.ListTopics(ctx, topic)
	var first, end kadm.ListedOffsets
	var noFirst, noEnd error
	topicID := ""
	if d := details[topic]; failed == nil {
		failed = d.Err
	}
	if failed == nil { // beside errors there are the offsets of those that have none
		topicID = details[topic].ID.String()
		first, noFirst = admin.ListStartOffsets(ctx, topic)
		end, noEnd = admin.ListEndOffsets(ctx, topic)
	}
	all := map[place]where{}
	for _, partition := range partitions {
		at := place{topic, partition}
		_, there := details[topic].Partitions[partition]
		from, ok := first.Lookup(topic, partition)
		upto, okay := end.Lookup(topic, partition)
		err := cmp.Or(failed, from.Err, upto.Err)
		switch {
		case err != nil:
		case !there:
			err = kerr.UnknownTopicOrPartition
		case !ok:
			err = about(at, noFirst)
		case !okay:
			err = about(at, noEnd)
		}
		if err != nil {
			all[at] = where{topicID: topicID, err: fmt.Errorf("the offsets are not known: %w", err)}
			continue
		}
		all[at] = where{topicID: topicID, first: from.Offset, end: upto.Offset}
	}
	return all
}

// hear asks where partitions end: what transactions hold back does not come by fetching.
func (s *session) hear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s.mu.Lock()
	parts := maps.Clone(s.parts)
	s.mu.Unlock()
	var topics []string
	for at := range parts {
		if !slices.Contains(topics, at.topic) {
			topics = append(topics, at.topic)
		}
	}
	if len(topics) == 0 {
		return // all topics would be asked for
	}
	admin := kadm.NewClient(s.client)
	end, _ := admin.ListEndOffsets(ctx, topics...) // beside errors there are the offsets of those that have none
	stable, _ := admin.ListCommittedOffsets(ctx, topics...)
	for at, p := range parts {
		upto, ok := end.Lookup(at.topic, at.partition)
		readable, okay := stable.Lookup(at.topic, at.partition)
		if ok && okay && upto.Err == nil && readable.Err == nil {
			p.hear(upto.Offset, readable.Offset)
		}
	}
}

// about is the part of an error, of which requests to several brokers have some, that is about a partition.
func about(at place, err error) error {
	several, ok := errors.AsType[*kadm.ShardErrors](err)
	if !ok {
		return cmp.Or(err, errors.New("the brokers do not tell them"))
	}
	for _, one := range several.Errs {
		request, ok := one.Req.(*kmsg.ListOffsetsRequest)
		if ok && slices.ContainsFunc(request.Topics, func(t kmsg.ListOffsetsRequestTopic) bool {
			return t.Topic == at.topic && slices.ContainsFunc(t.Partitions, func(p kmsg.ListOffsetsRequestTopicPartition) bool { return p.Partition == at.partition })
		}) {
			return one.Err
		}
	}
	return err
}

// adjust lets fetching begin where PostgreSQL says. Partitions that are held are left out, or paused. It tries until it knows, or the
// partitions are taken away.
func (s *session) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for last := ""; ; {
		starts, err := s.places(ctx, offsets)
		if err == nil {
			return starts, nil
		}
		if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			s.o.Log.WarnContext(ctx, "cannot begin with partitions", "error", err)
		}
		sleep(ctx, askEvery)
		if ctx.Err() != nil {
			return nil, err
		}
	}
}

func (s *session) places(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	if len(offsets) == 0 {
		return offsets, nil
	}
	var asked []place
	for topic, partitions := range offsets {
		for partition := range partitions {
			asked = append(asked, place{topic, partition})
		}
	}
	if err := s.tellLosses(ctx); err != nil {
		return nil, err
	}
	all, err := s.locate(ctx, asked)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	type begin struct {
		where
		next int64
		held string
	}
	begins := map[place]begin{}
	for at, w := range all {
		if w.err != nil {
			begins[at] = begin{where: w}
			continue
		}
		next, held, err := store.New(s.db).CommandPartition(ctx, at.topic, at.partition, w.topicID, w.first, w.end, w.reached)
		if err != nil {
			return nil, err
		}
		begins[at] = begin{w, next, held}
	}
	found := map[string]map[int32]kgo.Offset{}
	for at, b := range begins {
		switch {
		case b.held == "" && b.err == nil:
			s.start(at, start{b.topicID, b.next})
		case b.held != "" || b.topicID == "":
			s.hold(at, hold{why: b.err}, cmp.Or(b.held, fmt.Sprint(b.err)))
			continue
		default: // refetch sets its offset, when it is known
			s.hold(at, hold{b.err, b.topicID}, b.err.Error())
			s.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.partition}})
		}
		if found[at.topic] == nil {
			found[at.topic] = map[int32]kgo.Offset{}
		}
		found[at.topic][at.partition] = kgo.NewOffset().At(b.next).WithEpoch(-1)
	}
	return found, nil
}

func (s *session) hold(at place, h hold, detail string) {
	s.o.Log.WarnContext(s.ctx, "held", "topic", at.topic, "partition", at.partition, "detail", detail)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[at] = h
}
