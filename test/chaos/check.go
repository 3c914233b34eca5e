package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A target is what the checker knows of a route.
type target struct {
	Route   string
	Inside  bool   // its effects are rows of the application
	Ordered bool   // ordering = key
	Kind    string // of event; empty: all
	Dead    bool   // nothing listens there
}

func (t *target) wants(s *Stored) bool { return t.Kind == "" || t.Kind == s.Kind }

// evidence is all that the checker looks at: what receivers, producers and operators wrote down, and the
// application's tables.
type evidence struct {
	Targets  []target
	Arrivals []arrival // in the order in which they were written down
	Effects  []Effect
	Stored   []Stored
	Txns     []*txn
	Letters  []Letter

	Rows       []Row // of the tables that a worker reads
	Notes      []Note
	RowLetters []RowLetter

	commandEvidence

	Closings []closing
	Stops    []stop
	Samples  []Sample
	Replays  []replay
	Changes  []change
	Rewinds  []rewind
	Probes   []probe
	Calms    []calm
	Findings []Finding // that are open in the end
	Forged   int       // requests with a bad signature
	Unquiet  string    // what did not come to rest in the end
	Unsound  []string  // what tidemark.verify finds wrong in the end
	Broken   []string
}

// calm is the end of a run, when little is disturbed.
type calm struct {
	IDs    []int64 // events, all of which are committed
	Sent   time.Time
	Limit  time.Duration
	Beside string // what is disturbed
}

// A violation is one thing that must not be.
type violation struct {
	Rule string
	Text string
}

type checker struct {
	*evidence
	byEvent map[string]*Stored
	byID    map[int64]*Stored
	dead    map[Letter]bool
	found   []violation

	// Arrivals that broke the rule of the closed gate, but were sent by a process that had been stopped with
	// the permission in its hand.
	excused int
}

// check returns every violation, and how many late arrivals were excused.
func check(e *evidence) (found []violation, excused int) {
	c := &checker{evidence: e, byEvent: map[string]*Stored{}, byID: map[int64]*Stored{}, dead: map[Letter]bool{}}
	for i := range e.Stored {
		s := &e.Stored[i]
		c.byEvent[s.Event], c.byID[s.ID] = s, s
	}
	for _, l := range e.Letters {
		c.dead[l] = true
	}
	for _, rule := range []func(){
		c.acknowledgedIsStored, c.deliveredIsStored, c.storedIsDelivered, c.effectsOnce, c.inOrder,
		c.closedIsSilent, c.rowsOnce, c.tablesAreSilent, c.neverBack, c.replaysMarked, c.deadHoldsNobody, c.told, c.commandsServed, c.rest,
	} {
		rule()
	}
	return c.found, c.excused
}

func (c *checker) report(rule, format string, args ...any) {
	c.found = append(c.found, violation{rule, fmt.Sprintf(format, args...)})
}

// I1: what was acknowledged is stored. I8: what was rolled back is not.
func (c *checker) acknowledgedIsStored() {
	for _, t := range c.Txns {
		for _, w := range t.Writes {
			stored := c.byID[w.ID] != nil
			switch {
			case t.Fate == committed && !t.Async && !w.Undone && !stored:
				c.report("I1", "write %d was acknowledged at %s and is not stored", w.ID, clock(t.Ended))
			case (t.Fate == rolledBack || w.Undone) && stored:
				c.report("I8", "write %d was rolled back and is stored", w.ID)
			}
		}
	}
}

// I2: what was delivered is stored in the end. I8: and was not rolled back.
func (c *checker) deliveredIsStored() {
	undone := c.undone()
	said := map[string]bool{}
	one := func(where, event string, id int64, key string, version int) {
		s := c.byEvent[event]
		if s != nil && s.ID == id && s.Key == key && s.Version == version || said[where+event] {
			return
		}
		said[where+event] = true
		switch {
		case s != nil:
			c.report("I2", "%s: event %s says write %d, key %s, version %d; stored is write %d, key %s, version %d",
				where, event, id, key, version, s.ID, s.Key, s.Version)
		case undone[id]:
			c.report("I8", "%s: event %s (write %d) was delivered and was rolled back", where, event, id)
		default:
			c.report("I2", "%s: event %s (write %d) was delivered and is not stored", where, event, id)
		}
	}
	for i := range c.Arrivals {
		a := &c.Arrivals[i]
		one(a.Route, a.Event, a.ID, a.Key, a.Version)
	}
	for i := range c.Effects {
		x := &c.Effects[i]
		one("effect", x.Event, x.ID, x.Key, x.Version)
	}
}

