package deliver

import (
	"context"
	"encoding/json"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// Dropped is the status of an event that the route's transform drops. No sink answers it but this program's own targets
// (Deliverer.InProcess).
const Dropped = sink.Unknown + 1

// Reasons of an event that the transform drops, and of an attempt at which it fails.
const (
	ReasonDropped         = "transform"
	ReasonTransformFailed = "transform_failed"
)

// made is what the route's transform made of a job: a payload, or the answer that takes the place of the sink's. Neither: the
// transform failed at an earlier job of its key.
type made struct {
	*job
	payload json.RawMessage
	answer  sink.Result
}

// transformed gives the jobs the payloads that the route's transform makes of them in this attempt. It returns the others
// aside, for the end of the attempt (conclude them earlier, and a key that one of them blocks would keep back what is before it).
func (q *queue) transformed(ctx context.Context, jobs []*job) (kept []*job, aside []made) {
	if q.transform == nil || len(jobs) == 0 {
		return jobs, nil
	}
	// A transform that takes its time holds one connection, not one for each slot.
	q.transforming <- struct{}{}
	all := q.tryTransform(ctx, jobs)
	<-q.transforming

	held := map[string]bool{}
	for _, m := range all {
		switch key := m.key(); {
		case q.ordered && held[key]:
			aside = append(aside, made{job: m.job})
		case m.answer.Status == 0:
			m.job.payload = m.payload
			kept = append(kept, m.job)
		default:
			held[key] = key != "" && m.answer.Status == sink.Retry
			aside = append(aside, m)
		}
	}
	return kept, aside
}

// concludeAside concludes what transformed has set aside, in order.
func (q *queue) concludeAside(ctx context.Context, aside []made, blocked map[string]bool) {
	for _, m := range aside {
		switch {
		case q.ordered && blocked[m.key()]:
			q.untried(m.job, behindKey, 0, blocked)
		case m.answer.Status == 0:
			q.untried(m.job, busy, 0, blocked)
		default:
			q.conclude(ctx, m.job, m.answer, blocked)
		}
	}
}

// tryTransform transforms all payloads at once. If that fails, it tries the halves, down to the event at fault; after a
// timeout, each alone: of two halves that hang, each would take its time.
func (q *queue) tryTransform(ctx context.Context, jobs []*job) []made {
	all := make([]made, len(jobs))
	payloads := make([]json.RawMessage, len(jobs))
	for i, j := range jobs {
		all[i].job, payloads[i] = j, j.item.Payload
	}
	// Of those that hang each takes its time: long enough for the route to be switched off, or the worker to be stopped.
	if !q.permit.Allows(q.route.ID) {
		for i := range all {
			all[i].answer = sink.Result{Status: sink.Retry, Code: GateClosed}
		}
		return all
	}
	results, err := q.transform(ctx, payloads)
	switch {
	case err == nil:
		for i, payload := range results {
			all[i].payload = payload
			if payload == nil {
				all[i].answer.Status = Dropped
			}
		}
		return all
	case len(jobs) == 1, !store.TransformFailed(err):
		for i := range all {
			all[i].answer = sink.Result{
				Status: sink.Retry, Code: ReasonTransformFailed, Detail: err.Error(), Local: !store.TransformFailed(err),
			}
		}
		return all
	}
	part := len(jobs) / 2
	if store.TimedOut(err) {
		part = 1
	}
	all = all[:0]
	for from := 0; from < len(jobs); from += part {
		all = append(all, q.tryTransform(ctx, jobs[from:min(from+part, len(jobs))])...)
	}
	return all
}
