package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// Reasons why an event is pending without an attempt.
const (
	behindKey     = "behind_key"    // an earlier event of its key is pending
	busy          = "busy"          // events come faster than the target takes them
	breakerOpen   = "breaker_open"  // the target failed so often that deliveries pause
	domainClosed  = "domain_closed" // the gate of the event's domain is closed; SQL sets the event aside until it opens
	GateClosed    = "gate_closed"   // a gate or a switch is closed, the route is paused, or the lease has ended; a handler answers so that finds it at its commit
	Misconfigured = "misconfigured" // the route's target cannot be opened; a Go program has no handler for it
)

// A queue sends the events of one route to its target: events of one key one after the other, events of different keys at
// once. A delivery that its page does not wait for continues here, beside those of the next pages, and its event is pending in
// the database meanwhile.
type queue struct {
	route   store.Route
	ordered bool
	sink    sink.Sink
	limits  sink.Limits
	policy  store.RetryPolicy
	timeout time.Duration
	slots   int // deliveries under way at once
	breaker *breaker
	limiter *rate.Limiter
	observe Observer
	permit  Permit
	inside  bool // Deliverer.InProcess

	transform    func(ctx context.Context, payloads []json.RawMessage) ([]json.RawMessage, error) // nil: the route has none
	transforming chan struct{}                                                                    // holds one while transform runs

	mu       sync.Mutex
	runs     []*run            // that are not over
	running  int               // slots at work
	retired  bool              // its route has changed: it starts no run any more
	pace     int               // events in a pageWait, by the last run
	known    map[identity]*job // jobs whose end the database may not know of
	flying   map[lineOf]int    // how many of them each key has
	held     int               // bytes of their payloads
	finished []*job            // known ones that have ended since the last handOver
	scanned  time.Time         // when pending events were last asked for while deliveries were under way
	beside   time.Duration     // how long until they are again
	ended    []store.Result
	waiting  *waiting
	gone     string       // the target's last word, if it is gone
	failure  store.Result // the latest
	refused  bool         // it was the credentials that the target refused
	opened   time.Time
}

// A job is one event to deliver.
type job struct {
	item    *store.Item
	payload json.RawMessage // that the route's transform made; nil: the item's
	staged  bool            // its page has gone on without it: it is pending in the database
	over    bool            // its delivery has ended, or will not begin
}

// An identity tells jobs of a queue apart.
type identity struct {
	seq    int64
	replay bool
}

// A lineOf is what jobs have in common that come one after the other: live ones of a key, or its replays.
type lineOf struct {
	key    string
	replay bool
}

func (j *job) line() lineOf { return lineOf{j.item.Key, j.item.Replay} }

func (j *job) identity() identity { return identity{j.item.Seq, j.item.Replay} }

// inOrder compares jobs by the order in which a route takes them.
func inOrder(a, b *job) int { return store.LiveFirst(a.item, b.item) }

// key returns the event's key as the order of keys sees it: empty for a replay, which has no place in that order.
func (j *job) key() string {
	if j.item.Replay {
		return ""
	}
	return j.item.Key
}

func newQueue(route store.Route, s sink.Sink, perSecond float64, d *Deliverer) (*queue, error) {
	policy, err := route.Retries()
	if err != nil {
		return nil, fmt.Errorf("retry_policy: %w", err)
	}
	q := &queue{
		route: route, ordered: route.Ordering == "key" && !failpoint.Bug("noparking"), sink: s, limits: s.Limits(), policy: policy,
		timeout: route.TimeLimit(), slots: max(1, route.Concurrency),
		permit: d.permit, observe: d.observe, inside: d.InProcess,
		limiter:      rate.NewLimiter(rate.Inf, 0),
		transforming: make(chan struct{}, 1),
		known:        map[identity]*job{}, flying: map[lineOf]int{}, beside: besideEvery,
		breaker: newBreaker(route.RouteCode, d.observe.Paused),
		opened:  time.Now(),
	}
	if route.Transforms() && d.Transform != nil {
		q.transform = func(ctx context.Context, payloads []json.RawMessage) ([]json.RawMessage, error) {
			return d.Transform(ctx, route, payloads)
		}
	}
	if perSecond > 0 {
		q.limiter = rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))
	}
	return q, nil
}

