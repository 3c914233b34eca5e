package deliver

// waiting counts, for a route with ordering = key, the events of each key that are
// pending or about to be. While there is one, a fresh event of the key goes behind it.
type waiting map[string]int

// crowd stands for all keys, where there are too many to know.
const crowd = ""

func (w waiting) has(key string) bool { return key != "" && (w[key] > 0 || w[crowd] > 0) }

func (w waiting) add(key string) {
	if key != "" {
		w[key]++
	}
}

func (w waiting) remove(key string) {
	if w[key] > 1 {
		w[key]--
	} else {
		delete(w, key)
	}
}
