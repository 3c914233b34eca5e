// Package intake reads events from untrusted text, strictly: what it cannot keep
// whole it refuses, and says where and why.
package intake

import (
	"fmt"
	"io"

	"github.com/tidemarkhq/tidemark"
)

// MaxLine is the longest line, and the largest CloudEvent that stands on more
// than one, in bytes without the newline.
const MaxLine = 1 << 20

// Item is an event and the line, counted from 1, that it stood on.
type Item struct {
	Line  int
	Event tidemark.Event
}

// LineError is a line that was refused. The reader can go on behind it.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Reader gives the events of an input one by one. Lines of nothing but white space
// are passed over.
type Reader struct {
	lines *lines
	parse func([]byte) (tidemark.Event, error)
	// whole: the first event may stand on many lines, if it is the only one.
	whole bool
}

// NewReader reads the form of [ParseEvent], one event a line.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: newLines(r), parse: ParseEvent}
}

// NewCloudEvents reads the form of [CloudEvents.Parse]: one event a line, or a single
// event on as many lines as it likes.
func NewCloudEvents(r io.Reader, c CloudEvents) *Reader {
	return &Reader{lines: newLines(r), parse: c.Parse, whole: true}
}

// Next returns the next event; io.EOF where there is none; a *[LineError] for a line
// that is refused, after which Next may be called again; or the error of the input.
func (r *Reader) Next() (Item, error) {
	text, number, err := r.lines.next()
	if err != nil {
		return Item{}, err
	}
	if r.whole {
		r.whole = false
		if text, err = r.lines.join(text); err != nil {
			return Item{}, err
		}
	}
	event, err := r.parse(text)
	if err != nil {
		return Item{}, &LineError{Line: number, Err: err}
	}
	return Item{Line: number, Event: event}, nil
}
