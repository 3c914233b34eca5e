package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A journal is what one target got, in the order in which it got it, as the target itself wrote it down.
type journal struct {
	mu       sync.Mutex
	arrivals []arrival
	distinct map[string]bool
}

type arrival struct {
	event   string
	unit    string
	version int64 // of the unit: the application counts them up
	at      time.Time
}

func newJournal() *journal { return &journal{distinct: map[string]bool{}} }

func (j *journal) add(a arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrivals = append(j.arrivals, a)
	j.distinct[a.event] = true
}

// events is how many different ones have arrived.
func (j *journal) events() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.distinct)
}

// lastBetween is the latest arrival from one moment on and before another. Zero: there was none.
func (j *journal) lastBetween(from, to time.Time) (last time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, a := range j.arrivals {
		if !a.at.Before(from) && a.at.Before(to) && a.at.After(last) {
			last = a.at
		}
	}
	return last
}

// account is what a journal comes to.
type account struct {
	delivered  int // committed events that arrived
	lost       int // committed events that did not
	invented   int // arrivals of events that nobody committed
	again      map[string]int
	outOfOrder int           // first arrivals of a unit's version after a later one
	p50, p99   time.Duration // from the acknowledgement of the commit to the arrival
}

// repeated is how many arrivals were not the first of their event.
func (a account) repeated() (n int) {
	for _, times := range a.again {
		n += times
	}
	return n
}

// balance compares the journal with what the application committed, and with when its commits were
// acknowledged, where that is known.
func (j *journal) balance(committed map[string]bool, acknowledged map[string]time.Time) account {
	j.mu.Lock()
	defer j.mu.Unlock()
	a := account{again: map[string]int{}}
	seen, latest := map[string]bool{}, map[string]int64{}
	var waits []time.Duration
	for _, got := range j.arrivals {
		switch {
		case !committed[got.event]:
			a.invented++
			continue
		case seen[got.event]:
			a.again[got.event]++
			continue
		}
		seen[got.event] = true
		a.delivered++
		if got.version < latest[got.unit] {
			a.outOfOrder++
		}
		latest[got.unit] = max(latest[got.unit], got.version)
		if at, ok := acknowledged[got.event]; ok {
			waits = append(waits, got.at.Sub(at))
		}
	}
	a.lost = len(committed) - a.delivered
	slices.Sort(waits)
	a.p50, a.p99 = quantile(waits, 0.50), quantile(waits, 0.99)
	return a
}

// quantile is that of sorted values. Zero: there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// read reads a CloudEvent in its JSON form.
func read(body []byte) (arrival, error) {
	var event struct {
		ID   string `json:"id"`
		Data struct {
			Unit    string `json:"unit_id"`
			Version string `json:"version_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID == "" {
		return arrival{}, fmt.Errorf("no CloudEvent: %w", err)
	}
	version, _ := strconv.ParseInt(event.Data.Version, 10, 64) // the poison's is no number, and 0 here
	return arrival{event: event.ID, unit: event.Data.Unit, version: version, at: time.Now()}, nil
}
