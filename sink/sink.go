// Package sink is what carries events out of the database: a small interface, and one
// package below for each kind of destination.
package sink

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Delivery is one event on its way to one target.
type Delivery struct {
	Event tidemark.Event // as it stands in the log: ID, Seq and CreatedAt are set

	Route   string // code of the route
	Attempt int    // 1 for the first
	Epoch   int64  // the sender's lease: a target that saw a higher one may refuse this one
	Replay  bool   // an operator sends a dead letter again
	Test    bool   // an operator tests the target: the event is not in the log
}

// Outcome is what a target made of a delivery.
type Outcome int

// The outcomes that there are.
const (
	// Delivered: the target has it for good.
	Delivered Outcome = iota + 1
	// Retry: the target does not have it, and may take it later.
	Retry
	// Permanent: the target will never take it, however often it is tried.
	Permanent
	// Unknown: it left, and no answer came back. It is tried again, so that the target
	// may get it twice.
	Unknown
)

// Result is the answer to one delivery.
type Result struct {
	Outcome Outcome

	// After is how long the target asks to be left alone, with Retry. Default: the
	// route's retry policy decides.
	After time.Duration

	// Code says in a word why it was not delivered: a small closed set per sink, such as
	// "http_503", "timeout" or "too_large". Empty with Delivered.
	Code string

	// Detail is one line for people, without secrets and without the payload.
	Detail string

	// Local: this host lacked what it takes to reach the target, such as a file or memory ([IsLocal]); nothing was sent. With Retry. It
	// does not count as an attempt.
	Local bool

	// Gone: the target says that it will never take anything again. The route is
	// switched off, with a finding.
	Gone bool
}

// Sink delivers to one target. Its methods may be called from several goroutines at once.
//
// The suite tidemarktest.TestSink holds an implementation to all that is said here.
type Sink interface {
	// Deliver sends the batch and answers each delivery, in the order of the batch. It
	// returns when all are answered, soon after ctx is done at the latest: then those
	// that never left are Retry and those that may have arrived are Unknown. It never
	// panics on an event, and it sends nothing after it has returned. No database
	// transaction is open meanwhile.
	Deliver(ctx context.Context, batch []Delivery) []Result

	// Limits says what Deliver takes at a time.
	Limits() Limits

	// Close gives connections back. Nobody delivers any more.
	Close() error
}

// Limits says what a sink takes at a time.
type Limits struct {
	// Batch is the highest number of deliveries in a call, at least 1.
	Batch int

	// KeepsOrder: in one batch several deliveries may have the same key. They arrive in
	// the order of the batch, and none of them arrives after an earlier one of its key
	// that came to Retry or Unknown. A sink that cannot promise this gets no two of a key
	// in a batch.
	KeepsOrder bool
}
