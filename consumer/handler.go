package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// A Handler handles an event. What it writes in tx commits together with the record that
// the event was handled, or not at all: its effects in the database are exactly once.
// What it does elsewhere may happen again.
//
// An error takes back what this call wrote, and the event is tried again after a while
// (see RetryAfter) until the route's retry_policy is exhausted; then, or at once with
// Permanent, it is kept as a dead letter. Other events go on meanwhile; with the route's
// ordering set to key, those of the same key wait.
//
// ctx ends with the route's timeout, or when the program may not handle events any more. Spans that begin in it belong to the
// event's trace.
type Handler func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error

type registration struct {
	pattern string
	handler Handler
}

// Handle lets h handle the events that match the pattern: DOMAIN/TYPE, where TYPE is exact,
// a prefix such as order.*, or *, and DOMAIN may be * too. An event that matches several
// patterns goes to the handler of each.
//
// Handle panics if it is called twice for a pattern, with a nil handler, or while the client runs.
func (c *Client) Handle(pattern string, h Handler) {
	twice := func() bool {
		return slices.ContainsFunc(c.handlers, func(r registration) bool { return r.pattern == pattern })
	}
	c.register("Handle("+pattern+")", h == nil, twice, func() { c.handlers = append(c.handlers, registration{pattern, h}) })
}

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent says that trying again will never help: the event becomes a dead letter.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

type retryError struct {
	error
	after time.Duration
}

func (e retryError) Unwrap() error { return e.error }

// RetryAfter says when to try again, instead of when the route's retry_policy would.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return retryError{err, d}
}

// wishes are what the handler says of another try: that there must be none, or after which time; nil: as the policy says.
func wishes(failure error) (permanent bool, after *time.Duration) {
	var retry retryError
	switch {
	case errors.As(failure, &permanentError{}):
		return true, nil
	case errors.As(failure, &retry):
		return false, &retry.after
	}
	return false, nil
}

// handling is the worker's handler: nothing happens outside of the transaction.
type handling struct {
	calls
	permit *worker.Permit
	routes map[int32]store.Route
	untold map[int32]bool // routes of which operators have not been told in this lease whether there is a handler

	// What targets have handled in an earlier lease, and not settled. Nothing adds to it in this lease; each settle removes
	// some, so it is read again until nothing is left.
	epoch   int64
	handled map[store.EventOf]bool

	calm bool // the latest look before a page found nothing to mind, and nothing has failed since

	// What came of handlers that took the connection with them (one that outlasts its
	// timeout in a statement does), or that failed when nothing was to begin any more: the next try of the page goes without them.
	page *store.Page
	lost map[taskKey]store.Result
}

type taskKey struct {
	route int32
	seq   int64
	fresh bool
}

// A task is one event for one handler.
type task struct {
	item  *store.Item
	route store.Route
}

func (t task) key() taskKey { return taskKey{t.route.ID, t.item.Seq, t.item.Fresh} }

// came is what the task has come to.
func (t task) came(outcome store.Outcome, reason string) store.Result {
	return store.Result{Route: t.route.ID, Seq: t.item.Seq, Fresh: t.item.Fresh, Outcome: outcome, Reason: reason}
}

// behind is that it waits for an earlier event of its key.
func (t task) behind() store.Result {
	r := t.came(store.Pending, "behind_key")
	r.Behind = true
	return r
}

// order is the key whose order the task has a part in. False: none.
func (t task) order() (key store.KeyOf, ordered bool) {
	return store.KeyOf{Route: t.route.ID, Key: t.item.Key}, t.route.Ordering == "key" && t.item.Key != "" && !t.item.Replay
}

