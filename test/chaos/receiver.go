package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A receiver is a target of webhooks. It writes down what comes before it answers.
type receiver struct {
	*trial.Receiver

	route    string
	refuses  bool // poison
	arrivals *trial.Journal[arrival]
	latest   atomic.Int64 // write that came

	mu      sync.Mutex
	random  *rand.Rand
	mood    mood
	usual   mood
	failing map[string]time.Time // keys that are refused until then
	fresh   time.Time            // replays are refused until then
	first   map[string]bool      // events that were taken
}

// mood is how likely a receiver is to do what.
type mood struct {
	fail, lose, hang float64
}

func newReceiver(
	ctx context.Context, route string, key []byte, usual mood, arrivals *trial.Journal[arrival], random *rand.Rand,
) (*receiver, error) {
	r := &receiver{
		route: route, refuses: true, arrivals: arrivals, random: random,
		mood: usual, usual: usual, failing: map[string]time.Time{}, first: map[string]bool{},
	}
	var err error
	r.Receiver, err = trial.Receive(ctx, key, r.take)
	return r, err
}

// feel changes the mood; calm brings the usual one back.
func (r *receiver) feel(m mood) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mood = m
}

func (r *receiver) calm() { r.feel(r.usual) }

// failKey refuses a key for d.
func (r *receiver) failKey(key string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing[key] = time.Now().Add(d)
}

// refuseReplays refuses what comes as a replay for d.
func (r *receiver) refuseReplays(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh = time.Now().Add(d)
}

// distinct is how many events it has taken.
func (r *receiver) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.first)
}

// message is the part of a CloudEvent that is looked at.
type message struct {
	ID   string `json:"id"`
	Key  string `json:"partitionkey"`
	Data struct {
		ID      int64  `json:"id"`
		Version int    `json:"version"`
		Poison  string `json:"poison"`
	} `json:"data"`
}

func (r *receiver) take(q trial.Request) trial.Answer {
	var m message
	if json.Unmarshal(q.Body, &m) != nil || m.ID != q.Header.Get("Webhook-Id") {
		r.Forged.Add(1)
		return trial.Answer{Status: http.StatusUnauthorized, Text: "who are you"}
	}
	a := arrival{
		At: q.At, Route: r.route, Event: m.ID, ID: m.Data.ID, Key: m.Key, Version: m.Data.Version,
		Replay: q.Header.Get("Tidemark-Replay") == "true",
	}
	a.Epoch, _ = strconv.ParseInt(q.Header.Get("Tidemark-Epoch"), 10, 64)
	a.Attempt, _ = strconv.Atoi(q.Header.Get("Tidemark-Attempt"))
	hang := r.judge(&a, m.Data.Poison != "" && r.refuses)
	r.arrivals.Add(a)
	r.latest.Store(a.ID)
	return r.reply(a.Answer, hang)
}

// judge decides what to make of an arrival.
func (r *receiver) judge(a *arrival, bad bool) (hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dice := r.random.Float64()
	until, failing := r.failing[a.Key]
	switch m := r.mood; {
	case bad && (!a.Replay || dice < 0.4): // which another replay may mend
		a.Answer = poison
	case a.Replay && a.At.Before(r.fresh), failing && a.At.Before(until), dice < m.fail:
		a.Answer = refused
	case dice < m.fail+m.lose:
		a.Answer = unheard
	case dice < m.fail+m.lose+m.hang:
		a.Answer, hang = unheard, true
	}
	if a.Answer.took() {
		r.first[a.Event] = true
	}
	return hang
}

func (r *receiver) reply(a answer, hang bool) trial.Answer {
	switch a {
	case unheard:
		return trial.Answer{Hang: hang, Break: !hang}
	case poison:
		return trial.Answer{Status: http.StatusBadRequest, Text: "never"}
	case refused:
		r.mu.Lock()
		dice := r.random.IntN(8)
		r.mu.Unlock()
		reply := trial.Answer{Status: http.StatusServiceUnavailable, Text: "not now"}
		if dice < 4 {
			reply.Status = http.StatusInternalServerError
		}
		if dice == 0 {
			reply.RetryAfter = "1"
		}
		return reply
	}
	return trial.Answer{}
}
