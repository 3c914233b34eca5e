package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

type place struct {
	topic     string
	partition int32
}

func (p place) String() string {
	return fmt.Sprintf("%s/%d", store.CommandSource(p.topic), p.partition)
}

// A session is one client in the group.
type session struct {
	*Consumer
	ctx    context.Context //nolint:containedctx // the callbacks of the client have to end with it
	end    context.CancelCauseFunc
	client *kgo.Client
	began  time.Time

	mu        sync.Mutex
	refused   error     // by the group; nil: it was joined since
	unfetched error     // why a broker's records could not be fetched last; nil: they could
	at        time.Time // of unfetched
	parts     map[place]*part
	held      map[place]string // partitions that must not be read, and the id of their topic
	committed map[place]int64
}

// OnNewClient implements kgo.HookNewClient. The client calls back before NewClient has returned it.
func (s *session) OnNewClient(client *kgo.Client) { s.client = client }

// id is by what the brokers know Tidemark's clients.
func (s *session) id() string {
	id, _ := s.client.OptValue(kgo.ClientID).(string)
	return id
}

// OnGroupManageError implements kgo.HookGroupManageError.
func (s *session) OnGroupManageError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// joined hears of each assignment, also of one without partitions.
func (s *session) joined(context.Context, *kgo.Client, map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
}

// A part is a partition that is this member's.
type part struct {
	*feed
	cancel context.CancelFunc
	done   chan struct{}
}

// where is what a partition has.
type where struct {
	topicID    string
	first, end int64
}

// locate asks the brokers.
func (s *session) locate(ctx context.Context, topics []string) (map[place]where, error) {
	admin := kadm.NewClient(s.client)
	details, err := admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, err
	}
	first, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	end, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	all := map[place]where{}
	for _, d := range details {
		for _, p := range d.Partitions {
			from, ok := first.Lookup(d.Topic, p.Partition)
			upto, okay := end.Lookup(d.Topic, p.Partition)
			if err := errors.Join(d.Err, from.Err, upto.Err); err != nil || !ok || !okay {
				return nil, fmt.Errorf("the offsets of partition %d of %s are not known: %w", p.Partition, d.Topic, err)
			}
			all[place{d.Topic, p.Partition}] = where{d.ID.String(), from.Offset, upto.Offset}
		}
	}
	return all, nil
}

// adjust lets fetching begin where PostgreSQL says. Partitions that are held are left out. It tries until it knows, or the
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
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if len(offsets) == 0 {
		return offsets, nil
	}
	all, err := s.locate(ctx, slices.Sorted(maps.Keys(offsets)))
	if err != nil {
		return nil, err
	}
	type start struct {
		where
		next int64
		held string
	}
	starts := map[place]start{}
	for topic, partitions := range offsets {
		for partition := range partitions {
			at := place{topic, partition}
			w, ok := all[at]
			if !ok {
				return nil, fmt.Errorf("there is no partition %d of %s", partition, topic)
			}
			next, held, err := store.New(s.db).CommandPartition(ctx, topic, partition, w.topicID, w.first, w.end)
			if err != nil {
				return nil, err
			}
			starts[at] = start{w, next, held}
		}
	}
	found := map[string]map[int32]kgo.Offset{}
	for at, st := range starts {
		if st.held != "" {
			s.o.Log.WarnContext(ctx, "held", "topic", at.topic, "partition", at.partition, "detail", st.held)
			s.hold(at, st.topicID)
			continue
		}
		if found[at.topic] == nil {
			found[at.topic] = map[int32]kgo.Offset{}
		}
		found[at.topic][at.partition] = kgo.NewOffset().At(st.next).WithEpoch(-1)
		s.start(at, st.topicID, st.next)
	}
	return found, nil
}

func (s *session) hold(at place, topicID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[at] = topicID
}