// Apply runs the handlers in tx: all of them as they come, which costs nothing extra; only
// when one fails, each again with a savepoint of its own.
func (h *handling) Apply(ctx context.Context, tx pgx.Tx, c *store.Cursor, page *store.Page) ([]store.Result, error) {
	for _, r := range page.Routes {
		if known, ok := h.routes[r.ID]; !ok || known.TargetRef != r.TargetRef || known.RouteCode != r.RouteCode {
			h.untold[r.ID] = true
		}
		h.routes[r.ID] = r
	}
	if h.page != page {
		h.page, h.lost = page, map[taskKey]store.Result{}
	} else {
		h.calm = false // the page is tried again
	}
	var tasks []task
	for i := range page.Items {
		for _, id := range page.Items[i].Routes {
			tasks = append(tasks, task{&page.Items[i], h.routes[id]})
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return store.LiveFirst(a.item, b.item) })
	// Also a page whose handlers were all cut off, with the connection, is settled.
	asking, end := beyond(ctx)
	defer end()
	if len(h.handled) > 0 || h.epoch != c.Epoch() {
		handled, err := c.Handled(asking, tx)
		if err != nil {
			return nil, err
		}
		if h.epoch != c.Epoch() { // the owner between may have been of another release
			for id := range h.routes {
				h.untold[id] = true
			}
		}
		h.epoch, h.handled, h.calm = c.Epoch(), handled, false
	}
	var before store.Before
	if !h.calm {
		routes, keys := ordered(tasks)
		var err error
		if before, err = c.Before(asking, tx, routes, keys); err != nil {
			return nil, err
		}
	}
	results, err := h.perform(ctx, tx, tasks, before)
	h.calm = (h.calm || before.Calm) && !slices.ContainsFunc(results, func(r store.Result) bool { return r.Outcome == store.Pending })
	return results, err
}

// perform runs the handlers together if it can, and else apart.
func (h *handling) perform(ctx context.Context, tx pgx.Tx, tasks []task, before store.Before) ([]store.Result, error) {
	if len(h.lost) == 0 {
		if results, err := h.together(ctx, tx, tasks, before); results != nil || err != nil {
			return results, err
		}
	}
	return h.apart(ctx, tx, tasks, before)
}

// ordered are the keys of fresh events, with their routes, where the order of keys is kept.
func ordered(tasks []task) (routes []int32, keys []string) {
	for _, t := range tasks {
		if key, does := t.order(); does && t.item.Fresh {
			routes, keys = append(routes, key.Route), append(keys, key.Key)
		}
	}
	return routes, keys
}

// together gives nil where a handler failed; then nothing has happened.
func (h *handling) together(ctx context.Context, tx pgx.Tx, tasks []task, before store.Before) (results []store.Result, err error) {
	held := map[store.KeyOf]bool{}
	for _, t := range tasks {
		if waits, does := h.waits(t, held, before.Behind); does {
			results = append(results, waits)
			continue
		}
		failure := h.handle(ctx, tx, t)
		if failure != nil && !errors.Is(failure, errDropped) {
			h.lose(ctx, tx, t, failure)
			return nil, anew(ctx, tx)
		}
		results = append(results, result(ctx, t, failure))
	}
	checking, end := beyond(ctx)
	defer end()
	if store.CheckDeferred(checking, tx, before.Deferred) != nil {
		return nil, anew(ctx, tx)
	}
	return results, nil
}

// anew takes back what the handlers have done.
func anew(ctx context.Context, tx pgx.Tx) error {
	ctx, end := beyond(ctx)
	defer end()
	return store.HandlersAnew(ctx, tx)
}

// waits is what comes of an event that must wait: behind one of its key, in the page (held) or before it (behind), or since a gate or a
// pause of the route keeps it from its handler.
func (h *handling) waits(t task, held, behind map[store.KeyOf]bool) (r store.Result, does bool) {
	key, ordered := t.order()
	switch {
	case ordered && held[key]:
		r = t.behind()
	case !h.permit.Allows(t.route.ID):
		r = t.came(store.Pending, deliver.GateClosed)
	case !h.permit.AllowsDomain(t.item.Domain):
		r = t.came(store.Pending, "domain_closed")
	case ordered && behind[key] && t.item.Fresh:
		r = t.behind()
	case h.handlers[t.route.TargetRef] == nil:
		// Another release of the program has it, or will: that is no failure of the event.
		r = t.came(store.Pending, deliver.Misconfigured)
		r.Delay = deliver.ReopenAfter
	default:
		return r, false
	}
	if ordered {
		held[key] = true
	}
	return r, true
}

