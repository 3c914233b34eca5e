package deliver

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A run is what a queue delivers of one page. Its slots take job after job in order, but none of a key that another slot is at: so a
// slow delivery holds up its own key alone. Where a batch may have many jobs of a key, each slot has keys of its own instead.
type run struct {
	parts []lines // one for all slots, or one for each; of what no slot is at
	left  int     // jobs that no slot has taken
	most  int     // jobs that a slot takes at once
	slots int     // at work
	idle  bool    // a slot has found nothing to do
	jobs  []*job  // that were not over at the last handOver
	began time.Time
	count int
	// enough is closed when the page need not wait any longer, over when the run is over.
	enough, over chan struct{}
	straggle     *time.Timer // closes enough; nil: jobs are left, or no slot is idle
}

// A line is jobs that go one after the other: those of a key, or one without a key; or all of a slot.
type line struct {
	key     string
	jobs    []*job // left
	blocked bool   // a job of the key is pending: live ones behind it wait
}

// lines is a heap: the one whose next job comes first is the first.
type lines []*line

func (ls lines) Len() int           { return len(ls) }
func (ls lines) Less(a, b int) bool { return inOrder(ls[a].jobs[0], ls[b].jobs[0]) < 0 }
func (ls lines) Swap(a, b int)      { ls[a], ls[b] = ls[b], ls[a] }
func (ls *lines) Push(l any)        { *ls = append(*ls, l.(*line)) } //nolint:forcetypeassert // nothing else is pushed
func (ls *lines) Pop() any {
	last := len(*ls) - 1
	l := (*ls)[last]
	(*ls)[last] = nil
	*ls = (*ls)[:last]
	return l
}

// begin starts a run with the jobs, by the slots that are idle. Nil: there is nothing to wait for. Fresh jobs that cannot be
// delivered now are pending; others keep their rows in the database.
func (q *queue) begin(ctx context.Context, jobs []*job) *run {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.retired || q.running > 0 && !q.hasRoom() {
		for _, j := range jobs {
			if j.item.Fresh {
				q.stage(j, busy)
			}
		}
		return nil
	}
	r := q.admit(jobs)
	if r.count == 0 {
		return nil
	}
	q.share(r)
	for n := range r.slots {
		go q.slot(ctx, r, n)
	}
	return r
}

// heldBytes is the most payload of jobs of earlier pages beside which a run begins.
const heldBytes = 4 << 20

// hasRoom reports whether a run may begin beside those under way: a slot is idle, and nothing of theirs could go before it. Without an
// order the database lets nothing wait behind a key, so an event could overtake one of its key that is under way. To be counted
// again, a queue must come to rest. The caller holds mu.
func (q *queue) hasRoom() bool {
	return q.ordered && q.running < q.slots && !q.waiting.uncounted && q.held <= heldBytes &&
		!slices.ContainsFunc(q.runs, func(r *run) bool {
			return slices.ContainsFunc(r.parts, func(p lines) bool { return len(p) > 0 })
		})
}

// admit makes a run of the jobs that may go now. The caller holds mu.
func (q *queue) admit(jobs []*job) *run {
	r := &run{began: time.Now(), enough: make(chan struct{}), over: make(chan struct{})}
	dropped := false
	for _, j := range jobs {
		switch {
		case j.item.Fresh && q.ordered && q.waiting.has(j.key()):
			q.stage(j, behindKey)
		case !j.item.Fresh && (q.known[j.identity()] != nil || q.ordered && j.item.Key != "" && q.flying[j.line()] > 0):
			dropped = true // it is under way, or an earlier one of its key is
		default:
			r.jobs = append(r.jobs, j)
		}
	}
	r.count, r.left = len(r.jobs), len(r.jobs)
	switch {
	case r.count > 0:
		q.beside = besideEvery
	case dropped:
		q.beside = min(2*q.beside, besideSeldom)
	}
	return r
}

// share gives the run its slots, and them the jobs. The caller holds mu.
func (q *queue) share(r *run) {
	for _, j := range r.jobs {
		q.known[j.identity()] = j
		q.flying[j.line()]++
		q.held += len(j.item.Payload)
	}
	r.slots = min(q.slots-q.running, r.count)
	longest := r.count
	if q.limits.KeepsOrder {
		r.parts = shares(r.jobs, r.slots)
		r.slots = len(r.parts)
	} else {
		r.parts = []lines{byKey(r.jobs)}
		longest = len(r.parts[0]) // a batch has no two jobs of a key
		r.slots = min(r.slots, longest)
	}
	r.most = min(max(1, q.limits.Batch), (longest+r.slots-1)/r.slots)
	q.runs = append(q.runs, r)
	q.running += r.slots
}

// byKey are the lines of the jobs by key.
func byKey(jobs []*job) (all lines) {
	of := map[string]*line{}
	for _, j := range jobs {
		l := of[j.item.Key]
		if l == nil || l.key == "" {
			l = &line{key: j.item.Key}
			of[l.key] = l
			all = append(all, l)
		}
		l.jobs = append(l.jobs, j)
	}
	heap.Init(&all)
	return all
}

