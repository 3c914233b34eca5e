package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// unreadable is the reason of an event that is given up, since its payload does not come within the lease.
const unreadable = "unreadable"

// errRouteOff ends the lease, and the next one begins with the switches as they are.
var errRouteOff = errors.New("a route must not be used any more, or it cannot be known whether it may")

// fill asks for the payloads that a page was read without, one by one. An event whose payload does not come within the
// lease is taken from the page and given up for each of its routes: it would be read again for ever, and nothing behind it.
// That the server answers otherwise is certain: the page without the payloads came, and the lease is held. What the
// switches said before is stale by the end.
func (p *logPass) fill(ctx context.Context, l *lease, page *store.Page) (gone []store.Result, err error) {
	began := time.Now()
	withheld := false
	for i := 0; i < len(page.Items); i++ {
		item := &page.Items[i]
		if item.Withheld == 0 {
			continue
		}
		withheld = true
		came, err := p.payload(ctx, l, item)
		if err != nil {
			return nil, err
		}
		if came {
			continue
		}
		results, err := p.giveUp(ctx, l, item)
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
		p.budget.read(page, time.Since(began), p.Lease())
	}
	return gone, l.beat()
}

// payload asks for the payload of an item. False: it does not come.
func (p *logPass) payload(ctx context.Context, l *lease, item *store.Item) (bool, error) {
	u := p.unread.of(item)
	u.under(p.Epoch(), time.Now())
	for try := 0; ; try++ {
		if u.hopeless(item.Withheld) {
			return false, nil
		}
		limited, cancel := p.limited(ctx, l)
		err := l.late(p.Payload(limited, item))
		cancel()
		switch {
		case err == nil:
			p.unread.forget(item)
			return true, nil
		case store.Is(err, tidemark.ErrFenced):
			return false, errFenced
		case errors.Is(err, store.ErrGone):
			p.unread.forget(item)
			return false, reclaimError{1, "are no longer in the log"}
		}
		over := u.failed(err, item.Withheld, time.Now(), p.Lease())
		p.failed(ctx, "read", &unreadError{item.Seq, item.Withheld, err})
		if err := l.wait(ctx, pause(try)); err != nil {
			return false, err
		}
		if over {
			return false, nil
		}
	}
}

// giveUp is what becomes of an item that cannot be read: failed, on each route that may deliver it at this moment.
func (p *logPass) giveUp(ctx context.Context, l *lease, item *store.Item) (results []store.Result, err error) {
	if err := l.beat(); err != nil {
		return nil, err
	}
	for _, route := range item.Routes {
		if !l.allows(route) {
			return nil, errRouteOff
		}
		results = append(results, store.Result{
			Route: route, Seq: item.Seq, Fresh: item.Fresh, Outcome: store.Failed, Reason: unreadable,
			Detail: fmt.Sprintf("its payload of %d bytes, asked for alone, did not come within the lease of %s", item.Withheld, p.Lease()),
		})
	}
	p.unread.of(item).given = true
	p.log.ErrorContext(ctx, "an event cannot be read", "event", item.Seq, "bytes", item.Withheld, "lease", p.Lease())
	return results, nil
}

// waited is how many of the results are of events that were pending: the handler may take their keys for waiting.
func waited(results []store.Result) (n int64) {
	for i := range results {
		if !results[i].Fresh {
			n++
		}
	}
	return n
}

// An unreadError is why the payload of an event did not come.
type unreadError struct {
	seq, bytes int64
	err        error
}

func (e *unreadError) Error() string { return e.saying(e.err.Error()) }
func (e *unreadError) Unwrap() error { return e.err }

// saying names the event, and why.
func (e *unreadError) saying(why string) string {
	return fmt.Sprintf("event %d with %d bytes of payload: %s", e.seq, e.bytes, why)
}