// I3: every stored event that a route wants has come to its target, or is a dead letter because it is poison
// there.
func (c *checker) storedIsDelivered() {
	effect := map[string]time.Time{}
	for i := range c.Effects {
		effect[c.Effects[i].Event] = c.Effects[i].At
	}
	began := map[int64]time.Time{}
	for _, t := range c.Txns {
		for _, w := range t.Writes {
			began[w.ID] = t.Began
		}
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		if t.Dead {
			continue
		}
		came := c.came(t)
		for j := range c.Stored {
			s := &c.Stored[j]
			dead := c.dead[Letter{t.Route, s.Event}]
			switch {
			case dead && s.Poison == "":
				c.report("I3", "%s: write %d is a dead letter, and nothing is wrong with it", t.Route, s.ID)
			case c.Unquiet != "": // it may be on its way
			case !t.wants(s) || came[s.Event] || dead || c.mayBeOff(t, began[s.ID], effect[s.Event]):
			default:
				c.report("I3", "%s: write %d (event %s, key %s, version %d) never came", t.Route, s.ID, s.Event, s.Key, s.Version)
			}
		}
	}
}

// came are the events that the target took.
func (c *checker) came(t *target) map[string]bool {
	came := map[string]bool{}
	if t.Inside {
		for i := range c.Effects {
			came[c.Effects[i].Event] = true
		}
		return came
	}
	for i := range c.Arrivals {
		if a := &c.Arrivals[i]; a.Route == t.Route && a.Answer.took() {
			came[a.Event] = true
		}
	}
	return came
}

// mayBeOff: the route may have been off when the event was decided for it, which is not before the event was
// written and, since one batch is decided for all routes at once, not after its effect.
func (c *checker) mayBeOff(t *target, written, effect time.Time) bool {
	return slices.ContainsFunc(c.Closings, func(x closing) bool {
		return slices.Contains(x.Routes, t.Route) && !x.Keeps && (effect.IsZero() || effect.After(x.Sent)) && written.Before(x.Over)
	})
}

// I4: the effects in the database happen once.
func (c *checker) effectsOnce() {
	times := map[string]int{}
	for i := range c.Effects {
		x := &c.Effects[i]
		times[x.Event]++
		if times[x.Event] == 2 {
			c.report("I4", "event %s (write %d) has more than one effect", x.Event, x.ID)
		}
	}
}

// I7: watermark and epoch of a shard never go back, but for the watermark where an operator moves it or changes the
// number of shards.
func (c *checker) neverBack() {
	last := map[int]Sample{}
	for _, now := range c.Samples {
		before, seen := last[now.Shard]
		last[now.Shard] = now
		if seen && now.Watermark < before.Watermark && !c.rewound(before.At, now.At) {
			c.report("I7", "shard %d: the watermark went from %d to %d at %s", now.Shard, before.Watermark, now.Watermark, clock(now.At))
		}
		if now.Epoch < before.Epoch {
			c.report("I7", "shard %d: the epoch went from %d to %d at %s", now.Shard, before.Epoch, now.Epoch, clock(now.At))
		}
	}
}

// rewound: an operator may have moved the cursor in this time.
func (c *checker) rewound(from, to time.Time) bool {
	return slices.ContainsFunc(c.Rewinds, func(r rewind) bool { return !r.Sent.After(to) && !r.Over.Before(from) })
}

// rest: what belongs to no invariant and must not be either.
func (c *checker) rest() {
	if c.Forged > 0 {
		c.report("signature", "%d requests had no valid signature", c.Forged)
	}
	if c.Unquiet != "" {
		c.report("quiet", "the system did not come to rest, so that I3 cannot be judged: %s", c.Unquiet)
	}
	for _, u := range c.Unsound {
		c.report("verify", "%s", u)
	}
	for _, b := range c.Broken {
		c.report("process", "%s", b)
	}
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// byRule sorts violations by invariant; those of one stay in their order.
func byRule(found []violation) []violation {
	slices.SortStableFunc(found, func(a, b violation) int { return cmp.Compare(a.Rule, b.Rule) })
	return found
}
