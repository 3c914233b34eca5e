package deliver

// waiting counts, for a route with ordering = key, the live events of each key that are pending or about to be. While a
// key has one, a fresh event of the key goes behind it.
type waiting struct {
	keys map[string]int
	most int // keys that it may hold
	// uncounted: there are too many keys to hold, or they were not counted. Every key counts as
	// one that waits until the database is asked again (Deliverer.Recount): the database
	// knows which event is the first of its key, and releases it at once.
	uncounted bool
}

func newWaiting(most int) *waiting { return &waiting{keys: map[string]int{}, most: most} }

func (w *waiting) any() bool { return w.uncounted || len(w.keys) > 0 }

func (w *waiting) has(key string) bool { return key != "" && (w.uncounted || w.keys[key] > 0) }

func (w *waiting) add(key string, events int) {
	switch {
	case key == "" || w.uncounted:
	case w.keys[key] == 0 && len(w.keys) >= w.most:
		w.forget()
	default:
		w.keys[key] += events
	}
}

func (w *waiting) remove(key string) {
	if w.keys[key] > 1 {
		w.keys[key]--
	} else {
		delete(w.keys, key)
	}
}

// forget leaves all keys uncounted.
func (w *waiting) forget() { w.keys, w.uncounted = nil, true }
