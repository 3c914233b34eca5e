package signin

import (
	"sync"
	"time"
)

// A client may be refused ten times a minute, and so may a name.
const (
	tryLimit  = 10
	tryPeriod = time.Minute
)

// tries counts refused sign-ins. Its size is bounded: a name that is not known to it is not counted once it is full, but
// its client is.
type tries struct {
	mu    sync.Mutex
	began time.Time
	count map[string]int
}

const triesKept = 10000

func (t *tries) allowed(now time.Time, client, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.began) >= tryPeriod {
		t.began, t.count = now, map[string]int{}
	}
	return t.count["client "+client] < tryLimit && t.count["name "+name] < tryLimit
}

func (t *tries) failed(client, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range []string{"client " + client, "name " + name} {
		if _, known := t.count[key]; (known || len(t.count) < triesKept) && key != "name " {
			t.count[key]++
		}
	}
}

// succeeded forgets the failures of someone who has mistyped her password.
func (t *tries) succeeded(client, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.count, "client "+client)
	delete(t.count, "name "+name)
}
