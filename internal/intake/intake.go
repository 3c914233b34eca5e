// Package intake reads events from untrusted text. It refuses every line that it
// cannot keep completely, and says where and why.
package intake

import (
	"fmt"
	"io"

	"github.com/tidemarkhq/tidemark"
)

// MaxLine is the length of the longest line, and of the largest CloudEvent on
// several lines, in bytes without the newline.
const MaxLine = 1 << 20

// Item is an event and its line, counted from 1.
type Item struct {
	Line  int
	Event tidemark.Event
}

// LineError is a refused line. Reader.Next may be called again after it.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Reader returns the events of an input one by one. It skips blank lines.
type Reader struct {
	lines *lines
	parse func([]byte) (tidemark.Event, error)
	// whole: the input may be a single event on several lines.
	whole bool
}

// NewReader reads events in the form of [ParseEvent], one a line.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: newLines(r), parse: ParseEvent}
}

// NewCloudEvents reads events in the form of [CloudEvents.Parse]: one a line, or a single
// event on any number of lines.
func NewCloudEvents(r io.Reader, c CloudEvents) *Reader {
	return &Reader{lines: newLines(r), parse: c.Parse, whole: true}
}

// Next returns the next event, io.EOF at the end, a *[LineError] for a refused line, after
// which Next may be called again, or an error of the input.
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
