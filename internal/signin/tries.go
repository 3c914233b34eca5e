package signin

import (
	"net/http"
	"sync"
	"time"
)

// Each counter of refused sign-ins allows ten a minute.
const (
	tryLimit  = 10
	tryPeriod = time.Minute
)

// tries counts refused sign-ins by client, name or browser. Its size is bounded: what is not known to it is not counted once it is
// full, but its client is.
type tries struct {
	mu    sync.Mutex
	began time.Time
	count map[string]int
}

const triesKept = 10000

func (t *tries) allowed(now time.Time, counters ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.began) >= tryPeriod {
		t.began, t.count = now, map[string]int{}
	}
	for _, c := range counters {
		if t.count[c] >= tryLimit {
			return false
		}
	}
	return true
}

// over is when refused sign-ins are forgotten.
func (t *tries) over() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began.Add(tryPeriod)
}

func (t *tries) failed(counters ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counters {
		if _, known := t.count[c]; known || len(t.count) < triesKept {
			t.count[c]++
		}
	}
}

// succeeded forgets the failures of someone who has mistyped her password.
func (t *tries) succeeded(counters ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counters {
		delete(t.count, c)
	}
}

// counters are what counts a guess of a password. A browser in which this person has signed in before has one of its own: guesses of
// strangers, at her name or behind the same proxy, do not lock her out.
func (s *SignIn) counters(r *http.Request, name string) []string {
	var known device
	if cookie, err := r.Cookie(deviceCookie); err == nil && s.verify("device", cookie.Value, &known) && known.Name == name {
		return []string{"device " + known.ID}
	}
	return []string{s.clientOf(r), "name " + name}
}

// clientOf is the counter of a client.
func (s *SignIn) clientOf(r *http.Request) string { return "client " + s.client(r) }

// deviceCookie remembers that a person has signed in in this browser. It lets no one in.
const (
	deviceCookie = "tidemark_device"
	deviceKept   = 180 * 24 * time.Hour
)

type device struct {
	Name string `json:"n"`
	ID   string `json:"i"`
}