// start begins a lease: keys are the keys with pending events.
func (q *queue) start(keys *waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = keys
	q.ended, q.finished, q.held = nil, nil, 0 // results of an earlier lease
	clear(q.known)
	clear(q.flying)
}

// recount replaces the counted keys by those of the database. It does nothing and returns false while a delivery is under
// way or its result is not collected: the database does not know of these.
func (q *queue) recount(keys *waiting) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	quiet := q.running == 0 && len(q.ended) == 0
	if quiet {
		q.waiting = keys
	}
	return quiet
}

// quiet reports whether no delivery is under way and all results have been collected.
func (q *queue) quiet() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running == 0 && len(q.ended) == 0
}

// wait returns when no delivery is under way.
func (q *queue) wait() {
	q.mu.Lock()
	runs := slices.Clone(q.runs)
	q.mu.Unlock()
	for _, r := range runs {
		<-r.over
	}
}

func (q *queue) takeGone() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	gone := q.gone
	q.gone = ""
	return gone
}

// latestFailure is why the latest failure failed, what the target said, and whether it refused the credentials.
func (q *queue) latestFailure() (reason, said string, refused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failure.Reason, q.failure.Detail, q.refused
}

// failed notes the latest failure of the target. The caller holds mu.
func (q *queue) failed(r store.Result, refused bool) {
	if r.Reason != ReasonTransformFailed {
		q.failure, q.refused = r, refused
	}
}

// capacity is how many pending events the queue takes at a time.
func (q *queue) capacity() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.breaker.state() == gobreaker.StateOpen:
		return 0
	// Events whose result is not settled are still due in the database: a read now would return them again, for nothing. But a
	// slow delivery must not hold up the others for long.
	case len(q.ended) > 0 || q.running > 0 && !q.takesBeside():
		return 0
	case q.breaker.state() == gobreaker.StateHalfOpen:
		return 1
	case q.breaker.holdsReplays():
		// The replays among them would be put off again, each by a write.
		return firstCapacity
	default:
		// What is under way comes first, with those behind each.
		return min(max(q.pace, firstCapacity), mostCapacity) + min((1+behindOne)*len(q.known), mostCapacity)
	}
}

const (
	firstCapacity = 100
	mostCapacity  = 2000
	behindOne     = 50 // events that tidemark.pending_due returns at most behind one of their key
)

// keysWait: the queue is at rest and can deliver, and has events waiting in the database.
func (q *queue) keysWait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ordered && q.waiting.any() && q.running == 0 && q.breaker.state() == gobreaker.StateClosed && q.permit.Allows(q.route.ID)
}

// retire makes begin start no run any more.
func (q *queue) retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retired = true
}

// cut returns the jobs at the front that one call of the sink may carry: all live events, or all replays.
func (q *queue) cut(jobs []*job, blocked map[string]bool) []*job {
	n := min(len(jobs), max(1, q.limits.Batch))
	if q.limiter.Limit() != rate.Inf {
		n = min(n, q.limiter.Burst())
	}
	if other := slices.IndexFunc(jobs[:n], func(j *job) bool { return j.item.Replay != jobs[0].item.Replay }); other > 0 {
		n = other
	}
	if q.limits.KeepsOrder || n == 1 {
		return jobs[:n]
	}
	keys := map[string]bool{}
	for i, j := range jobs[:n] {
		if key := j.item.Key; key != "" && !blocked[j.key()] {
			if keys[key] {
				return jobs[:i]
			}
			keys[key] = true
		}
	}
	return jobs[:n]
}

