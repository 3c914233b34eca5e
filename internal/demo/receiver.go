package demo

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Where the receiver takes events.
const (
	keyedPath = "/by-key"
	loosePath = "/in-any-order"
)

// A receiver is what somebody who takes webhooks has at the other end. It knows of Tidemark no more than
// what Standard Webhooks says.
type receiver struct {
	server *http.Server
	url    string
	key    []byte

	keyed inbox
	loose inbox

	faulty atomic.Bool
	silent atomic.Int64 // requests that were taken, without an answer
	forged atomic.Int64 // requests with a signature that is wrong
}

// An inbox is one of its addresses.
type inbox struct {
	*journal
	requests atomic.Int64 // while faulty
}

// Of so many requests one is refused and one gets no answer, while the receiver is faulty.
const (
	everyFault = 50
	refuseAt   = 3
	silentAt   = 13
)

func newReceiver(ctx context.Context) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String(), key: make([]byte, 32)}
	r.keyed.journal, r.loose.journal = newJournal(), newJournal()
	_, _ = rand.Read(r.key) // never fails
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+keyedPath, func(w http.ResponseWriter, q *http.Request) { r.take(w, q, &r.keyed) })
	mux.HandleFunc("POST "+loosePath, func(w http.ResponseWriter, q *http.Request) { r.take(w, q, &r.loose) })
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // returns when closed
	return r, nil
}

func (r *receiver) close() error { return r.server.Close() }

// secret is the key as both sides write it into their configuration.
func (r *receiver) secret() string { return "whsec_" + base64.StdEncoding.EncodeToString(r.key) }

func (r *receiver) take(w http.ResponseWriter, q *http.Request, into *inbox) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
	if err != nil {
		http.Error(w, "cannot be read", http.StatusBadRequest)
		return
	}
	if !verified(r.key, q.Header, body, time.Now()) {
		r.forged.Add(1)
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	got, err := read(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := int64(0)
	if r.faulty.Load() {
		n = into.requests.Add(1)
	}
	if n%everyFault == refuseAt {
		w.Header().Set("Retry-After", strconv.FormatInt(n/everyFault%2, 10))
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	into.add(got)
	if n%everyFault == silentAt {
		r.silent.Add(1)
		panic(http.ErrAbortHandler) // the connection breaks: the sender cannot know that the event arrived
	}
	w.WriteHeader(http.StatusNoContent)
}

// verified checks a signature as Standard Webhooks says: HMAC-SHA256 over id, time and body, not too old.
func verified(key []byte, h http.Header, body []byte, now time.Time) bool {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}
