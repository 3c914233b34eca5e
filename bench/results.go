package main

import "fmt"

// results answers questions about the contestants of one workload.
type results []result

func (rs results) find(name string) (result, bool) {
	for _, r := range rs {
		if r.name == name && len(r.samples) > 0 {
			return r, true
		}
	}
	return result{}, false
}

// of returns the median over the rounds of a figure of one contestant.
func (rs results) of(name string, figure func(sample) float64) (float64, bool) {
	r, ok := rs.find(name)
	if !ok {
		return 0, false
	}
	var v []float64
	for _, s := range r.samples {
		v = append(v, figure(s))
	}
	return median(v), true
}

// between returns the median over the rounds of a figure that two contestants give together: both
// ran in the same minute, so what slowed one slowed the other.
func (rs results) between(name, base string, figure func(s, base sample) float64) (float64, bool) {
	a, okA := rs.find(name)
	b, okB := rs.find(base)
	if !okA || !okB {
		return 0, false
	}
	var v []float64
	for i := range min(len(a.samples), len(b.samples)) {
		v = append(v, figure(a.samples[i], b.samples[i]))
	}
	return median(v), true
}

func (rs results) ratio(name, base string) (float64, bool) {
	return rs.between(name, base, func(s, base sample) float64 { return s.rate() / base.rate() })
}

// A figure is one number of the report beside the table.
type figure struct {
	what  string
	value float64
	known bool // false where a contestant of it was left out
}

// quotient compares the speed of two contestants.
func (rs results) quotient(name, base string) figure {
	v, ok := rs.ratio(name, base)
	return figure{name + " ÷ " + base, v, ok}
}

// work compares the CPU that two contestants need for an item. On a machine with other work it says more than the clock.
func (rs results) work(name, base string) figure {
	v, ok := rs.between(name, base, func(s, base sample) float64 { return s.cpuPerItem() / base.cpuPerItem() })
	return figure{"CPU per item, " + name + " ÷ " + base, v, ok}
}

// A goal is a figure and what the design asks of it, which may be nothing.
type goal struct {
	figure
	asks    string
	reached bool
}

func atLeast(want float64, f figure) goal {
	return goal{f, fmt.Sprintf("≥ %g", want), f.value >= want}
}

func atMost(want float64, f figure) goal {
	return goal{f, fmt.Sprintf("≤ %g", want), f.value <= want}
}

func within(least, most float64, f figure) goal {
	return goal{f, fmt.Sprintf("%g to %g", least, most), f.value >= least && f.value <= most}
}

func note(f figure) goal { return goal{figure: f} }

func (g goal) String() string {
	verdict := "not reached"
	switch {
	case !g.known && g.asks == "":
		return fmt.Sprintf("not measured: %s", g.what)
	case !g.known:
		return fmt.Sprintf("not measured: %s (asked: %s)", g.what, g.asks)
	case g.asks == "":
		return fmt.Sprintf("for information: %s = %.2f", g.what, g.value)
	case g.reached:
		verdict = "reached"
	}
	return fmt.Sprintf("%s: %s = %.2f (asked: %s)", verdict, g.what, g.value, g.asks)
}

// figure is one of the figures that a contestant gives.
func (rs results) figure(what, name string) figure {
	v, ok := rs.of(name, figureOf(what))
	return figure{what + ", " + name, v, ok}
}