// shares are one line for each of at most so many slots, about as long, with all jobs of a key in one of them.
func shares(jobs []*job, slots int) []lines {
	parts := make([]lines, slots)
	for n := range parts {
		parts[n] = lines{{}}
	}
	of := map[string]*line{}
	for _, j := range jobs {
		l := of[j.item.Key]
		if l == nil || j.item.Key == "" {
			l = slices.MinFunc(parts, func(a, b lines) int { return len(a[0].jobs) - len(b[0].jobs) })[0]
			of[j.item.Key] = l
		}
		l.jobs = append(l.jobs, j)
	}
	return slices.DeleteFunc(parts, func(p lines) bool { return len(p[0].jobs) == 0 })
}

// slot delivers jobs until it finds none.
func (q *queue) slot(ctx context.Context, r *run, n int) {
	blocked := map[string]bool{}
	var jobs []*job
	var at []*line
	for {
		if jobs, at, r = q.take(r, n, at); len(jobs) == 0 {
			return
		}
		for _, l := range at {
			blocked[l.key] = l.blocked
		}
		for len(jobs) > 0 {
			batch := q.cut(jobs, blocked)
			jobs = jobs[len(batch):]
			q.send(ctx, batch, blocked)
		}
		for _, l := range at {
			l.blocked = blocked[l.key]
		}
	}
}

// take gives back the lines that slot n was at, and returns its next jobs, in order, the lines that they are of, and the run: a slot
// that finds nothing left goes on with the run that has something. Without any jobs the slot is idle.
func (q *queue) take(r *run, n int, back []*line) (jobs []*job, at []*line, of *run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range back {
		if len(l.jobs) > 0 {
			heap.Push(&r.parts[n%len(r.parts)], l)
		}
	}
	jobs, at = q.next(r, n)
	if len(jobs) > 0 {
		q.straggles(r)
		return jobs, at, r
	}
	r.slots--
	r.idle = true
	q.straggles(r)
	if !q.limits.KeepsOrder {
		for _, other := range q.runs {
			if jobs, at = q.next(other, n); len(jobs) > 0 {
				other.slots++
				q.straggles(other)
				return jobs, at, other
			}
		}
	}
	q.running--
	return nil, nil, nil
}

// next takes jobs of the run. The caller holds mu.
func (q *queue) next(r *run, n int) (jobs []*job, at []*line) {
	from := &r.parts[n%len(r.parts)]
	for len(*from) > 0 && len(jobs) < r.most {
		l := heap.Pop(from).(*line) //nolint:forcetypeassert // nothing else is pushed
		some := 1
		if q.limits.KeepsOrder {
			some = min(r.most, len(l.jobs))
		}
		jobs = append(jobs, l.jobs[:some]...)
		clear(l.jobs[:some]) // and their payloads, once they are over
		l.jobs = l.jobs[some:]
		at = append(at, l)
	}
	r.left -= len(jobs)
	return jobs, at
}

// straggles looks whether all that is left of the run is under way while slots are idle: the page waits no longer for that than for
// a slow target. It ends a run without slots. The caller holds mu.
func (q *queue) straggles(r *run) {
	if r.left == 0 && r.idle && r.straggle == nil {
		// The number of events that it would deliver while a page waits.
		took := max(time.Since(r.began), time.Millisecond)
		q.pace = int(float64(r.count) * float64(pageWait) / float64(took))
		r.straggle = time.AfterFunc(pageWait, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			r.release()
		})
	}
	if r.slots == 0 {
		r.straggle.Stop()
		q.runs = slices.DeleteFunc(q.runs, func(other *run) bool { return other == r })
		r.release()
		close(r.over)
	}
}

// release lets the page go on, once. The caller holds the queue's mu.
func (r *run) release() {
	select {
	case <-r.enough:
	default:
		close(r.enough)
	}
}

// besideEvery is how often pending events are read while deliveries of the route are under way, and besideSeldom where that brought
// only events which wait for these.
const (
	besideEvery  = pageWait
	besideSeldom = 5 * time.Second
)

// takesBeside reports whether pending events may be read beside the deliveries under way, of which there are some. The caller
// holds mu.
func (q *queue) takesBeside() bool {
	if !q.hasRoom() || q.breaker.state() != gobreaker.StateClosed || time.Since(q.scanned) < q.beside {
		return false
	}
	q.scanned = time.Now()
	return true
}

// handOver returns the results since the last call, and stages the fresh jobs without one: the page goes on without them.
func (q *queue) handOver() []store.Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.runs {
		r.jobs = slices.DeleteFunc(r.jobs, func(j *job) bool { return j.over })
		for _, j := range r.jobs {
			if j.item.Fresh && !j.staged {
				q.stage(j, busy)
			}
		}
	}
	for _, j := range q.finished {
		delete(q.known, j.identity())
		q.held -= len(j.item.Payload)
		if q.flying[j.line()]--; q.flying[j.line()] == 0 {
			delete(q.flying, j.line())
		}
	}
	ended := q.ended
	q.ended, q.finished = nil, nil
	return ended
}
