// Package consumer reads commands from Kafka: it takes partitions as a member of a consumer group, fetches their records from
// where their cursors in PostgreSQL are, and runs a worker for each, which passes them.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// Options are what a consumer needs. All are required but Slots and Unnamed.
type Options struct {
	Client  func() ([]kgo.Opt, error) // how to connect
	Topics  []string                  // names; one that ends in ".*" is every topic that begins so, each of one service
	Group   string
	Cluster string // name of the cluster, as signatures have it
	Unnamed bool   // Cluster is the name of a connection, which other clusters may have, too

	ServerSide bool       // the brokers assign the partitions (KIP-848)
	Registry   *sr.Client // of schemas; nil: records are JSON alone

	Slots    *worker.Slots // of the pool; nil: no limit
	Batch    int           // records in a pass
	InFlight int           // records of a partition that are fetched ahead

	// Lease is that of the workers. The group gives the partitions of a member that is silent for so long to others: after 6 s
	// at the least, which is the least that brokers allow by default, and 45 s at most.
	Lease   time.Duration
	Worker  func(topic string, partition int) worker.Options
	Log     *slog.Logger
	Observe func(Outcome) // is told of each command; it must not block
}

// Consumer is a member of the group, while the gate of commands is open.
type Consumer struct {
	o       Options
	db      store.Pool
	policy  atomic.Pointer[known]
	current atomic.Pointer[session] // nil: between sessions
	hurry   chan struct{}           // has ask ask at once
	trouble trouble
	frames  *frames
	sharing *worker.Sharing

	mu      sync.Mutex
	renew   func()                  // ends the session; nil: between sessions
	failing map[string]func() error // of the workers
	waiting map[*feed]struct{}      // for a newer policy
	slow    time.Time               // a record waited last because of a policy that was not fresh when it came
	losses  map[loss]int64          // that the database does not know yet, and the first offset that was lost
}

// known is the policy and when it was asked for.
type known struct {
	policy
	at   time.Time
	took time.Duration
}

const (
	askEvery     = 500 * time.Millisecond
	askSoonest   = 50 * time.Millisecond // whatever forgers send
	freshFor     = time.Second           // a revoked key is refused within this time
	askTime      = 5 * time.Second
	mostRetries  = 50
	againAfter   = 5 * time.Second // a session that cannot go on is followed by another, or after a lease
	commitEvery  = 5 * time.Second
	lookEvery    = time.Minute
	hearEvery    = 15 * time.Second
	metadataAge  = 10 * time.Second
	fetchBytes   = 16 << 20
	leastSession = 6 * time.Second
	mostSession  = 45 * time.Second
	heartbeats   = 10 // in a session
	rebalances   = 2  // sessions: a member that died while others join holds them up for so long
)

// New returns a consumer that does nothing yet.
func New(db store.Pool, o Options) *Consumer {
	c := &Consumer{o: o, db: db, frames: newFrames(o.Registry), sharing: worker.NewSharing(o.Batch, o.Slots), hurry: make(chan struct{}, 1), failing: map[string]func() error{}, waiting: map[*feed]struct{}{}, losses: map[loss]int64{}}
	c.policy.Store(&known{})
	return c
}

// errRenewed is why a session ends that another one follows at once.
var errRenewed = errors.New("needs a new client")

// Renew has the consumer leave the group and join it again with what Options.Client returns then. It does not wait for that.
func (c *Consumer) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renew != nil {
		c.renew()
	}
}

func (c *Consumer) setRenew(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew = f
}

// Run consumes until ctx is done. Then it brings the passes under way to their end, releases the leases and leaves the group.
func (c *Consumer) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { c.ask(ctx) })
	all.Go(func() { c.retry(ctx) })
	all.Go(func() { c.frames.ask(ctx, c.wake) })
	for ctx.Err() == nil {
		if !c.open() {
			c.trouble.good()
			sleep(ctx, askEvery)
			continue
		}
		switch err := c.session(ctx); {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, errRenewed):
			c.o.Log.InfoContext(ctx, "leaves the group and joins it anew", "group", c.o.Group, "reason", err)
		default:
			err = c.explained(err)
			c.trouble.bad(err)
			c.o.Log.WarnContext(ctx, "leaves the group and joins it again", "group", c.o.Group, "error", err)
			sleep(ctx, c.pause())
		}
	}
}

// Failing is what the workers of partitions meet again and again, by the names of their cursors, and what keeps all of them from
// reading, by the name of the worker.
func (c *Consumer) Failing() map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]error{}
	for name, failing := range c.failing {
		if err := failing(); err != nil {
			all[name] = err
		}
	}
	if err := c.trouble.lasting(c.patience()); err != nil {
		all[store.CommandWorker] = err
	}
	return all
}

// ask keeps the policy fresh.
func (c *Consumer) ask(ctx context.Context) {
	for last := ""; ctx.Err() == nil; {
		select {
		case <-c.hurry: // this time serves it
		default:
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, askTime)
		p, err := readPolicy(limited, store.New(c.db), c.policy.Load().schemas)
		cancel()
		if err != nil {
			if ctx.Err() == nil && err.Error() != last {
				last = err.Error()
				c.o.Log.WarnContext(ctx, "cannot ask for the gate of commands", "error", err)
			}
			sleep(ctx, askEvery)
			continue
		}
		last = ""
		c.learn(&known{p, began, time.Since(began)})
		c.report(ctx)
		sleep(ctx, askSoonest)
		select {
		case <-c.hurry:
		case <-time.After(askEvery - askSoonest):
		case <-ctx.Done():
		}
	}
}