// Report opens or closes the finding that this program has no handler for a route: once in a lease, when a page first needs the route.
func (h *handling) Report(ctx context.Context, c *store.Cursor) {
	for id := range h.untold {
		detail := ""
		if _, err := h.handlerOf(h.routes[id]); err != nil {
			detail = err.Error()
		}
		if c.HeldFinding(ctx, "route_misconfigured", h.routes[id].RouteCode, detail, "") == nil {
			delete(h.untold, id)
		}
	}
}

func (h *handling) apart(ctx context.Context, tx pgx.Tx, tasks []task, before store.Before) ([]store.Result, error) {
	results := make([]store.Result, 0, len(tasks))
	held := map[store.KeyOf]bool{}
	for _, t := range tasks {
		r, known := h.lost[t.key()]
		if !known {
			r, known = h.waits(t, held, before.Behind)
		}
		if !known {
			failure, err := attempt(ctx, tx, before.Deferred, func(savepoint pgx.Tx) error { return h.handle(ctx, savepoint, t) })
			if failure != nil {
				h.lose(ctx, tx, t, failure)
			}
			if err != nil {
				return nil, err
			}
			r = result(ctx, t, failure)
		}
		if key, ordered := t.order(); r.Outcome == store.Pending && ordered {
			held[key] = true
		}
		results = append(results, r)
	}
	return results, nil
}

// lose remembers the failure of a handler that is not called again in the next try of the page: it has taken the connection with it, or
// nothing begins any more.
func (h *handling) lose(ctx context.Context, tx pgx.Tx, t task, failure error) {
	if (tx.Conn().IsClosed() || !h.permit.Allows(t.route.ID)) && ctx.Err() == nil {
		h.lost[t.key()] = result(ctx, t, failure)
	}
}

func (h *handling) handle(ctx context.Context, tx pgx.Tx, t task) error {
	if h.handled[store.EventOf{Route: t.route.ID, Seq: t.item.Seq}] {
		return nil
	}
	handler, err := h.handlerOf(t.route)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.route.TimeLimit())
	defer cancel()
	event, err := transformed(ctx, tx, t.route, t.item.Event)
	if err != nil {
		return err
	}
	return called(ctx, tx, handler, Call{t.route.RouteCode, t.item.Attempt, t.item.Replay}, event)
}

// result is what a handler's error comes to.
func result(ctx context.Context, t task, failure error) store.Result {
	failed := t.item.Errors + 1
	r := t.came(store.Pending, reasonOf(failure))
	permanent, after := wishes(failure)
	switch {
	case failure == nil:
		return t.came(store.Sent, "")
	case errors.Is(failure, errDropped):
		return t.came(store.Skipped, deliver.ReasonDropped)
	case ctx.Err() != nil:
		return t.came(store.Pending, deliver.GateClosed)
	case permanent:
		r.Outcome = store.Failed
	default:
		r.Outcome = store.Pending
	}
	r.Detail = failure.Error()
	policy, err := t.route.Retries()
	if err != nil {
		r.Outcome, r.Detail = store.Failed, "retry_policy: "+err.Error()
	}
	if r.Outcome == store.Pending {
		if policy.Exhausted(failed) {
			r.Outcome = store.Failed
			r.Detail = fmt.Sprintf("%s (given up after %d attempts)", r.Detail, failed)
		} else if after != nil {
			r.Delay = *after
		} else {
			r.Delay = policy.Delay(failed)
		}
	}
	return r
}
