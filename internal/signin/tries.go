package signin

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Each counter of refused sign-ins allows ten a minute.
const (
	tryLimit  = 10
	tryPeriod = time.Minute
)

// counter counts the refused sign-ins of a client, at a name, in a browser or from a provider.
type counter struct{ kind, of string }

// Kinds of counters.
const (
	ofClient   = "client"
	ofName     = "name"
	ofDevice   = "device"
	ofProvider = "provider"
)

// tries are the counters. There are so many of a kind at most: strangers fill that of clients, and not that of names, since each guess
// at a name takes as long as bcrypt does.
type tries struct {
	mu    sync.Mutex
	began time.Time
	count map[string]map[string]int // by kind
}

const triesKept = 10000

// room tells whether the counter can count.
func (t *tries) room(c counter) bool {
	_, known := t.count[c.kind][c.of]
	return known || len(t.count[c.kind]) < triesKept
}

// allowed refuses an attempt that it cannot count. Where the table of clients is full, it counts a new client by the name alone: else
// strangers with many addresses would keep everyone out.
func (t *tries) allowed(now time.Time, counters ...counter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.began) >= tryPeriod {
		t.began, t.count = now, map[string]map[string]int{ofClient: {}, ofName: {}, ofDevice: {}, ofProvider: {}}
	}
	counted := false
	for _, c := range counters {
		room := t.room(c)
		if t.count[c.kind][c.of] >= tryLimit || !room && c.kind == ofName {
			return false
		}
		counted = counted || room
	}
	return counted
}

// over is when refused sign-ins are forgotten.
func (t *tries) over() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began.Add(tryPeriod)
}

// failed counts a refused sign-in that was allowed.
func (t *tries) failed(counters ...counter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counters {
		if t.room(c) {
			t.count[c.kind][c.of]++
		}
	}
}

// succeeded forgets the failures of someone who has mistyped her password.
func (t *tries) succeeded(counters ...counter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counters {
		delete(t.count[c.kind], c.of)
	}
}

// counters are what counts a guess of a password. A browser in which this person has signed in before has one of its own: guesses of
// strangers, at her name or behind the same proxy, do not lock her out.
func (s *SignIn) counters(r *http.Request, name string) []counter {
	var known device
	if cookie, err := r.Cookie(deviceCookie); err == nil && s.verify("device", cookie.Value, &known) && known.Name == name {
		return []counter{{ofDevice, known.ID}}
	}
	return []counter{{ofClient, s.network(r)}, {ofName, name}}
}

// network is what counts as a client. Of IPv6 that is a /64: a host has all addresses of its own.
func (s *SignIn) network(r *http.Request) string {
	client := s.client(r)
	at, err := netip.ParseAddr(client)
	if err != nil || at.Is4() {
		return client
	}
	return netip.PrefixFrom(at.WithZone(""), 64).Masked().String()
}

// deviceCookie remembers that a person has signed in in this browser. It lets no one in.
const (
	deviceCookie = "tidemark_device"
	deviceKept   = 180 * 24 * time.Hour
)

type device struct {
	Name string `json:"n"`
	ID   string `json:"i"`
}
