// Package stdout writes events as lines of JSON, in order.
//
// The codes of failed deliveries are
//
//	write     the writer failed, or accepted only a part
//	invalid   the event cannot be encoded
//	timeout   the timeout passed
//	canceled  the sender was stopped
package stdout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/sink"
)

// Options of a writer.
type Options struct {
	// Format is the envelope, one that is JSON: sink.CloudEvents or sink.JSON. Default:
	// sink.CloudEvents.
	Format sink.Format
}

// Sink writes to a writer.
type Sink struct {
	w      io.Writer
	format sink.Format

	// turn is held by the write under way, which may outlast its Deliver. It guards the fields below.
	turn   chan struct{}
	buffer []byte
	torn   bool // the last line lacks its end
}

var _ sink.Sink = (*Sink)(nil)

const (
	maxBatch  = 1000
	maxBuffer = 1 << 20 // a larger buffer is not kept
)

// New returns a sink that writes to w. Only the sink should write to w, which it does not close. A writer that
// buffers, as a bufio.Writer does, must not be used: Delivered would not be true.
func New(w io.Writer, o Options) (*Sink, error) {
	format, err := sink.ParseFormat(string(o.Format))
	switch {
	case err != nil:
		return nil, err
	case format == sink.CloudEventsBinary:
		return nil, fmt.Errorf("format is %s, whose headers have no place in a line; choose %s or %s", format, sink.CloudEvents, sink.JSON)
	}
	return &Sink{w: w, format: format, turn: make(chan struct{}, 1)}, nil
}

// Limits is part of [sink.Sink]. A batch is one write, so nothing is written after a failure.
func (s *Sink) Limits() sink.Limits { return sink.Limits{Batch: maxBatch, KeepsOrder: true} }

// Close does nothing.
func (s *Sink) Close() error { return nil }

// Deliver writes the batch in one call of the writer. An event is Delivered if the writer has accepted its whole line.
//
// A write cannot be interrupted. If it has not returned when ctx is done, the batch is Unknown and may still be
// written. The next batch waits until the write has returned.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	if len(batch) == 0 {
		return results
	}
	if ctx.Err() != nil {
		return all(results, ended(ctx, sink.Retry, "nothing was written"))
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return all(results, ended(ctx, sink.Retry, "nothing was written"))
	}
	ends := s.encode(batch, results)
	done := make(chan written, 1)
	go s.write(done)
	select {
	case w := <-done:
		w.answer(ends, results)
	case <-ctx.Done():
		unknown := ended(ctx, sink.Unknown, "the writer has not returned")
		for i := range results {
			if ends[i] >= 0 {
				results[i] = unknown
			}
		}
	}
	return results
}

// encode fills the buffer with the lines and returns the end of each. For an event that cannot be encoded the end is -1,
// and encode sets its result.
func (s *Sink) encode(batch []sink.Delivery, results []sink.Result) []int {
	b := s.buffer[:0]
	if s.torn {
		b = append(b, '\n') // ends the torn line, so that a reader loses one line and not two
	}
	ends := make([]int, len(batch))
	for i := range batch {
		start := len(b)
		var err error
		if b, _, err = sink.Append(b, s.format, &batch[i]); err != nil {
			ends[i] = -1
			results[i] = sink.Result{Status: sink.Permanent, Code: "invalid", Detail: line(err)}
			continue
		}
		for j := start; j < len(b); j++ {
			if b[j] == '\n' || b[j] == '\r' { // between the tokens of a payload: JSON has them nowhere else
				b[j] = ' '
			}
		}
		b = append(append(b[:start], oneline.JSON(b[start:])...), '\n') // a terminal may show it
		ends[i] = len(b)
	}
	s.buffer = b
	return ends
}

// written is the result of a write.
type written struct {
	n   int
	err error
}

func (s *Sink) write(done chan<- written) {
	var w written
	if len(s.buffer) > 0 {
		w.n, w.err = s.w.Write(s.buffer)
		w.n = min(max(w.n, 0), len(s.buffer))
	}
	if w.err == nil && w.n < len(s.buffer) {
		w.err = io.ErrShortWrite
	}
	if w.n > 0 {
		s.torn = s.buffer[w.n-1] != '\n'
	}
	if cap(s.buffer) > maxBuffer {
		s.buffer = nil
	}
	<-s.turn
	done <- w
}

// answer sets the results: a line that was written completely is Delivered, whatever happened to the next one.
func (w written) answer(ends []int, results []sink.Result) {
	start := 0
	for i, end := range ends {
		switch {
		case end < 0:
			continue
		case w.n >= end:
			results[i] = sink.Result{Status: sink.Delivered}
		case w.n > start:
			results[i] = sink.Result{Status: sink.Unknown, Code: "write", Detail: line(fmt.Errorf("a part was written: %w", w.err))}
		default:
			results[i] = sink.Result{Status: sink.Retry, Code: "write", Detail: line(w.err)}
		}
		start = end
	}
}

func all(results []sink.Result, r sink.Result) []sink.Result {
	for i := range results {
		results[i] = r
	}
	return results
}

func ended(ctx context.Context, outcome sink.Status, what string) sink.Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sink.Result{Status: outcome, Code: "timeout", Detail: what + " within the time for it"}
	}
	return sink.Result{Status: outcome, Code: "canceled", Detail: what + " before the sender was stopped"}
}

const maxDetail = 300 // runes

// line returns the text of an error as one line.
func line(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(err.Error(), "�"))
	if runes := []rune(text); len(runes) > maxDetail {
		text = string(runes[:maxDetail]) + "…"
	}
	return text
}
