package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cursor"
)

const (
	// unreadable is the reason of an event that is given up, since its payload does not come within the lease.
	unreadable = "unreadable"
	// readTries is how often at least a payload is asked for under one lease, alone and for as long as a lease takes, before
	// its event is given up.
	readTries = 2
	// cutOffs is how many leases run out while it is asked for: on a slow line the payload may leave no room to renew them.
	cutOffs = 5
	// smallPayload is read everywhere: where it does not come, it is not the event's fault, and it is asked for until it does.
	smallPayload = 64 << 10
)

// errSwitched ends the lease, and a new one begins with the switches as they are.
var errSwitched = errors.New("a route must not be used any more, or it cannot be known whether it may")

// fill asks for the payloads that a page was read without, one by one. An event whose payload does not come within the
// lease is taken from the page and given up for each of its routes: it would be read again for ever, and nothing behind it.
// That the server answers otherwise is certain: the page without the payloads came, and the lease is held. What the
// switches said before is stale by the end.
func (w *Worker) fill(ctx context.Context, l *lease, page *cursor.Page) (gone []cursor.Result, err error) {
	began := time.Now()
	withheld := false
	for i := 0; i < len(page.Items); i++ {
		item := &page.Items[i]
		if item.Withheld == 0 {
			continue
		}
		withheld = true
		bytes := item.Withheld
		came, err := w.payload(ctx, l, item)
		if err != nil {
			return nil, err
		}
		if came {
			continue
		}
		results, err := w.giveUp(ctx, l, item, bytes)
		if err != nil {
			return nil, err
		}
		gone = append(gone, results...)
		page.Items = slices.Delete(page.Items, i, i+1)
		i--
	}
	if !withheld {
		return nil, nil
	}
	if len(gone) == 0 {
		w.budget.read(page, time.Since(began), w.cursor.Lease())
	}
	return gone, l.beat()
}

// A stuck item is one whose payload has been asked for, and has not come.
type stuck struct {
	leases int       // that ran out meanwhile
	epoch  int64     // the lease at hand
	tries  int       // under it
	since  time.Time // the first of them began
	given  bool      // up, which is not settled yet
}

// A stuckItem is an event, or its replay on a route: what became of the one says nothing of the other.
type stuckItem struct {
	seq    int64
	replay int32
}

func stuckItemOf(item *cursor.Item) stuckItem {
	key := stuckItem{seq: item.Seq}
	if item.Replay {
		key.replay = item.Routes[0]
	}
	return key
}

func (w *Worker) stuckAt(item *cursor.Item) *stuck {
	key := stuckItemOf(item)
	s := w.stuck[key]
	if s == nil {
		s = &stuck{}
		w.stuck[key] = s
	}
	if epoch := w.cursor.Epoch(); s.epoch != epoch {
		s.epoch, s.tries, s.since = epoch, 0, time.Now()
	}
	return s
}

// settledStuck forgets what was given up: a replay of it is asked for.
func (w *Worker) settledStuck() {
	maps.DeleteFunc(w.stuck, func(_ stuckItem, s *stuck) bool { return s.given })
}

// payload asks for the payload of an item. False: it does not come.
func (w *Worker) payload(ctx context.Context, l *lease, item *cursor.Item) (bool, error) {
	s := w.stuckAt(item)
	large := item.Withheld > smallPayload
	for try := 0; ; try++ {
		if large && (s.given || s.leases >= cutOffs) {
			return false, nil
		}
		limited, cancel := w.limited(ctx, l)
		err := l.late(w.cursor.Payload(limited, item))
		cancel()
		switch {
		case err == nil:
			delete(w.stuck, stuckItemOf(item))
			return true, nil
		case cursor.Is(err, cursor.Fenced):
			return false, errFenced
		case errors.Is(err, cursor.ErrGone):
			return false, anewError{1, "are not in the log any more"}
		case errors.Is(err, errLeaseOver):
			s.leases++
		case cursor.TooMuch(err):
			s.tries++
		}
		if err := w.cannotRead(ctx, l, try, fmt.Errorf("event %d with %d bytes of payload: %w", item.Seq, item.Withheld, err)); err != nil {
			return false, err
		}
		// A server without room for a moment, or a statement that was cancelled, is not the event's fault.
		if large && cursor.TooMuch(err) && s.tries >= readTries && time.Since(s.since) >= w.cursor.Lease() {
			return false, nil
		}
	}
}

// giveUp is what becomes of an item that cannot be read: failed, on each route that may deliver it at this moment.
func (w *Worker) giveUp(ctx context.Context, l *lease, item *cursor.Item, bytes int64) (results []cursor.Result, err error) {
	if err := l.beat(); err != nil {
		return nil, err
	}
	for _, route := range item.Routes {
		if !l.allows(route) {
			return nil, errSwitched
		}
		results = append(results, cursor.Result{
			Route: route, Seq: item.Seq, Fresh: item.Fresh, Outcome: cursor.Failed, Reason: unreadable,
			Detail: fmt.Sprintf("its payload of %d bytes, asked for alone, did not come within the lease of %s", bytes, w.cursor.Lease()),
		})
	}
	w.stuckAt(item).given = true
	w.log.ErrorContext(ctx, "an event cannot be read", "event", item.Seq, "bytes", bytes, "lease", w.cursor.Lease())
	return results, nil
}

// waited is how many of the results are of events that were pending: the handler may take their keys for waiting.
func waited(results []cursor.Result) (n int64) {
	for i := range results {
		if !results[i].Fresh {
			n++
		}
	}
	return n
}
