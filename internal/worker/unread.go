package worker

import (
	"errors"
	"maps"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// readTries is how often at least a payload is asked for under one lease, alone and for as long as a lease takes, before
	// its event is given up.
	readTries = 2
	// cutOffs is how many leases run out while it is asked for: on a slow line the payload may leave no room to renew them.
	cutOffs = 5
	// smallPayload is read everywhere: where it does not come, it is not the event's fault, and it is asked for until it does.
	smallPayload = 64 << 10
)

// An itemID is an event, or its replay on a route: what became of the one says nothing of the other. After a failover a
// number may be another event's, so it is not the number.
type itemID struct {
	event  string
	replay int32
}

func idOf(item *store.Item) itemID {
	id := itemID{event: item.ID}
	if item.Replay {
		id.replay = item.Routes[0]
	}
	return id
}

// unread is what this process knows of an item whose payload was asked for and has not come.
type unread struct {
	leases int       // that ran out while it was asked for
	epoch  int64     // of the lease at hand
	tries  int       // under that lease, for which the answer was too much
	since  time.Time // the first question under it
	given  bool      // up, which is not settled yet
}

// under notes the lease under which the next question is.
func (u *unread) under(epoch int64, now time.Time) {
	if u.epoch != epoch {
		u.epoch, u.tries, u.since = epoch, 0, now
	}
}

// hopeless: it need not be asked for.
func (u *unread) hopeless(bytes int64) bool {
	return bytes > smallPayload && (u.given || u.leases >= cutOffs)
}

// failed takes in why a question had no answer. True: the item is given up. A server without room for a moment, or a
// statement that was cancelled, is not the event's fault: it has as long as a lease takes.
func (u *unread) failed(err error, bytes int64, now time.Time, lease time.Duration) bool {
	switch {
	case errors.Is(err, errLeaseOver):
		u.leases++
		return false // another lease is needed to give it up
	case store.TooMuch(err):
		u.tries++
		return bytes > smallPayload && u.tries >= readTries && now.Sub(u.since) >= lease
	default:
		return false
	}
}

// unreads are those of a worker.
type unreads map[itemID]*unread

func (all unreads) of(item *store.Item) *unread {
	u := all[idOf(item)]
	if u == nil {
		u = &unread{}
		all[idOf(item)] = u
	}
	return u
}

func (all unreads) forget(item *store.Item) { delete(all, idOf(item)) }

// forgetGivenUp is called when that is settled: a replay of it is asked for.
func (all unreads) forgetGivenUp() {
	maps.DeleteFunc(all, func(_ itemID, u *unread) bool { return u.given })
}
