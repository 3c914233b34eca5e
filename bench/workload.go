package main

import (
	"context"
	"fmt"
)

// A contestant is one row of a workload's table.
type contestant interface {
	Name() string
	// Setup brings everything to the state that each round starts from. It is not timed.
	// A skipped error leaves the contestant out.
	Setup(ctx context.Context) error
	// Run is timed and returns how many items it worked off.
	Run(ctx context.Context) (items int, err error)
	// Check looks at what Run left behind: counts, uniqueness, order.
	Check(ctx context.Context) error
	// Clean removes what Run left behind, so that autovacuum does not work on it while
	// another contestant is timed.
	Clean(ctx context.Context) error
}

// skipped is the reason why a contestant cannot run here.
type skipped string

func (s skipped) Error() string { return "skipped: " + string(s) }

type workload struct {
	number      string
	title       string
	unit        string   // what an item is
	baselines   []string // contestants that the others are compared with, round by round
	columns     []string // figures of the contestants that the table shows
	contestants func(*env) []contestant
	reach       func(results) []goal
}

// workloads are all but that of the real Kafka, which fetches what it needs.
var workloads = []workload{w1, w2, w3, w4, w5, w6, w7}

func choose(number string) ([]workload, error) {
	if number == "all" {
		return workloads, nil
	}
	if number == wKafka.number {
		return []workload{wKafka}, nil
	}
	for _, w := range workloads {
		if w.number == number {
			return []workload{w}, nil
		}
	}
	return nil, fmt.Errorf("no workload %q: want 1 to 7, all or kafka", number)
}
