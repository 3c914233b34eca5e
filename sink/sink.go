// Package sink defines the interface that delivers events to targets outside the
// database. Each package below implements it for one kind of target.
package sink

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Delivery is one event on its way to one target.
type Delivery struct {
	Event tidemark.Event // as stored in the log: ID, Seq and CreatedAt are set

	Route   string // code of the route
	Attempt int    // its number on record: 1 if nothing was recorded before, such as that the event waited or the route was off
	First   int    // the number of its first attempt: the same for its retries, another for a replay
	Epoch   int64  // of the sender's lease: a target that has seen a higher one may refuse this one
	Replay  bool   // an operator sends an earlier event again
	Test    bool   // an operator tests the target: the event is not in the log
}

// Status says what the target did with a delivery. What is recorded as the outcome also depends on the route.
type Status int

// The statuses of a delivery.
const (
	// Delivered: the target has accepted the event for good.
	Delivered Status = iota + 1
	// Retry: the target does not have the event, and may accept it later.
	Retry
	// Permanent: the target will never accept the event, however often it is sent.
	Permanent
	// Unknown: the event was sent, and no answer came back. It is sent again, so the
	// target may get it twice.
	Unknown
)

// Result is the answer to one delivery.
type Result struct {
	Status Status

	// After is how long the target asks the sender to wait, with Retry. Default: 0, the
	// route's retry policy decides.
	After time.Duration

	// Code is the reason why the event was not delivered, one of a small closed set of
	// the sink, such as "http_503", "timeout" or "too_large". Empty with Delivered.
	Code string

	// Detail is one line for people, without secrets and without the payload. Empty with
	// Delivered.
	Detail string

	// Local, with Retry: this host lacked a resource to reach the target, such as a file
	// descriptor or memory ([IsLocal]), and sent nothing. The delivery does not count as an
	// attempt.
	Local bool

	// Refused, with Retry: the target refused the sender, not the event: its credentials, or it for
	// another copy of the database (CodeCopy). While it refuses everything, a delivery does not
	// count as an attempt.
	Refused bool

	// Gone, with Permanent: the target will never accept anything again. The worker
	// switches the route off and opens a finding.
	Gone bool
}

// Sink delivers to one target. Its methods may be called from several goroutines at once.
//
// The suite tidemarktest.TestSink checks an implementation against this description.
type Sink interface {
	// Deliver sends the batch and returns one result for each delivery, in the order of
	// the batch. It returns soon after ctx is done: then deliveries that were not sent are
	// Retry, and those that may have arrived are Unknown. It never panics on an event, and
	// it sends nothing after it has returned. The caller holds no database transaction open.
	Deliver(ctx context.Context, batch []Delivery) []Result

	// Limits returns what Deliver accepts in one call. It never changes.
	Limits() Limits

	// Close closes the sink's connections. The caller does not call Deliver after it.
	Close() error
}

// Limits says what a sink accepts in one call of Deliver.
type Limits struct {
	// Batch is the highest number of deliveries in a call, at least 1.
	Batch int

	// KeepsOrder: a batch may hold several deliveries with the same key. The sink promises
	// that they arrive in the order of the batch, and that none arrives after an earlier one
	// of its key that ended as Retry or Unknown. Without that promise a batch holds each key
	// at most once.
	KeepsOrder bool
}
