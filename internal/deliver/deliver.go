// Package deliver is the handler that takes events to targets outside the database: a queue
// for each route, so that a slow or dead target holds up only itself.
package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// Opener opens the target of a route. The error says, in one line without secrets, why the target cannot be opened.
type Opener interface {
	Open(route store.Route) (sink.Sink, error)
}

// Permit says what the holder of the lease may do at this moment.
type Permit interface {
	// Allows reports whether this process holds the lease, the gates are open and the route is live and not paused.
	Allows(route int32) bool
	// AllowsDomain reports whether the gate of the domain is open, or the domain has none.
	AllowsDomain(domain string) bool
	// Changed returns a channel that is closed when the gate of a domain next opens or closes.
	Changed() <-chan struct{}
	// Epoch returns the epoch of the lease.
	Epoch() int64
}

// Observer is told of each delivery when it ends, with what was sent and the results in the same order, and of each
// breaker that opens or closes. Its methods must not block.
type Observer interface {
	Delivered(route string, sent []sink.Delivery, results []sink.Result, took time.Duration)
	Paused(route string, paused bool)
}

const (
	// pageWait is how long a page waits for its slowest target. What has not ended by
	// then goes on, pending, and the page is settled without it.
	pageWait = 200 * time.Millisecond
	// pageWaitAlone is how long it waits if there is no other route to be held up, and jobs of its own have not begun; once all have,
	// and slots are idle, it waits pageWait.
	pageWaitAlone = time.Second
	// ReopenAfter is the pause before a route that could not be opened is tried again.
	ReopenAfter = 30 * time.Second
)

// Deliverer sends events to their targets.
type Deliverer struct {
	opener  Opener
	permit  Permit
	observe Observer

	// InProcess, set before the first Act: the targets are functions of this process, and fail by event. So no breaker
	// pauses a route, and sink.Result.After replaces the delay of the retry policy.
	InProcess bool

	// Shared, set before the first Act: other shards of the worker deliver on the same routes.
	Shared bool

	// Transform, set before the first Act, makes the payloads that a route delivers which has a transform or columns
	// (store.TransformAlone). Nil: the targets do it, and answer Dropped.
	Transform func(ctx context.Context, route store.Route, payloads []json.RawMessage) ([]json.RawMessage, error)

	mostKeys int // waiting keys of a route that are counted one by one

	mu      sync.Mutex
	routes  map[int32]*route
	notices notices
	ready   chan struct{}
}

// A route has a queue, or the reason why its target cannot be opened.
type route struct {
	row       store.Route
	stale     bool // the queue was opened for an older row
	unordered bool // the latest queue kept no order
	queue     *queue
	broken    broken
	keys      *waiting // its queue's too, and only the queue touches it while there is one
}

// broken is when a route could not be opened, and why.
type broken struct {
	at  time.Time
	err error
}

// New returns a Deliverer without routes. It learns them from the pages that Act gets.
func New(opener Opener, permit Permit, observe Observer) *Deliverer {
	return &Deliverer{
		opener: opener, permit: permit, observe: observe, mostKeys: store.MaxKeys,
		routes: map[int32]*route{}, notices: newNotices(), ready: make(chan struct{}, 1),
	}
}

// Begin starts a lease. The worker calls it after every claim, while no delivery is under way; keys are the keys with
// pending events. Begin drops the results of an earlier lease, since their events belong to its successor. It reports the
// state of each route again: another instance may have reported a different one meanwhile.
func (d *Deliverer) Begin(keys []store.Waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notices = newNotices()
	for id, counted := range d.count(keys) {
		r := d.route(id)
		r.keys = counted
		if r.queue != nil {
			r.queue.start(counted)
			d.observe.Paused(r.row.RouteCode, r.queue.breaker.state() != gobreaker.StateClosed)
		}
	}
}

// KeysUncounted reports whether the keys should be counted again: a route treats every key as waiting, and has no delivery
// under way.
func (d *Deliverer) KeysUncounted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.routes {
		if r.row.Ordering == "key" && r.keys.uncounted && (r.queue == nil || r.queue.quiet()) {
			return true
		}
	}
	return false
}

