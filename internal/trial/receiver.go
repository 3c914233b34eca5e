// Package trial is how Tidemark is put to the proof by the demo, by chaos and by the benchmark: a receiver of webhooks, a journal
// of what came, and the balance of that against what was committed. It imports nothing of Tidemark, which it judges.
package trial

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Request is a webhook whose signature is right.
type Request struct {
	At     time.Time // before its body was read
	Path   string
	Header http.Header
	Body   []byte // until the answer
}

// Answer is what a receiver answers. The zero Answer takes the request: 204.
type Answer struct {
	Status     int
	Text       string
	RetryAfter string

	Break bool // the connection breaks instead: the sender cannot know whether the event arrived
	Hang  bool // no answer comes: the sender gives up first
}

// Receiver is a target of webhooks. It knows of Tidemark no more than what Standard Webhooks says.
type Receiver struct {
	Forged atomic.Int64 // requests whose signature is wrong
	Silent atomic.Int64 // requests that got no answer

	key    []byte
	take   func(Request) Answer
	server *http.Server
	url    string
}

// maxBody is in bytes.
const maxBody = 1 << 20

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Receive listens on a port of this host. take writes a request down and says how to answer it; several may come at once. Without a
// key no signature is checked.
func Receive(ctx context.Context, key []byte, take func(Request) Answer) (*Receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{key: key, take: take, url: "http://" + listener.Addr().String()}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // returns when closed
	return r, nil
}

// URL is where it listens, without a path.
func (r *Receiver) URL() string { return r.url }

// Address is its host and port.
func (r *Receiver) Address() string { return strings.TrimPrefix(r.url, "http://") }

// Close breaks all connections.
func (r *Receiver) Close() error { return r.server.Close() }

// ServeHTTP is part of [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	at := time.Now()
	buffer := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(buffer)
	buffer.Reset()
	n, err := buffer.ReadFrom(io.LimitReader(q.Body, maxBody+1))
	switch {
	case err != nil:
		return // cut off on the way here: it did not arrive
	case n > maxBody:
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	case r.key != nil && !Verified(r.key, q.Header, buffer.Bytes(), at):
		r.Forged.Add(1)
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	answer := r.take(Request{At: at, Path: q.URL.Path, Header: q.Header, Body: buffer.Bytes()})
	if answer.RetryAfter != "" {
		w.Header().Set("Retry-After", answer.RetryAfter)
	}
	switch {
	case answer.Hang:
		r.Silent.Add(1)
		<-q.Context().Done()
	case answer.Break:
		r.Silent.Add(1)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			Reset(c)
		}
	case answer.Status != 0:
		http.Error(w, answer.Text, answer.Status)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// Reset closes a connection without what was not sent yet.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Verified checks a signature as Standard Webhooks says: HMAC-SHA256 over id, time and body, not too old.
func Verified(key []byte, h http.Header, body []byte, now time.Time) bool {
	stamp := h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("Webhook-Id") + "." + stamp + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for one := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		version, text, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}
