// Webhook-receiver receives events from Tidemark. It is a model for a receiver of your own: it verifies the
// signature, refuses old requests, and handles each event once.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBody   = 1 << 20
	tolerance = 5 * time.Minute // age of a request, and difference of the clocks
	maxSeen   = 100_000
)

func main() {
	r, err := newReceiver(strings.Fields(os.Getenv("WEBHOOK_SECRETS")), func(id string, event json.RawMessage) error {
		fmt.Printf("%s %s\n", id, event)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"), Handler: r, ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

type receiver struct {
	keys   [][]byte
	handle func(id string, event json.RawMessage) error
	now    func() time.Time

	mu    sync.Mutex // one event at a time, so that two copies are never handled together
	seen  map[string]bool
	order []string // the ids in seen, oldest first
}

// newReceiver takes the secrets in the form that Tidemark has them in: several during a change.
func newReceiver(secrets []string, handle func(id string, event json.RawMessage) error) (*receiver, error) {
	r := &receiver{handle: handle, now: time.Now, seen: map[string]bool{}}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		// With an empty key, anyone could sign.
		if err != nil || len(key) < 24 || !strings.HasPrefix(secret, "whsec_") {
			return nil, errors.New("a secret must be whsec_ and at least 24 bytes in base64")
		}
		r.keys = append(r.keys, key)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("set WEBHOOK_SECRETS, with blanks between several")
	}
	return r, nil
}

// ServeHTTP answers 401 to a request that it cannot verify, and 500 after a failure that a retry may cure: Tidemark keeps the event and
// sends it again. At 400 it would give the event up.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // the sender hung up
	}
	if err := r.verify(req.Header, body); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if err := r.once(req.Header.Get("webhook-id"), body); err != nil {
		log.Print(err)
		http.Error(w, "try again", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// verify checks the body as it came: JSON that is parsed and written again may have other bytes.
func (r *receiver) verify(h http.Header, body []byte) error {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return errors.New("no webhook-id or no webhook-timestamp")
	}
	// This stops an attacker who recorded a request from sending it again tomorrow. A retry has a timestamp of
	// its own.
	if age := r.now().Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return errors.New("webhook-timestamp is too old or too new")
	}
	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		text, v1 := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(text)
		if !v1 || err != nil {
			continue // a signature of another version
		}
		for _, key := range r.keys {
			mac := hmac.New(sha256.New, key)
			fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
			if hmac.Equal(got, mac.Sum(nil)) {
				return nil
			}
		}
	}
	return errors.New("no webhook-signature matches a known secret")
}

// once handles an event unless it was handled before: Tidemark sends an event again when the answer was lost.
// This receiver forgets the ids when it ends. With a database, insert the id in the transaction of the effect.
func (r *receiver) once(id string, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return nil
	}
	if err := r.handle(id, body); err != nil {
		return fmt.Errorf("event %s: %w", id, err)
	}
	r.seen[id] = true
	r.order = append(r.order, id)
	if len(r.order) > maxSeen {
		delete(r.seen, r.order[0])
		r.order = r.order[1:]
	}
	return nil
}