// Recount replaces the counts of these routes by keys, which the worker reads after KeysUncounted returned true. The worker
// calls it when it has settled all results and no Act runs.
func (d *Deliverer) Recount(keys []store.Waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, counted := range d.count(keys) {
		if r := d.route(id); r.keys.uncounted && (r.queue == nil || r.queue.recount(counted)) {
			r.keys = counted
		}
	}
}

// count sorts the keys by route. Each known route gets an entry, also without keys.
func (d *Deliverer) count(keys []store.Waiting) map[int32]*waiting {
	counted := make(map[int32]*waiting, len(d.routes))
	for id := range d.routes {
		counted[id] = newWaiting(d.mostKeys)
	}
	for _, k := range keys {
		if counted[k.Route] == nil {
			counted[k.Route] = newWaiting(d.mostKeys)
		}
		if k.Uncounted {
			counted[k.Route].forget()
		} else {
			counted[k.Route].add(k.Key, k.Events)
		}
	}
	return counted
}

func (d *Deliverer) route(id int32) *route {
	r := d.routes[id]
	if r == nil {
		r = &route{keys: newWaiting(d.mostKeys)}
		d.routes[id] = r
	}
	return r
}

// Capacity returns how many pending events each route can take now. A route that is not in it takes the default.
func (d *Deliverer) Capacity() map[int32]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	capacity := make(map[int32]int, len(d.routes))
	for id, r := range d.routes {
		switch {
		case r.queue != nil:
			capacity[id] = r.queue.capacity()
		case time.Since(r.broken.at) < ReopenAfter:
			capacity[id] = 0
		}
	}
	return capacity
}

// Act delivers the items of the page and returns their results: one for each fresh event and route, and those of earlier
// pages' deliveries that have ended. It returns when all deliveries of the page have ended, when what is left are stragglers, or
// after pageWait.
func (d *Deliverer) Act(ctx context.Context, page *store.Page) []store.Result {
	results, jobs := d.assign(page)
	runs := make([]*run, 0, len(jobs))
	for q, jobs := range jobs {
		if r := q.begin(ctx, jobs); r != nil {
			runs = append(runs, r)
		}
	}
	d.await(runs)
	return append(results, d.Collect()...)
}

// assign gives each item to the queues of its routes. Where a route has no queue, a fresh item becomes pending.
func (d *Deliverer) assign(page *store.Page) (results []store.Result, jobs map[*queue][]*job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, row := range page.Routes {
		r := d.route(row.ID)
		r.stale = r.stale || !same(r.row, row)
		r.row = row
	}
	jobs = map[*queue][]*job{}
	// A route has one queue for the whole page: one that is replaced in mid-page gets no run, and its results are not collected.
	queues := map[int32]*queue{}
	for i := range page.Items {
		item := new(store.Item) // a copy: a slow delivery must not keep the rest of the page in memory
		*item = page.Items[i]
		for _, id := range item.Routes {
			r := d.route(id)
			q, opened := queues[id]
			if !opened {
				q = d.open(r)
				queues[id] = q
			}
			switch {
			case q != nil:
				jobs[q] = append(jobs[q], &job{item: item})
			case item.Fresh:
				behind := r.row.Ordering == "key" && r.keys.has(item.Key)
				r.keys.add(item.Key, 1)
				results = append(results, store.Result{
					Route: id, Seq: item.Seq, Fresh: true, Outcome: store.Pending, Reason: Misconfigured, Delay: ReopenAfter, Behind: behind,
				})
			}
		}
	}
	for _, jobs := range jobs {
		slices.SortStableFunc(jobs, inOrder)
	}
	return results, jobs
}

// same tells whether a queue of the one route can serve the other.
func same(a, b store.Route) bool {
	return a.RouteCode == b.RouteCode && a.TargetKind == b.TargetKind && a.TargetRef == b.TargetRef && a.Ordering == b.Ordering &&
		a.Seconds == b.Seconds && a.Concurrency == b.Concurrency &&
		string(a.RetryPolicy) == string(b.RetryPolicy) && string(a.Options) == string(b.Options) &&
		reflect.DeepEqual(a.Transform, b.Transform) && slices.Equal(a.Columns, b.Columns)
}

