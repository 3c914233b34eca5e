package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A receiver is a target of webhooks. It writes down what comes before it answers.
type receiver struct {
	route    string
	refuses  bool // poison
	key      []byte
	arrivals *journal[arrival]
	server   *http.Server
	address  string
	forged   atomic.Int64
	unheard  atomic.Int64
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

func newReceiver(ctx context.Context, route string, key []byte, usual mood, arrivals *journal[arrival], random *rand.Rand) (*receiver, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{
		route: route, refuses: true, key: key, arrivals: arrivals, address: l.Addr().String(), random: random,
		mood: usual, usual: usual, failing: map[string]time.Time{}, first: map[string]bool{},
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

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

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // cut off on the way here: it did not arrive
	}
	var m message
	if !r.signed(q.Header, body) || json.Unmarshal(body, &m) != nil || m.ID != q.Header.Get("Webhook-Id") {
		r.forged.Add(1)
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	a := arrival{At: at, Route: r.route, Event: m.ID, ID: m.Data.ID, Key: m.Key, Version: m.Data.Version, Replay: q.Header.Get("Tidemark-Replay") == "true"}
	a.Epoch, _ = strconv.ParseInt(q.Header.Get("Tidemark-Epoch"), 10, 64)
	a.Attempt, _ = strconv.Atoi(q.Header.Get("Tidemark-Attempt"))
	hang := r.judge(&a, m.Data.Poison != "" && r.refuses)
	r.arrivals.add(a)
	r.latest.Store(a.ID)
	r.reply(w, q, a.Answer, hang)
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

func (r *receiver) reply(w http.ResponseWriter, q *http.Request, a answer, hang bool) {
	switch {
	case hang:
		r.unheard.Add(1)
		<-q.Context().Done() // the sender gives up first
	case a == unheard:
		r.unheard.Add(1)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			reset(c)
		}
	case a == poison:
		http.Error(w, "never", http.StatusBadRequest)
	case a == refused:
		r.mu.Lock()
		dice := r.random.IntN(8)
		r.mu.Unlock()
		status := http.StatusServiceUnavailable
		if dice < 4 {
			status = http.StatusInternalServerError
		}
		if dice == 0 {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, "not now", status)
	}
}

// signed: one of the signatures is right, as Standard Webhooks says.
func (r *receiver) signed(h http.Header, body []byte) bool {
	stamp := h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, r.key)
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
