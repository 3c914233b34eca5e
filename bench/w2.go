package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	wakeName    = "tidemark, wake-up"
	pollName    = "tidemark, poll"
	goWakeName  = "tidemark in Go, wake-up"
	goPollName  = "tidemark in Go, poll"
	gatedName   = "NOTIFY and a gated read"
	openSuffix  = ", transactions open"
	p50Figure   = "p50 ms"
	p95Figure   = "p95 ms"
	p99Figure   = "p99 ms"
	maxFigure   = "max ms"
	dueFigure   = "p99 ms since due"
	emitters    = 4
	keysByEmit  = 8
	openAfter   = time.Second
	latencyTail = 2 * time.Second // that a run is longer than transactions are held open
)

var rates = []int{500, 2000}

func at(name string, rate int) string { return fmt.Sprintf("%s, %d/s", name, rate) }

var w2 = workload{
	number:  "2",
	title:   "latency from a commit to the handler, four emitters",
	unit:    "event",
	columns: []string{p50Figure, p95Figure, p99Figure, maxFigure, dueFigure, lostFigure, twiceFigure, disorderFigure},
	contestants: func(e *env) (all []contestant) {
		systems := []struct {
			name string
			make func() stream
		}{
			{wakeName, func() stream { return &daemonStream{env: e, wake: true} }},
			{goWakeName, func() stream { return &clientStream{env: e, wake: true} }},
			{pollName, func() stream { return &daemonStream{env: e} }},
			{goPollName, func() stream { return &clientStream{env: e} }},
			{gatedName, func() stream { return &gatedStream{env: e, notify: true} }},
			{"poll every 100 ms", func() stream { return &gatedStream{env: e} }},
			{"Watermill SQL, poll every 10 ms", func() stream { return &watermillStream{env: e} }},
			{riverName, func() stream { return &riverStream{env: e} }},
		}
		steady := rates
		if e.check {
			steady = rates[:1]
		}
		for _, rate := range steady {
			for _, s := range systems {
				all = append(all, &latency{env: e, name: at(s.name, rate), rate: rate, stream: s.make(), strict: strings.HasPrefix(s.name, "tidemark")})
			}
			// The emitters stay beside the server: only the reader is in another zone.
			all = append(all,
				&latency{env: e, name: at(wakeName+awaySuffix, rate), rate: rate, stream: &daemonStream{env: e.far, wake: true}, strict: true},
				&latency{env: e, name: at(goWakeName+awaySuffix, rate), rate: rate, stream: &clientStream{env: e.far, wake: true}, strict: true},
				&latency{env: e, name: at(gatedName+awaySuffix, rate), rate: rate, stream: &gatedStream{env: e.far, notify: true}})
			for _, s := range systems {
				if s.name != "poll every 100 ms" {
					all = append(all, &latency{
						env: e, name: at(s.name+openSuffix, rate), rate: rate, stream: s.make(), open: true,
						strict: strings.HasPrefix(s.name, "tidemark"),
					})
				}
			}
		}
		return all
	},
	reach: func(rs results) (goals []goal) {
		for _, name := range []string{wakeName, goWakeName, wakeName + openSuffix, goWakeName + openSuffix} {
			for _, rate := range rates {
				p50, ok := rs.of(at(name, rate), figureOf(p50Figure))
				p99, _ := rs.of(at(name, rate), figureOf(p99Figure))
				goals = append(goals, atMost(0.5, figure{"p50 ms, " + at(name, rate), p50, ok}), atMost(2, figure{"p99 ms, " + at(name, rate), p99, ok}))
			}
		}
		// On a machine with other work the figures are its; what they are to a peer's is less so.
		for _, suffix := range []string{"", awaySuffix} {
			for _, name := range []string{wakeName, goWakeName} {
				for _, rate := range rates {
					v, ok := rs.between(at(name+suffix, rate), at(gatedName+suffix, rate), func(s, base sample) float64 {
						return s.figures[p50Figure] / base.figures[p50Figure]
					})
					goals = append(goals, note(figure{"p50 of " + at(name+suffix, rate) + " ÷ that of " + gatedName, v, ok}))
				}
			}
		}
		return goals
	},
}
