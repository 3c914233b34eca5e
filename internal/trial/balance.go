package trial

import (
	"fmt"
	"time"
)

// Arrival is an event as a target got it. The application counts the versions of a key up.
type Arrival struct {
	Event   string
	Key     string
	Version int64
	At      time.Time
}

// Balance is what came of the events that were committed.
type Balance struct {
	Delivered  int // committed events that arrived
	Lost       int // committed events that did not
	Invented   int // arrivals of events that were not committed
	Twice      int // arrivals that were not the first of their event
	OutOfOrder int // first arrivals of a key's version after a later one

	Again map[string]int       // Twice by event
	First map[string]time.Time // arrival of each event
}

// Settle compares the arrivals, in their order, with what was committed.
func Settle(committed map[string]bool, arrivals []Arrival) Balance {
	b := Balance{Again: map[string]int{}, First: map[string]time.Time{}}
	order := NewOrder()
	for _, a := range arrivals {
		if !committed[a.Event] {
			b.Invented++
			continue
		}
		first, before := order.Next(a.Event, a.Key, a.Version)
		switch {
		case !first:
			b.Twice++
			b.Again[a.Event]++
			continue
		case before != "":
			b.OutOfOrder++
		}
		b.First[a.Event] = a.At
	}
	b.Delivered = len(b.First)
	b.Lost = len(committed) - b.Delivered
	return b
}

// Err wants every event once, and those of a key in their order.
func (b Balance) Err() error {
	if b.Lost != 0 || b.Twice != 0 || b.OutOfOrder != 0 || b.Invented != 0 {
		return fmt.Errorf("%d events lost, %d twice, %d before an earlier one of their key, %d unknown",
			b.Lost, b.Twice, b.OutOfOrder, b.Invented)
	}
	return nil
}

// Order follows the first deliveries of events: the versions of a key are to rise.
type Order struct {
	seen map[string]bool
	last map[string]placed // by key
}

type placed struct {
	event   string
	version int64
}

// NewOrder has seen nothing.
func NewOrder() *Order { return &Order{map[string]bool{}, map[string]placed{}} }

// Next takes in a delivery. first: it is the first of its event. before: an event of its key with a later version that came
// before it; empty: it came in order.
func (o *Order) Next(event, key string, version int64) (first bool, before string) {
	if o.seen[event] {
		return false, ""
	}
	o.seen[event] = true
	if last, any := o.last[key]; any && last.version > version {
		return true, last.event
	}
	o.last[key] = placed{event, version}
	return true, ""
}
