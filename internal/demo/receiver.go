package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// Where the receiver takes events.
const (
	keyedPath = "/by-key"
	loosePath = "/in-any-order"
)

// A receiver is the HTTP server that webhooks are sent to.
type receiver struct {
	*trial.Receiver

	key    []byte
	keyed  inbox
	loose  inbox
	faulty atomic.Bool
}

// An inbox is one of its addresses.
type inbox struct {
	*journal
	requests atomic.Int64 // while faulty
}

// While the receiver is faulty, it refuses one of every everyFault requests, and leaves another without an answer.
const (
	everyFault = 50
	refuseAt   = 3
	silentAt   = 13
)

func newReceiver(ctx context.Context) (*receiver, error) {
	r := &receiver{key: make([]byte, 32)}
	r.keyed.journal, r.loose.journal = newJournal(), newJournal()
	_, _ = rand.Read(r.key) // never fails
	var err error
	r.Receiver, err = trial.Receive(ctx, r.key, r.take)
	return r, err
}

// secret returns the key as it is written into the configuration of both sides.
func (r *receiver) secret() string { return "whsec_" + base64.StdEncoding.EncodeToString(r.key) }

func (r *receiver) take(q trial.Request) trial.Answer {
	into := &r.keyed
	if q.Path == loosePath {
		into = &r.loose
	}
	got, err := read(q.Body)
	if err != nil {
		return trial.Answer{Status: http.StatusBadRequest, Text: err.Error()}
	}
	n := int64(0)
	if r.faulty.Load() {
		n = into.requests.Add(1)
	}
	if n%everyFault == refuseAt {
		return trial.Answer{
			Status: http.StatusServiceUnavailable, Text: "not now", RetryAfter: strconv.FormatInt(n/everyFault%2, 10),
		}
	}
	into.add(got)
	return trial.Answer{Break: n%everyFault == silentAt}
}
