package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

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
	nudges int // of poll: how often the client is still told to fetch

	mu        sync.Mutex
	refused   error     // by the group; nil: it was joined since
	unfetched error     // why records of a broker, or of a topic, could not be fetched last; nil: they could
	at        time.Time // of unfetched
	assigned  map[place]bool
	parts     map[place]*part
	held      map[place]hold  // partitions that are not begun with
	again     map[place]start // partitions that are to be fetched, after they were not
	committed map[place]int64
}

// A hold is why a partition is not begun with.
type hold struct {
	why     error  // nil: the database holds it
	topicID string // the client has the partition of this topic, paused; empty: it does not have it
}

// A start is where fetching a partition begins.
type start struct {
	topicID string
	next    int64
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
func (s *session) joined(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = nil
	for _, at := range placesOf(added) {
		s.assigned[at] = true
	}
}

// A part is a partition that is this member's.
type part struct {
	*feed
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs the worker of a partition.
func (s *session) start(at place, from start) {
	s.stop([]place{at})
	read := reader{topic: at.topic, topicID: from.topicID, service: serviceOf(at.topic, s.o.Topics), cluster: s.o.Cluster}
	f := &feed{topicID: from.topicID, most: s.o.InFlight, begin: from.next, end: from.next, epoch: -1, woken: make(chan struct{}, 1)}
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
		Topic: at.topic, Partition: int(at.partition), TopicID: from.topicID, Batch: s.o.Batch, Feed: lostFeed{f, s}, Sharing: s.sharing, Passed: s.passed(at),
	})
	ctx, cancel := context.WithCancel(s.ctx)
	p := &part{feed: f, cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	s.parts[at] = p
	delete(s.held, at)
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
		delete(s.assigned, at)
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
		limited, cancel := context.WithTimeout(s.ctx, askEvery) // partitions may be there to be tried again
		fetches := s.client.PollFetches(limited)
		if fetches.IsClientClosed() {
			s.end(errors.New("the client is closed"))
		}
		s.take(fetches, limited.Err())
		cancel()
		s.refetch()
		s.client.AllowRebalance()
	}
	s.client.AllowRebalance()
}

// take hands over what a poll has fetched. over is its own error, if its time is over.
func (s *session) take(fetches kgo.Fetches, over error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if isLoss(err) { // first: the client has gone back, and what comes with it may leave a gap
			s.unfetchable(place{topic, partition}, err)
		}
	})
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if at := s.part(place{p.Topic, p.Partition}); at != nil && len(p.Records) > 0 {
			s.frames.expect(p.Records)
			at.add(p.FetchPartition) // those before an error, too
		}
	})
	fetches.EachError(func(topic string, partition int32, err error) {
		switch {
		case s.ctx.Err() != nil, isLoss(err), topic == "" && over != nil && errors.Is(err, over):
		case topic != "" && partition >= 0:
			s.unfetchable(place{topic, partition}, err)
		default:
			s.impeded(topic, err)
		}
	})
}

// part is a partition that this member reads; nil: it does not.
func (s *session) part(at place) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[at]
}

// impeded takes in an error of a topic as a whole, or of a broker: topic is empty. The client goes on by itself when it can.
func (s *session) impeded(topic string, err error) {
	if topic == "" {
		most, _ := s.client.OptValue(kgo.BrokerMaxReadBytes).(int32)
		err = fmt.Errorf("records cannot be fetched: %w; an answer of a broker may have %d bytes, and a batch of records must fit: "+
			"tidemark command seek passes over one that does not", err, most)
	} else {
		err = fmt.Errorf("topic %s: %w", topic, err)
	}
	s.mu.Lock()
	before := s.at
	s.unfetched, s.at = err, time.Now()
	s.mu.Unlock()
	if time.Since(before) > unfetchedFor { // its text may differ each time
		s.o.Log.WarnContext(s.ctx, "cannot fetch", "error", err)
	}
}

// unfetchable lets a partition wait that cannot be fetched. The others go on, and so does its worker, with what it has. The client also
// tells of partitions that are another member's.
func (s *session) unfetchable(at place, err error) {
	s.mu.Lock()
	p, ours, before := s.parts[at], s.assigned[at], s.held[at]
	if p == nil && ours { // it was never begun with
		s.held[at] = hold{err, before.topicID}
	}
	s.mu.Unlock()
	if p == nil {
		if ours && before.why == nil {
			s.o.Log.WarnContext(s.ctx, "held", "topic", at.topic, "partition", at.partition, "detail", err)
		}
		return
	}
	if p.fail(err) {
		s.o.Log.WarnContext(s.ctx, "cannot fetch a partition", "topic", at.topic, "partition", at.partition, "error", err)
	}
	if lost, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		s.lose(at, p, lost.ResetTo)
	}
}

// watch ends the session when a gate closes, commits offsets for tools that show the group's lag, and looks whether all is well.
func (s *session) watch() {
	var looked, heard time.Time
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
		if time.Since(heard) > hearEvery {
			heard = time.Now()
			s.hear(s.ctx)
		}
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

// still says why a partition is held, if it is.
func (s *session) still(at place, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, held := s.held[at]; held {
		s.held[at] = hold{why, h.topicID}
	}
}

// kept is the first partition that an error keeps from being read, and how many more there are; nil: none is.
func (s *session) kept() error {
	s.mu.Lock()
	all := map[place]error{}
	for at, h := range s.held {
		if h.why != nil {
			all[at] = h.why
		}
	}
	for at, p := range s.parts {
		if why := cmp.Or(p.failure(), p.waits()); why != nil {
			all[at] = why
		}
	}
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	at, others := names[0], ""
	if len(names) > 1 {
		others = fmt.Sprintf(", and %d more", len(names)-1)
	}
	return fmt.Errorf("partition %d of %s%s: %w", at.partition, at.topic, others, all[at])
}
