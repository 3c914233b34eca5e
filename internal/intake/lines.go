package intake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errTooLong = fmt.Errorf("is longer than %d bytes", MaxLine)

// lines splits an input into lines. It never holds more than MaxLine bytes of it.
type lines struct {
	input  *bufio.Reader
	number int
	buffer []byte
}

func newLines(r io.Reader) *lines { return &lines{input: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line that is not blank, without its newline. The text is valid
// until the next call.
func (l *lines) next() (text []byte, number int, err error) {
	for {
		text, err := l.line()
		if err != nil {
			return nil, 0, err
		}
		if len(bytes.TrimSpace(text)) > 0 {
			return text, l.number, nil
		}
	}
}

func (l *lines) line() ([]byte, error) {
	l.number++
	l.buffer = l.buffer[:0]
	tooLong := false
	for {
		part, err := l.input.ReadSlice('\n')
		ended := err == nil
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if tooLong = tooLong || len(l.buffer)+len(part) > MaxLine; !tooLong {
			l.buffer = append(l.buffer, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d: %w", l.number, err)
		case tooLong: // it was read to its end, so that the next call begins at a line
			return nil, &LineError{Line: l.number, Err: errTooLong}
		case ended || len(l.buffer) > 0:
			return l.buffer, nil
		default:
			return nil, io.EOF
		}
	}
}

// join returns first and the rest of the input if these are JSON together and first alone
// is not. Otherwise it returns first, and the next call of next returns the line after it.
func (l *lines) join(first []byte) ([]byte, error) {
	if json.Valid(first) {
		return first, nil
	}
	rest, err := io.ReadAll(io.LimitReader(l.input, int64(MaxLine-len(first))))
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	}
	whole := append(append(bytes.Clone(first), '\n'), rest...)
	if len(whole) <= MaxLine && json.Valid(whole) {
		return whole, nil
	}
	l.input = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), l.input), 64<<10)
	return first, nil
}