// open returns a queue for the route's current row, or nil if its target cannot be opened. While the queue of an older row is not
// quiet, it returns that one, which delivers nothing more.
func (d *Deliverer) open(r *route) *queue {
	if r.queue != nil && !r.stale {
		return r.queue
	}
	if r.queue != nil && !r.queue.quiet() {
		r.queue.retire()
		return r.queue
	}
	if !r.stale && time.Since(r.broken.at) < ReopenAfter {
		return nil
	}
	if r.queue != nil {
		_ = r.queue.sink.Close() // no delivery is under way, and all that were sent are answered
		r.queue = nil
	}
	r.stale = false
	q, err := d.openQueue(r)
	if err != nil {
		r.broken = broken{time.Now(), err}
		return nil
	}
	r.broken = broken{}
	r.queue = q
	return q
}

// Reopen makes each route open its target again, with the opener's current configuration, as soon as no delivery of the
// route is under way.
func (d *Deliverer) Reopen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.routes {
		r.stale = true
		r.broken.at = time.Time{}
	}
}

func (d *Deliverer) openQueue(r *route) (*queue, error) {
	row, perSecond, err := takeRate(r.row)
	if err != nil {
		return nil, err
	}
	s, err := d.opener.Open(row)
	if err != nil {
		return nil, err
	}
	q, err := newQueue(row, s, perSecond, d)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if q.ordered && r.unordered {
		r.keys.forget() // the earlier queue, without order, counted no keys
	}
	r.unordered = !q.ordered
	q.start(r.keys)
	return q, nil
}

// takeRate removes rate_per_second from the options: every kind of target has it, and the queue applies it.
func takeRate(row store.Route) (rest store.Route, perSecond float64, err error) {
	options := map[string]json.RawMessage{}
	if len(row.Options) > 0 {
		if err := json.Unmarshal(row.Options, &options); err != nil {
			return row, 0, fmt.Errorf("options: %w", err)
		}
	}
	if text, ok := options["rate_per_second"]; ok {
		if err := json.Unmarshal(text, &perSecond); err != nil || perSecond <= 0 {
			return row, 0, fmt.Errorf("options: rate_per_second is %s, and must be a number above 0", text)
		}
		delete(options, "rate_per_second")
		row.Options, err = json.Marshal(options)
	}
	return row, perSecond, err
}

// await returns when the page need not wait for the runs any longer. The ones that go on say so through Ready.
func (d *Deliverer) await(runs []*run) {
	limit := time.NewTimer(d.longestWait())
	defer limit.Stop()
	for _, r := range runs {
		select {
		case <-r.enough:
			continue
		case <-limit.C:
		}
		break
	}
	for _, r := range runs {
		select {
		case <-r.over:
		default:
			go func() {
				<-r.over
				d.signal()
			}()
		}
	}
}

func (d *Deliverer) longestWait() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.routes) == 1 {
		return pageWaitAlone
	}
	return pageWait
}

func (d *Deliverer) signal() {
	select {
	case d.ready <- struct{}{}:
	default:
	}
}

// Ready receives a value when deliveries end that no page waits for any more.
func (d *Deliverer) Ready() <-chan struct{} { return d.ready }

// Collect returns the results since the last call. Fresh events whose delivery is still under way are pending from then on.
func (d *Deliverer) Collect() []store.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	var results []store.Result
	for _, r := range d.routes {
		d.notices.note(r, d.Shared)
		if r.queue == nil {
			continue
		}
		results = append(results, r.queue.handOver()...)
	}
	return results
}

// Busy reports whether deliveries are under way.
func (d *Deliverer) Busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.routes {
		if r.queue != nil && !r.queue.quiet() {
			return true
		}
	}
	return false
}

// KeysWait reports whether a route that may deliver has events waiting behind their key in the database.
func (d *Deliverer) KeysWait() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.routes {
		if r.queue != nil && r.queue.keysWait() {
			return true
		}
	}
	return false
}

// Quiesce waits until no delivery is under way, at the end of a lease. That is soon after the context of the latest Act is done.
// From then on another instance's breakers count.
func (d *Deliverer) Quiesce() {
	d.mu.Lock()
	routes := slices.Collect(maps.Values(d.routes))
	d.mu.Unlock()
	for _, r := range routes {
		if r.queue != nil {
			r.queue.wait()
			d.observe.Paused(r.row.RouteCode, false)
		}
	}
}

// Close closes all targets. No delivery may be under way.
func (d *Deliverer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, r := range d.routes {
		if r.queue != nil {
			errs = append(errs, r.queue.sink.Close())
		}
	}
	return errors.Join(errs...)
}
