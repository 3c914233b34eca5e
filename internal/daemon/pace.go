package daemon

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	slowTarget  = time.Second // the middle time of its deliveries from which a target is slow
	paceSamples = 100
	paceLeast   = 4           // samples that say something
	paceFor     = time.Minute // older ones do not
	slowMost    = 20          // targets in a heartbeat, which is small
)

// paces are the times of the newest deliveries of each route.
type paces struct {
	mu    sync.Mutex
	route map[string]*pace
}

type pace struct {
	took   []time.Duration // at most paceSamples
	next   int             // of took, which is a ring
	latest time.Time
	since  time.Time // when it became slow; zero: it is not
}

func (p *paces) add(route string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.route == nil {
		p.route = map[string]*pace{}
	}
	r := p.route[route]
	if r == nil {
		r = &pace{}
		p.route[route] = r
	}
	if len(r.took) < paceSamples {
		r.took = append(r.took, took)
	} else {
		r.took[r.next] = took
		r.next = (r.next + 1) % paceSamples
	}
	r.latest = time.Now()
}

// A slowRoute is a route whose target is slow, as tidemark.cause_routes reads it from the heartbeat.
type slowRoute struct {
	Route string    `json:"route"`
	P50   float64   `json:"p50"` // seconds
	P99   float64   `json:"p99"`
	Since time.Time `json:"since"`
}

// slow returns the routes whose targets are slow, the slowest first.
func (p *paces) slow(now time.Time) (all []slowRoute) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for route, r := range p.route {
		if now.Sub(r.latest) > paceFor {
			delete(p.route, route)
			continue
		}
		sorted := slices.Sorted(slices.Values(r.took))
		middle := sorted[len(sorted)/2]
		if len(sorted) < paceLeast || middle < slowTarget {
			r.since = time.Time{}
			continue
		}
		if r.since.IsZero() {
			r.since = now
		}
		seconds := func(d time.Duration) float64 { return d.Round(time.Millisecond * 10).Seconds() }
		all = append(all, slowRoute{route, seconds(middle), seconds(sorted[(len(sorted)-1)*99/100]), r.since.UTC().Truncate(time.Second)})
	}
	slices.SortFunc(all, func(a, b slowRoute) int { return cmp.Or(cmp.Compare(b.P50, a.P50), cmp.Compare(a.Route, b.Route)) })
	return all[:min(len(all), slowMost)]
}
