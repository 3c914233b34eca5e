package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tidemarkhq/tidemark/sink"
)

// Sink delivers to one subject of a JetStream stream. Within its duplicate window the stream
// recognizes what is sent to it again: each route, and each replay, is a message of its own.
type Sink struct {
	connection *Connection
	subject    string
	format     sink.Format
}

var _ sink.Sink = (*Sink)(nil)

// Sink returns a sink that delivers to the subject, in the format. It shares the connection; its
// Close leaves the connection open.
func (c *Connection) Sink(subject string, format sink.Format) (*Sink, error) {
	format, err := sink.ParseFormat(string(format))
	if err != nil {
		return nil, err
	}
	if err := plain(subject); err != nil {
		return nil, fmt.Errorf("subject %w", err)
	}
	return &Sink{connection: c, subject: subject, format: format}, nil
}

// Limits is part of [sink.Sink]. The sink keeps no order: it sends messages without waiting for
// answers, and a stream that refuses one because it is full may accept the next.
func (s *Sink) Limits() sink.Limits { return sink.Limits{Batch: 1000} }

// Close is part of [sink.Sink].
func (s *Sink) Close() error { return nil }

// Deliver is part of [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	ctx, cancel := context.WithTimeout(ctx, s.connection.timeout)
	defer cancel()
	messages := make([]*nats.Msg, len(batch))
	for i := range batch {
		var err error
		if messages[i], err = s.message(&batch[i]); err != nil {
			results[i] = sink.Result{Status: sink.Permanent, Code: InvalidEvent, Detail: oneLine(err)}
		}
	}
	if err := s.connection.up(ctx); err != nil {
		fill(results, notSent(ctx, err))
		return results
	}
	call := s.connection.begin(s.subject)
	defer s.connection.end(call)
	// The channel has space for all answers, so the client never blocks on it and drops none.
	answers := make(chan *nats.Msg, len(batch))
	status := s.connection.conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer s.connection.conn.RemoveStatusListener(status)
	inbox, err := s.connection.conn.ChanSubscribe(call.inbox+".*", answers)
	if err != nil {
		fill(results, notSent(ctx, err))
		return results
	}
	defer func() { _ = inbox.Unsubscribe() }() // fails if the connection is gone

	waiting := s.publish(ctx, call, messages, results)
	why := call.collect(ctx, answers, status, waiting, results)
	fill(results, why)
	return results
}

// fill sets the results that are still missing.
func fill(results []sink.Result, with sink.Result) {
	for i := range results {
		if results[i].Status == 0 {
			results[i] = with
		}
	}
}

// grace is how long a publish may still take after ctx is done.
const grace = 200 * time.Millisecond

// publish sends the messages and returns how many answers to expect. It sets the results of messages that were not
// sent.
func (s *Sink) publish(ctx context.Context, k *call, messages []*nats.Msg, results []sink.Result) (waiting int) {
	// A server that stops reading blocks the publish, which holds the client's lock.
	var done atomic.Bool
	defer done.Store(true)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() {
			if !done.Load() {
				s.connection.dialer.breakConn()
			}
		})
	})()
	for i, m := range messages {
		if results[i].Status != 0 {
			continue
		}
		if ctx.Err() != nil {
			results[i] = notSent(ctx, ctx.Err())
			continue
		}
		m.Reply = k.inbox + "." + strconv.Itoa(i)
		switch err := s.connection.conn.PublishMsg(m); {
		case err == nil:
			waiting++
		case errors.Is(err, nats.ErrMaxPayload):
			results[i] = sink.Result{
				Status: sink.Permanent, Code: TooLarge,
				Detail: fmt.Sprintf("larger than the %d bytes that the server takes, headers included", s.connection.conn.MaxPayload()),
			}
		case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed),
			errors.Is(err, nats.ErrHeadersNotSupported):
			results[i] = notSent(ctx, err)
		default: // the write failed half-way
			results[i] = sink.Result{Status: sink.Unknown, Code: Connect, Detail: oneLine(err)}
		}
	}
	return waiting
}

// collect waits for the answers. It returns the result of the messages without one.
func (k *call) collect(ctx context.Context, answers <-chan *nats.Msg, status <-chan nats.Status, waiting int, results []sink.Result) sink.Result {
	var why sink.Result
	for waiting > 0 && why.Status == 0 {
		select {
		case m := <-answers:
			waiting -= k.answer(m, results)
		case <-status:
			why = sink.Result{Status: sink.Unknown, Code: Connect, Detail: "the connection broke before the stream answered"}
		case err := <-k.publish:
			why = sink.Result{Status: sink.Retry, Code: NotAuthorized, Refused: true, Detail: oneLine(err)}
		case err := <-k.answers:
			why = sink.Result{Status: sink.Unknown, Code: NotAuthorized, Detail: oneLine(err)}
		case <-ctx.Done():
			code, detail := ended(ctx)
			why = sink.Result{Status: sink.Unknown, Code: code, Detail: detail + " before the stream answered"}
		}
	}
	for { // answers that came at the same time
		select {
		case m := <-answers:
			k.answer(m, results)
		default:
			return why
		}
	}
}

// answer sets the result of an answer. It returns 1, or 0 if the answer belongs to no open delivery.
func (k *call) answer(m *nats.Msg, results []sink.Result) int {
	i, err := strconv.Atoi(strings.TrimPrefix(m.Subject, k.inbox+"."))
	if err != nil || i < 0 || i >= len(results) || results[i].Status != 0 {
		return 0
	}
	results[i] = answered(m)
	return 1
}