// learn lets the feeds go on that wait for a newer policy.
func (c *Consumer) learn(p *known) {
	c.policy.Store(p)
	c.wake()
}

// wake lets the feeds go on that wait for what was to be learned.
func (c *Consumer) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.waiting {
		f.wake()
	}
	clear(c.waiting)
}

// judge reads a record. A shared topic needs a fresh policy; and one that was asked for before the record was fetched does not
// refuse an identity: the key may have been added in between. Not ok: f is woken when there is a newer policy.
func (c *Consumer) judge(d reader, r fetched, f *feed) (store.Call, bool) {
	value, problem, ok := c.frames.value(r.Value)
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting[f] = struct{}{}
		return store.Call{}, false
	}
	p := c.policy.Load()
	call, reason := d.read(r.Record, value, problem, p.policy)
	if d.service != "" || time.Since(p.at) < freshFor && (p.at.After(r.at) || !strings.HasPrefix(string(reason), "identity.")) {
		return call, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[f] = struct{}{}
	if p.took >= freshFor {
		c.slow = time.Now()
	}
	select {
	case c.hurry <- struct{}{}:
	default:
	}
	return store.Call{}, false
}

// open: no gate of commands is closed. While the database does not answer, the last answer counts: nothing can be passed then.
func (c *Consumer) open() bool {
	p := c.policy.Load()
	return !p.at.IsZero() && p.Gate == ""
}

// retry tries what is parked: many at a time, unless one of them may not come to an end, or one waits for a row of a command that waits
// for another's.
func (c *Consumer) retry(ctx context.Context) {
	most := mostRetries
	for last := ""; ctx.Err() == nil; {
		var tried []store.Retried
		if c.open() {
			var err error
			tried, err = c.retryParked(ctx, most)
			switch {
			case err == nil:
				last = ""
				most = min(2*most, mostRetries)
				for _, r := range tried {
					c.retried(ctx, r)
				}
			case most > 1 && (store.TimedOut(err) || store.HasCode(err, "40P01") || ctx.Err() == nil && store.SessionEnded(err)):
				most = 1
				continue
			case ctx.Err() == nil && err.Error() != last:
				last = err.Error()
				c.o.Log.WarnContext(ctx, "cannot try parked commands", "error", err)
			}
		}
		if len(tried) == 0 {
			sleep(ctx, 2*askEvery)
		}
	}
}

// retryParked waits for a slot as passes do, since it runs commands.
func (c *Consumer) retryParked(ctx context.Context, most int) ([]store.Retried, error) {
	free, err := c.o.Slots.Take(ctx, askTime)
	if err != nil {
		return nil, err
	}
	defer free()
	return store.New(c.db).CommandRetry(ctx, most)
}

// session is the time of one client in the group. It ends when ctx is done, a gate closes, or the client cannot go on.
func (c *Consumer) session(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := &session{Consumer: c, ctx: ctx, end: end, began: time.Now(), assigned: map[place]bool{}, parts: map[place]*part{}, held: map[place]hold{}, again: map[place]start{}}
	c.setRenew(func() { end(fmt.Errorf("the connection has changed: %w", errRenewed)) }) // first: a change is seen by Client, or ends what Client has returned
	defer c.setRenew(nil)
	options, err := c.o.Client()
	if err != nil {
		return err
	}
	if options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer())); c.o.ServerSide {
		options = append(options, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	}
	session := min(max(c.o.Lease, leastSession), mostSession)
	// The client outlives ctx: it commits and leaves the group then.
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	_, err = kgo.NewClient(append(options, kgo.WithContext(hard), kgo.WithHooks(s),
		kgo.ConsumerGroup(c.o.Group), kgo.ConsumeRegex(), kgo.ConsumeTopics(patterns(c.o.Topics)...),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.BlockRebalanceOnPoll(), kgo.AdjustFetchOffsetsFn(s.adjust), kgo.OnPartitionsAssigned(s.joined), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost),
		kgo.SessionTimeout(session), kgo.RebalanceTimeout(rebalances*session), kgo.HeartbeatInterval(session/heartbeats),
		kgo.MetadataMaxAge(metadataAge), kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytes/4))...)
	if err != nil {
		return err
	}
	c.current.Store(s)
	defer c.current.Store(nil)
	var beside sync.WaitGroup
	beside.Go(s.watch)
	beside.Go(s.mend)
	s.poll()
	beside.Wait()
	s.stop(s.all())
	leaving, cancel := context.WithTimeout(hard, askTime)
	defer cancel()
	s.commit(leaving)
	if err := s.client.LeaveGroupContext(leaving); err != nil {
		cut() // a broker answers when all members have joined, which may take their longest rebalance timeout
	}
	s.client.Close()
	// Close leaves the group too, and polls to empty its buffers: if that poll comes first, its leaving waits for it without end.
	s.client.AllowRebalance()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// patterns are the topics as regular expressions.
func patterns(topics []string) (all []string) {
	for _, t := range topics {
		if prefix, open := strings.CutSuffix(t, "*"); open {
			all = append(all, "^"+regexp.QuoteMeta(prefix)+".+$")
		} else {
			all = append(all, "^"+regexp.QuoteMeta(t)+"$")
		}
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
