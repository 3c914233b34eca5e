package main

import (
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// I5: on a route with ordering = key, and in the effects, the events of a key come first in the order of their
// versions. A dead letter is passed over: those behind it go on without it.
func (c *checker) inOrder() {
	for i := range c.Targets {
		t := &c.Targets[i]
		switch {
		case t.Inside:
			c.effectsInOrder(t)
		case t.Ordered:
			c.arrivalsInOrder(t)
		}
	}
}

// order follows the first deliveries of a route.
type order struct {
	*trial.Order

	c     *checker
	route string
	how   map[string]string // each event came
}

func (c *checker) newOrder(route string) *order {
	return &order{trial.NewOrder(), c, route, map[string]string{}}
}

// next takes in a delivery.
func (o *order) next(event, how string) {
	s := o.c.byEvent[event]
	if s == nil || o.c.dead[Letter{o.route, event}] {
		return
	}
	first, before := o.Next(event, s.Key, int64(s.Version))
	if !first {
		return
	}
	o.how[event] = how
	if before != "" {
		last := o.c.byEvent[before]
		o.c.report("I5", "%s: key %s: version %d (write %d, %s) came after version %d (write %d, %s)",
			o.route, s.Key, s.Version, s.ID, how, last.Version, last.ID, o.how[before])
	}
}

func (c *checker) arrivalsInOrder(t *target) {
	o := c.newOrder(t.Route)
	for i := range c.Arrivals {
		if a := &c.Arrivals[i]; a.Route == t.Route && a.Answer.took() && !a.Replay {
			o.next(a.Event, clock(a.At))
		}
	}
}

func (c *checker) effectsInOrder(t *target) {
	o := c.newOrder(t.Route)
	for i := range c.Effects {
		o.next(c.Effects[i].Event, clock(c.Effects[i].At))
	}
}

const (
	// obeyed is how soon a closed gate is obeyed.
	obeyed = time.Second
	// awoken is how long after it goes on a stopped process may take to notice what happened meanwhile.
	awoken = time.Second
)

// I6: nothing arrives more than a second after the commit that closed its gate, until it is opened again.
func (c *checker) closedIsSilent() {
	for _, x := range c.Closings {
		shut := func(route string, at time.Time) bool {
			return at.After(x.From.Add(obeyed)) && at.Before(x.To) && (len(x.Routes) == 0 || slices.Contains(x.Routes, route))
		}
		for i := range c.Arrivals {
			a := &c.Arrivals[i]
			if !shut(a.Route, a.At) {
				continue
			}
			if c.wasStopped(x, a.At) {
				c.excused++
				continue
			}
			c.report("I6", "%s: write %d (epoch %d, attempt %d) came %s after %s was closed",
				a.Route, a.ID, a.Epoch, a.Attempt, a.At.Sub(x.From).Round(time.Millisecond), x.What)
		}
		for i := range c.Effects {
			if e := &c.Effects[i]; shut(inside, e.At) {
				c.report("I6", "effect: write %d happened %s after %s was closed", e.ID, e.At.Sub(x.From).Round(time.Millisecond), x.What)
			}
		}
	}
}

// wasStopped: a daemon that was stopped before the gate had been closed for a second went on just before the
// arrival. What it had decided to send, it sent: no program can look once more between the look and the send.
func (c *checker) wasStopped(x closing, at time.Time) bool {
	return slices.ContainsFunc(c.Stops, func(s stop) bool {
		return s.From.Before(x.From.Add(obeyed)) && s.To.After(x.From) && !s.To.After(at) && at.Sub(s.To) < awoken
	})
}

// I9: what is marked as a replay was selected by an operator, and what was selected came so marked.
func (c *checker) replaysMarked() {
	selected := map[Letter]bool{}
	for _, r := range c.Replays {
		selected[Letter{r.Route, r.Event}] = true
	}
	came := map[Letter]bool{}
	for i := range c.Arrivals {
		a := &c.Arrivals[i]
		if !a.Replay {
			continue
		}
		l := Letter{a.Route, a.Event}
		if !selected[l] && !came[l] {
			c.report("I9", "%s: write %d came as a replay that was never asked for", a.Route, a.ID)
		}
		came[l] = true
	}
	for _, r := range c.Replays {
		l := Letter{r.Route, r.Event}
		if r.Known && !r.Inside && !came[l] {
			c.report("I9", "%s: event %s was to be replayed, and never came marked as that", r.Route, r.Event)
			came[l] = true
		}
	}
}

// I10: a dead target holds up no other route, and a replay no live event.
func (c *checker) deadHoldsNobody() {
	for _, calm := range c.Calms {
		c.calmIsFast(calm)
	}
}

func (c *checker) calmIsFast(calm calm) {
	ages := c.calmAges(calm)
	for i := range c.Targets {
		t := &c.Targets[i]
		if t.Dead {
			continue
		}
		late := 0
		for _, id := range calm.IDs {
			if age, came := ages[t.Route][id]; !came || age > calm.Limit {
				late++
			}
		}
		if late > 0 {
			c.report("I10", "%s: %d of %d events took longer than %s with nothing wrong but %s",
				t.Route, late, len(calm.IDs), calm.Limit, calm.Beside)
		}
	}
}

// calmAges is how long each event of the calm took, by route.
func (e *evidence) calmAges(of calm) map[string]map[int64]time.Duration {
	ages := map[string]map[int64]time.Duration{}
	calm := map[int64]bool{}
	for _, id := range of.IDs {
		calm[id] = true
	}
	note := func(route string, id int64, at time.Time) {
		if !calm[id] {
			return
		}
		if ages[route] == nil {
			ages[route] = map[int64]time.Duration{}
		}
		if _, again := ages[route][id]; !again {
			ages[route][id] = at.Sub(of.Sent)
		}
	}
	for i := range e.Arrivals {
		if a := &e.Arrivals[i]; a.Answer.took() && !a.Replay {
			note(a.Route, a.ID, a.At)
		}
	}
	for i := range e.Effects {
		note(inside, e.Effects[i].ID, e.Effects[i].At)
	}
	return ages
}
