package main

import (
	"bytes"
	"fmt"
	"sync/atomic"
)

// journal is what targets saw of events 0 to n-1, whose keys go round by the number.
type journal struct {
	n, keys   int
	apart     int // an event with a key of its own; -1: none
	seen      []atomic.Int32
	latest    []atomic.Int64 // by key
	left      atomic.Int64
	twice     atomic.Int64
	disorder  atomic.Int64
	strangers atomic.Int64
	done      chan struct{}
}

func newJournal(n, keys int) *journal {
	j := &journal{n: n, keys: keys, apart: -1, seen: make([]atomic.Int32, n), latest: make([]atomic.Int64, keys), done: make(chan struct{})}
	j.left.Store(int64(n))
	for i := range j.latest {
		j.latest[i].Store(-1)
	}
	return j
}

// expect says that fewer than all numbers will come.
func (j *journal) expect(n int) { j.left.Store(int64(n)) }

// saw reports whether the event is seen for the first time.
func (j *journal) saw(n int) bool {
	if n < 0 || n >= j.n {
		j.strangers.Add(1)
		return false
	}
	if n != j.apart && j.latest[n%j.keys].Swap(int64(n)) > int64(n) {
		j.disorder.Add(1)
	}
	if j.seen[n].Add(1) > 1 {
		j.twice.Add(1)
		return false
	}
	if j.left.Add(-1) == 0 {
		close(j.done)
	}
	return true
}

func (j *journal) figures() map[string]float64 {
	return map[string]float64{lostFigure: float64(j.left.Load()), twiceFigure: float64(j.twice.Load()), disorderFigure: float64(j.disorder.Load())}
}

// once wants every event once, and those of a key in their order.
func (j *journal) once() error {
	lost, twice, disorder, strangers := j.left.Load(), j.twice.Load(), j.disorder.Load(), j.strangers.Load()
	if lost != 0 || twice != 0 || disorder != 0 || strangers != 0 {
		return fmt.Errorf("%d events lost, %d twice, %d before an earlier one of their key, %d unknown", lost, twice, disorder, strangers)
	}
	return nil
}

const (
	lostFigure     = "lost"
	twiceFigure    = "twice"
	disorderFigure = "out of order"
)

var numberField = []byte(`"n":`)

// number finds the event's number in a payload or an envelope around it. -1: there is none.
func number(text []byte) int {
	at := bytes.Index(text, numberField)
	if at < 0 {
		return -1
	}
	n, digits := 0, 0
	for _, c := range text[at+len(numberField):] {
		switch {
		case c >= '0' && c <= '9':
			n, digits = 10*n+int(c-'0'), digits+1
		case c != ' ' || digits > 0:
			if digits == 0 {
				return -1
			}
			return n
		}
	}
	return -1
}
