package webhook

import (
	"errors"
	"io"
	"sync"
)

// body is the body of a request. The transport may go on reading after it has given up the request, when the buffer
// already belongs to the next one. So Deliver closes the body, and reads fail from then on.
type body struct {
	mu     sync.Mutex
	data   []byte
	read   bool
	closed bool
}

var errClosed = errors.New("the request was given up")

// wasRead reports whether the transport has read the body. If not, the event cannot have arrived.
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

// open returns a reader of the whole body. The transport calls it again when it repeats a request: if no byte was
// written because the connection had been closed, or if the server says that it has not processed the request.
func (b *body) open() (io.ReadCloser, error) { return &reader{of: b}, nil }

// reader reads a body once. Its Close does nothing: Deliver closes the body, not the transport.
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
