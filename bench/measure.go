package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A sample is one timed run of one contestant.
type sample struct {
	items   int
	elapsed time.Duration
	cpu     time.Duration
	wal     int64
	figures map[string]float64 // what else the contestant has measured
}

func (s sample) rate() float64       { return float64(s.items) / s.elapsed.Seconds() }
func (s sample) cpuPerItem() float64 { return s.cpu.Seconds() * 1e6 / float64(s.items) }
func (s sample) walPerItem() float64 { return float64(s.wal) / float64(s.items) }

func figureOf(name string) func(sample) float64 {
	return func(s sample) float64 { return s.figures[name] }
}

// A result holds one sample per round, unless err says why there are none.
type result struct {
	name    string
	samples []sample
	err     error
}

func (r result) skipped() bool {
	var s skipped
	return errors.As(r.err, &s)
}

// figurer is a contestant that measures more than its speed.
type figurer interface{ Figures() map[string]float64 }

// measureAll runs every contestant once in each round, so that a slow minute of the machine hits
// all of them. One that fails is left out of the later rounds, and its figures are dropped.
func measureAll(ctx context.Context, e *env, contestants []contestant, rounds int) ([]result, error) {
	rs := make([]result, len(contestants))
	for i, c := range contestants {
		rs[i].name = c.Name()
	}
	for round := range rounds {
		for i, c := range contestants {
			if rs[i].err != nil {
				continue
			}
			s, err := measure(ctx, e, c)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				rs[i].err, rs[i].samples = err, nil
				if !e.check {
					fmt.Fprintf(os.Stderr, "round %d  %-40s %v\n", round+1, c.Name(), err)
				}
				continue
			}
			rs[i].samples = append(rs[i].samples, s)
			if !e.check {
				fmt.Fprintf(os.Stderr, "round %d  %-40s %10.0f/s%s\n", round+1, c.Name(), s.rate(), s.text())
			}
		}
	}
	return rs, nil
}

func measure(ctx context.Context, e *env, c contestant) (s sample, err error) {
	defer func() {
		if cleanErr := c.Clean(ctx); err == nil && cleanErr != nil {
			err = fmt.Errorf("clean: %w", cleanErr)
		}
	}()
	if err := c.Setup(ctx); err != nil {
		return s, err
	}
	if o, ok := c.(interface{ measured() *env }); ok { // on a server of its own
		e = o.measured()
	}
	if err := e.exec(ctx, "checkpoint"); err != nil {
		return s, err
	}
	runtime.GC()

	stop, err := e.profileRun(ctx, c.Name())
	if err != nil {
		return s, err
	}
	before, err := e.meter.begin(ctx)
	if err != nil {
		return s, errors.Join(err, stop())
	}
	items, err := c.Run(ctx)
	if err != nil {
		return s, errors.Join(fmt.Errorf("run: %w", err), stop())
	}
	after, err := e.meter.end(ctx)
	if err != nil {
		return s, err
	}
	if err := stop(); err != nil {
		return s, err
	}
	if err := c.Check(ctx); err != nil {
		return s, fmt.Errorf("wrong result: %w", err)
	}
	s = sample{
		items:   items,
		elapsed: after.at.Sub(before.at),
		cpu:     after.cpu - before.cpu,
		wal:     after.wal - before.wal,
	}
	if f, ok := c.(figurer); ok {
		s.figures = f.Figures()
	}
	return s, nil
}

// text lists the figures for the log.
func (s sample) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.figures)) {
		fmt.Fprintf(&b, "  %s %.2f", name, s.figures[name])
	}
	return b.String()
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Clone(values)
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}
