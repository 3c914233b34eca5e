package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cursor"
)

const (
	// unreadable is the reason of an event that is given up, since its payload does not come within the lease.
	unreadable = "unreadable"
	// readTries is how often a payload is asked for, alone, before its event is given up.
	readTries = 2
	// cutOffs is likewise, where the lease ran out each time: on a slow line the payload may leave no room to renew it.
	cutOffs = 5
	// smallPayload is read everywhere: where it does not come, it is not the event's fault, and it is asked for until it does.
	smallPayload = 64 << 10
)

// errSwitched ends the lease, and a new one begins with the switches as they are.
var errSwitched = errors.New("a route must not be used any more, or it cannot be known whether it may")

// fill asks for the payloads that a page was read without, one by one. An event whose payload does not come within the
// lease is taken from the page and given up for each of its routes: it would be read again for ever, and nothing behind it.
// That the server answers otherwise is certain: the page without the payloads came, and the lease is held.
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
	if withheld && len(gone) == 0 {
		w.budget.read(page, time.Since(began), w.cursor.Lease())
	}
	return gone, nil
}

// A stuck event is one whose payload did not come, so many times in a row, under this lease and those before.
type stuck struct {
	seq   int64
	times int
}

// payload asks for the payload of an item. False: it does not come.
func (w *Worker) payload(ctx context.Context, l *lease, item *cursor.Item) (bool, error) {
	if w.stuck.seq != item.Seq {
		w.stuck = stuck{seq: item.Seq}
	}
	bytes := item.Withheld
	for try := 0; ; try++ {
		if w.stuck.times >= cutOffs && bytes > smallPayload {
			return false, nil
		}
		limited, cancel := w.limited(ctx, l)
		err := l.late(w.cursor.Payload(limited, item))
		cancel()
		switch {
		case err == nil:
			w.stuck = stuck{}
			return true, nil
		case cursor.Is(err, cursor.Fenced):
			return false, errFenced
		case cursor.TooMuch(err):
			w.stuck.times++
		}
		if err := w.cannotRead(ctx, l, try, fmt.Errorf("event %d with %d bytes of payload: %w", item.Seq, bytes, err)); err != nil {
			return false, err
		}
		if cursor.TooMuch(err) && w.stuck.times >= readTries && bytes > smallPayload {
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
			Detail: fmt.Sprintf("its payload of %d bytes could not be read within %s, %d times, alone", bytes, w.cursor.Lease(), w.stuck.times),
		})
	}
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
