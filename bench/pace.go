package main

import "time"

// pace follows a run page by page: is the end as fast as the beginning, and which page took longest?
type pace struct {
	items   int // that there are
	began   time.Time
	done    int
	first   time.Duration // when a tenth was done
	last    time.Duration // when nine tenths were
	end     time.Duration
	slowest time.Duration
}

func (p *pace) start(items int) { *p = pace{items: items, began: time.Now()} }

// page is called when it is committed.
func (p *pace) page(items int, took time.Duration) {
	p.done += items
	p.slowest = max(p.slowest, took)
	p.end = time.Since(p.began)
	if p.first == 0 && p.done*10 >= p.items {
		p.first = p.end
	}
	if p.last == 0 && p.done*10 >= 9*p.items {
		p.last = p.end
	}
}

const (
	slowestFigure = "slowest page ms"
	flatFigure    = "time of last ÷ first tenth"
)

func (p *pace) figures() map[string]float64 {
	return map[string]float64{
		slowestFigure: float64(p.slowest.Microseconds()) / 1000,
		flatFigure:    (p.end - p.last).Seconds() / p.first.Seconds(),
	}
}