// send delivers a batch, unless something forbids it, and concludes its jobs.
func (q *queue) send(ctx context.Context, batch []*job, blocked map[string]bool) {
	sending, aside := q.transformed(ctx, q.open(batch, blocked))
	defer func() { q.concludeAside(ctx, aside, blocked) }()
	if len(sending) == 0 {
		return
	}
	if err := q.limiter.WaitN(ctx, len(sending)); err != nil {
		q.untriedAll(sending, GateClosed, 0, blocked)
		return
	}
	// Once more: a gate may have closed, or the route have been paused, while it waited its turn, or for its transform.
	if sending = q.open(sending, blocked); len(sending) == 0 {
		return
	}
	done, err := q.breaker.allow(sending[0].item.Replay)
	if err != nil {
		q.untriedAll(sending, breakerOpen, breakerPause, blocked)
		return
	}

	deliveries := make([]sink.Delivery, len(sending))
	for i, j := range sending {
		deliveries[i] = q.delivery(j)
	}
	// A closed gate cancels ours, and the delivery counts as cut off. The timeout cancels limited only, and counts against
	// the target.
	ours, cut := context.WithCancel(ctx)
	defer cut()
	go q.watch(ours, cut, sending)
	limited, cancel := context.WithTimeout(ours, q.timeout)
	began := time.Now()
	results := q.deliver(limited, deliveries)
	cancel()
	if q.inside {
		done(nil) // a handler that fails says nothing of the next event
	} else {
		done(verdict(ours, results))
	}
	q.observe.Delivered(q.route.RouteCode, deliveries, results, time.Since(began))
	for i, j := range sending {
		q.conclude(ours, j, results[i], blocked)
	}
}

