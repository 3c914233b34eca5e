package webhook

import (
	"errors"
	"io"
	"sync"
)

// body is what a request says, until it is closed. The transport may go on reading after it has given
// the request up: then the buffer belongs to the next request already, and nothing may leave any more.
type body struct {
	mu     sync.Mutex
	data   []byte
	read   bool
	closed bool
}

var errClosed = errors.New("the request was given up")

// wasRead: as long as nobody asked for a byte, the event cannot have arrived.
func (b *body) wasRead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

func (b *body) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.data = true, nil
}

// open is called more than once when the transport repeats a request of which no byte was written because
// the connection had been closed, or which the server says it has not looked at.
func (b *body) open() (io.ReadCloser, error) { return &reader{of: b}, nil }

// reader is one reading of a body. It is for Deliver to close the body, not for the transport.
type reader struct {
	of *body
	at int
}

func (r *reader) Read(p []byte) (int, error) {
	b := r.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, errClosed
	}
	b.read = true
	n := copy(p, b.data[r.at:])
	r.at += n
	if r.at == len(b.data) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) Close() error { return nil }
