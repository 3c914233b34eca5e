package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A journal is what one target got, in the order in which it got it, as the target itself wrote it down.
type journal struct {
	arrivals trial.Journal[trial.Arrival]

	mu       sync.Mutex
	distinct map[string]bool
}

func newJournal() *journal { return &journal{distinct: map[string]bool{}} }

func (j *journal) add(a trial.Arrival) {
	j.arrivals.Add(a)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.distinct[a.Event] = true
}

// events is how many different ones have arrived.
func (j *journal) events() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.distinct)
}

// lastBetween is the latest arrival from one moment on and before another. Zero: there was none.
func (j *journal) lastBetween(from, to time.Time) (last time.Time) {
	for _, a := range j.arrivals.All() {
		if !a.At.Before(from) && a.At.Before(to) && a.At.After(last) {
			last = a.At
		}
	}
	return last
}

// account is what a journal comes to.
type account struct {
	trial.Balance

	p50, p99 time.Duration // from the acknowledgement of the commit to the arrival
}

// balance compares the journal with what the application committed, and with when its commits were
// acknowledged, where that is known.
func (j *journal) balance(committed map[string]bool, acknowledged map[string]time.Time) account {
	a := account{Balance: trial.Settle(committed, j.arrivals.All())}
	var waits []time.Duration
	for event, at := range acknowledged {
		if came, ok := a.First[event]; ok {
			waits = append(waits, came.Sub(at))
		}
	}
	slices.Sort(waits)
	a.p50, a.p99 = trial.Percentile(waits, 0.50), trial.Percentile(waits, 0.99)
	return a
}

// read reads a CloudEvent in its JSON form.
func read(body []byte) (trial.Arrival, error) {
	var event struct {
		ID   string `json:"id"`
		Data struct {
			Unit    string `json:"unit_id"`
			Version string `json:"version_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID == "" {
		return trial.Arrival{}, fmt.Errorf("no CloudEvent: %w", err)
	}
	version, _ := strconv.ParseInt(event.Data.Version, 10, 64) // the poison's is no number, and 0 here
	return trial.Arrival{Event: event.ID, Key: event.Data.Unit, Version: version, At: time.Now()}, nil
}