// watch cancels a delivery under way when the gate of one of its domains closes.
func (q *queue) watch(ctx context.Context, cut func(), jobs []*job) {
	for {
		changed := q.permit.Changed()
		if slices.ContainsFunc(jobs, func(j *job) bool { return !q.permit.AllowsDomain(j.item.Domain) }) {
			cut()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// open are the jobs that nothing before them of their key, no gate and no pause keeps from going. It concludes the others.
func (q *queue) open(jobs []*job, blocked map[string]bool) []*job {
	open := jobs[:0:0]
	for _, j := range jobs {
		switch {
		case q.ordered && blocked[j.key()]:
			q.untried(j, behindKey, 0, blocked)
		case !q.permit.Allows(q.route.ID):
			q.untried(j, GateClosed, 0, blocked)
		case !q.permit.AllowsDomain(j.item.Domain):
			q.untried(j, domainClosed, 0, blocked)
		default:
			open = append(open, j)
		}
	}
	return open
}

// deliver is the sink's Deliver, held to its promise: an answer for each, and no panic.
func (q *queue) deliver(ctx context.Context, deliveries []sink.Delivery) (results []sink.Result) {
	defer func() {
		if p := recover(); p != nil {
			results = nil
		}
		for len(results) < len(deliveries) {
			results = append(results, sink.Result{Status: sink.Unknown, Code: "no_answer", Detail: "the sink broke down"})
		}
	}()
	return q.sink.Deliver(ctx, deliveries)
}

func (q *queue) delivery(j *job) sink.Delivery {
	event := j.item.Event
	if j.payload != nil {
		event.Payload = j.payload
	}
	return sink.Delivery{
		Event: event, Route: q.route.RouteCode, Attempt: j.item.Attempt, First: j.item.Attempt - j.item.Errors, Epoch: q.permit.Epoch(), Replay: j.item.Replay,
	}
}

// conclude turns the sink's answer into the result to record.
func (q *queue) conclude(ctx context.Context, j *job, answer sink.Result, blocked map[string]bool) {
	failed := j.item.Errors + 1
	r := store.Result{Reason: answer.Code, Detail: answer.Detail}
	if r.Reason == "" {
		r.Reason = "failed"
	}
	if r.Detail == "" {
		r.Detail = r.Reason
	}
	switch {
	case answer.Status == sink.Delivered:
		r = store.Result{Outcome: store.Sent}
	case answer.Status == Dropped:
		r = store.Result{Outcome: store.Skipped, Reason: ReasonDropped}
	case answer.Status == sink.Retry && (ctx.Err() != nil || answer.Code == GateClosed):
		q.untried(j, GateClosed, 0, blocked)
		return
	case answer.Status == sink.Retry && answer.Local:
		// This host failed, not the target: it counts as no attempt. The breaker counts it all the same, so deliveries pause.
		q.mu.Lock()
		q.failed(r, false)
		q.mu.Unlock()
		q.untried(j, busy, breakerPause, blocked)
		return
	case answer.Status == sink.Retry && answer.Refused && q.breaker.state() != gobreaker.StateClosed:
		// The target refuses everything, so this event is not at fault: it waits, and is not given up for it.
		q.mu.Lock()
		q.failed(r, true)
		q.mu.Unlock()
		q.untried(j, breakerOpen, breakerPause, blocked)
		return
	case answer.Status == sink.Unknown && ctx.Err() != nil:
		// The worker cut it off: it counts as an attempt, but the event is not given up for it.
		r.Outcome = store.Pending
	case answer.Status == sink.Permanent:
		r.Outcome = store.Failed
	case q.policy.Exhausted(failed):
		r.Outcome = store.Failed
		r.Detail = fmt.Sprintf("%s (given up after %d attempts)", r.Detail, failed)
	default:
		r.Outcome = store.Pending
		r.Delay = max(answer.After, q.policy.Delay(failed))
		if q.inside && answer.After > 0 {
			r.Delay = answer.After
		}
	}
	if answer.Status == sink.Unknown && r.Outcome != store.Sent {
		r.Detail = "outcome unknown: " + r.Detail
	}
	if r.Outcome == store.Pending {
		blocked[j.key()] = j.key() != ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer.Gone {
		q.gone = r.Detail
	}
	if r.Outcome != store.Sent && r.Outcome != store.Skipped {
		q.failed(r, answer.Refused)
	}
	q.end(j, r)
}

func (q *queue) untriedAll(jobs []*job, reason string, delay time.Duration, blocked map[string]bool) {
	for _, j := range jobs {
		if q.ordered && blocked[j.key()] {
			q.untried(j, behindKey, 0, blocked)
		} else {
			q.untried(j, reason, delay, blocked)
		}
	}
}

// untried concludes a job that was not sent: its event is pending.
func (q *queue) untried(j *job, reason string, delay time.Duration, blocked map[string]bool) {
	blocked[j.key()] = j.key() != ""
	q.mu.Lock()
	defer q.mu.Unlock()
	// An event that is already pending in the database keeps its row, so nothing is recorded. Exceptions: an event behind
	// its key, and a replay that the breaker holds back, which would otherwise be due again at once.
	held := reason == behindKey || reason == breakerOpen && j.item.Replay
	if (!j.item.Fresh || j.staged) && !held {
		q.finish(j)
		return
	}
	q.end(j, store.Result{Outcome: store.Pending, Reason: reason, Delay: delay, Behind: reason == behindKey})
}

// end records the result of the job. The caller holds mu.
func (q *queue) end(j *job, r store.Result) {
	r.Route, r.Seq, r.Fresh = q.route.ID, j.item.Seq, j.item.Fresh && !j.staged
	if q.ordered {
		wasWaiting, waits := !r.Fresh, r.Outcome == store.Pending
		switch {
		case waits && !wasWaiting:
			q.waiting.add(j.key(), 1)
		case !waits && wasWaiting:
			q.waiting.remove(j.key())
		}
	}
	q.finish(j)
	q.ended = append(q.ended, r)
}

// finish notes that nothing more will come of the job. The caller holds mu.
func (q *queue) finish(j *job) {
	j.over = true
	q.finished = append(q.finished, j)
}

// stage makes the event of a fresh job pending before its delivery has ended. The caller holds mu.
func (q *queue) stage(j *job, reason string) {
	behind := q.ordered && q.waiting.has(j.key())
	if q.ordered {
		q.waiting.add(j.key(), 1)
	}
	j.staged = true
	q.ended = append(q.ended, store.Result{
		Route: q.route.ID, Seq: j.item.Seq, Fresh: true, Outcome: store.Pending, Reason: reason, Behind: behind,
	})
}