// start runs the worker of a partition.
func (s *session) start(at place, topicID string, next int64) {
	s.stop([]place{at})
	read := reader{topic: at.topic, topicID: topicID, service: serviceOf(at.topic, s.o.Topics), cluster: s.o.Cluster}
	f := &feed{topicID: topicID, most: s.o.InFlight, begin: next, end: next, woken: make(chan struct{}, 1)}
	f.read = func(r fetched) (store.Call, bool) { return s.judge(read, r, f) }
	f.pause = func(pause bool) {
		one := map[string][]int32{at.topic: {at.partition}}
		if pause {
			s.client.PauseFetchPartitions(one)
		} else {
			s.client.ResumeFetchPartitions(one)
		}
	}
	f.pause(false) // another assignment may have left it paused
	o := s.o.Worker(at.topic, int(at.partition))
	o.Worker, o.Wake, o.Poll = store.CommandWorker, f, nil
	w := worker.New(s.db, o, worker.Kafka{
		Topic: at.topic, Partition: int(at.partition), TopicID: topicID, Batch: s.o.Batch, Feed: lostFeed{f, s}, Sharing: s.sharing, Passed: s.passed(at),
	})
	ctx, cancel := context.WithCancel(s.ctx)
	p := &part{feed: f, cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	s.parts[at] = p
	s.mu.Unlock()
	s.Consumer.mu.Lock()
	s.failing[at.String()] = w.Failing
	s.Consumer.mu.Unlock()
	go func() {
		defer close(p.done)
		if err := w.Run(ctx); err != nil {
			s.end(err)
		}
	}()
}

// A lostFeed ends the session when its records have to be fetched anew.
type lostFeed struct {
	*feed
	s *session
}

// Place implements worker.Feed.
func (f lostFeed) Place(topicID string, next int64) error {
	err := f.feed.Place(topicID, next)
	if err != nil {
		f.s.end(err)
	}
	return err
}

// stop ends the workers of partitions: passes under way come to their end, and the leases are released.
func (s *session) stop(places []place) {
	s.mu.Lock()
	var stopped []*part
	for _, at := range places {
		if p := s.parts[at]; p != nil {
			p.cancel()
			stopped = append(stopped, p)
		}
		delete(s.held, at)
	}
	s.mu.Unlock()
	for _, p := range stopped {
		<-p.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Consumer.mu.Lock()
	defer s.Consumer.mu.Unlock()
	for _, at := range places {
		delete(s.failing, at.String())
	}
}

func (s *session) forget(places []place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range places {
		delete(s.parts, at)
		delete(s.committed, at)
	}
}

func placesOf(partitions map[string][]int32) (all []place) {
	for topic, list := range partitions {
		for _, partition := range list {
			all = append(all, place{topic, partition})
		}
	}
	return all
}

// revoked returns when nothing of the partitions is under way: what another member does then comes after it.
func (s *session) revoked(ctx context.Context, _ *kgo.Client, partitions map[string][]int32) {
	gone := placesOf(partitions)
	s.stop(gone)
	if len(gone) > 0 {
		s.commit(ctx)
	}
	s.forget(gone)
}

func (s *session) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	gone := placesOf(partitions)
	s.stop(gone)
	s.forget(gone)
}

func (s *session) all() []place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.parts))
}

// poll hands what is fetched to the partitions until the session ends.
func (s *session) poll() {
	for s.ctx.Err() == nil {
		fetches := s.client.PollFetches(s.ctx)
		if fetches.IsClientClosed() {
			s.end(errors.New("the client is closed"))
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if s.ctx.Err() != nil {
				return
			}
			if topic != "" {
				// The client does not fetch this partition any more. What became of it, the next session finds out.
				s.end(fmt.Errorf("partition %d of %s: %w", partition, topic, err))
				return
			}
			s.mu.Lock()
			before := s.at
			s.unfetched, s.at = err, time.Now()
			s.mu.Unlock()
			if time.Since(before) > unfetchedFor { // its text may differ each time
				s.o.Log.WarnContext(s.ctx, "cannot fetch", "error", err)
			}
		})
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			s.mu.Lock()
			at := s.parts[place{p.Topic, p.Partition}]
			s.mu.Unlock()
			if at != nil && p.Err == nil {
				s.frames.expect(p.Records)
				at.add(p.FetchPartition)
			}
		})
		s.client.AllowRebalance()
	}
	s.client.AllowRebalance()
}

// watch ends the session when a gate closes, commits offsets for tools that show the group's lag, asks for partitions that are held,
// and looks whether all is well.
func (s *session) watch() {
	var looked time.Time
	last := "" // error of look
	for next := s.began; s.ctx.Err() == nil; sleep(s.ctx, askEvery) {
		if !s.open() {
			s.end(nil)
			return
		}
		if !time.Now().After(next) {
			continue
		}
		next = time.Now().Add(min(commitEvery, s.o.Lease))
		s.commit(s.ctx)
		s.release(s.ctx)
		err := s.health(s.ctx)
		switch {
		case s.ctx.Err() != nil:
		case err != nil:
			s.trouble.bad(err)
		case time.Since(s.began) >= s.pause():
			s.trouble.good()
		}
		if err != nil || time.Since(looked) <= lookEvery {
			continue
		}
		switch err := s.look(s.ctx); {
		case err == nil:
			looked, last = time.Now(), ""
		case s.ctx.Err() == nil && err.Error() != last:
			last = err.Error()
			s.o.Log.WarnContext(s.ctx, "cannot look how topics are set up", "error", err)
		}
	}
}

// commit tells the group where the cursors are.
func (s *session) commit(ctx context.Context) {
	s.mu.Lock()
	offsets, moved := map[string]map[int32]kgo.EpochOffset{}, map[place]int64{}
	for at, p := range s.parts {
		if next := p.at(); next != s.committed[at] {
			if offsets[at.topic] == nil {
				offsets[at.topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[at.topic][at.partition] = kgo.EpochOffset{Epoch: -1, Offset: next}
			moved[at] = next
		}
	}
	s.mu.Unlock()
	if len(moved) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var failed error
	s.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
		failed = err
	})
	if failed != nil {
		return // a hint, which is given again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.committed == nil {
		s.committed = map[place]int64{}
	}
	maps.Copy(s.committed, moved)
}

// release ends the session when a partition that was held may go on.
func (s *session) release(ctx context.Context) {
	s.mu.Lock()
	held := maps.Clone(s.held)
	s.mu.Unlock()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	topics := map[string]bool{}
	for at := range held {
		topics[at.topic] = true
	}
	all, err := s.locate(ctx, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return // asked again
	}
	for at := range held {
		w, ok := all[at]
		if !ok {
			continue
		}
		if _, held, err := store.New(s.db).CommandPartition(ctx, at.topic, at.partition, w.topicID, w.first, w.end); err == nil && held == "" {
			s.end(fmt.Errorf("partition %d of %s may go on", at.partition, at.topic))
		}
	}
}
