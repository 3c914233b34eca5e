package tidemarktest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Receiver is a webhook target in the test. A daemon delivers to it if its configuration allows the address:
//
//	webhook: {allow: ["127.0.0.1/32"]}
type Receiver struct {
	URL string

	status   atomic.Int64
	received chan Received
}

// Received is a request that came to a Receiver.
type Received struct {
	Header http.Header
	Body   []byte
}

// NewReceiver starts a receiver that answers 204. It ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{received: make(chan Received, 1000)}
	r.status.Store(http.StatusNoContent)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Answer sets the status that the receiver answers with from now on.
func (r *Receiver) Answer(status int) { r.status.Store(int64(status)) }

// Next returns the next request, and waits for it for at most 20 seconds.
func (r *Receiver) Next(t testing.TB) Received {
	t.Helper()
	select {
	case got := <-r.received:
		return got
	case <-time.After(patience):
		t.Fatal("nothing came to the receiver")
		return Received{}
	}
}

// ServeHTTP takes a request. More than 1000 that no Next has taken are refused with 503.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender has gone
	}
	status := int(r.status.Load())
	select {
	case r.received <- Received{request.Header, body}:
	default:
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
}
