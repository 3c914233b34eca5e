package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/sql"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// sound is the evidence of a run in which everything was right: three events of a key, the second of them poison
// for the receivers, which are sent again later; one that was rolled back, one that a crash took back.
func sound() *evidence {
	e := &evidence{Targets: targets}
	for i := range 3 {
		id := int64(i + 1)
		s := Stored{ID: id, Event: "event-" + strconv.Itoa(i+1), Key: "k", Version: i + 1, Kind: "tick"}
		if i == 1 {
			s.Poison = "web"
		}
		e.Stored = append(e.Stored, s)
		e.Txns = append(e.Txns, &txn{Began: at(float64(i)), Ended: at(float64(i) + 0.1), Fate: committed, Writes: []write{{ID: id}}})
		e.Effects = append(e.Effects, Effect{N: id, At: at(float64(i) + 0.5), ID: id, Event: s.Event, Key: "k", Version: s.Version})
		for _, route := range []string{healthy, flaky, plain} {
			a := arrivalOf(s, route, float64(i)+0.5)
			if s.Poison != "" && route != plain {
				a.Answer = poison
				e.Letters = append(e.Letters, Letter{route, s.Event})
			}
			e.Arrivals = append(e.Arrivals, a)
		}
	}
	e.Txns = append(e.Txns,
		&txn{Fate: rolledBack, Writes: []write{{ID: 4}}},
		&txn{Fate: committed, Async: true, Writes: []write{{ID: 5}}},
		&txn{Fate: unknown, Writes: []write{{ID: 6}}})
	e.Replays = []replay{{Route: flaky, Event: "event-2"}, {Route: flaky, Event: "event-2", Known: true}}
	again := arrivalOf(e.Stored[1], flaky, 5)
	again.Replay = true
	e.Arrivals = append(e.Arrivals, again)
	e.Samples = []Sample{{at(0), 0, 1, 1}, {at(0), 1, 7, 4}, {at(1), 0, 2, 1}, {at(1), 1, 7, 4}, {at(2), 0, 3, 2}}
	e.Closings = []closing{{What: masterGate, Sent: at(5.5), From: at(6), To: at(9), Over: at(9.1)}}
	e.Rows = []Row{
		{"ledger", "1", 1, false, false}, {"receipt", "1", 1, false, false}, {"ledger", "2", 2, true, false}, // and deleted were
		{"ledger", "1", 7, false, true}, {"ledger", "2", 8, true, true},
	}
	e.Changes = []change{{"ledger", "truncate", at(0.1), at(0.4), true, true}}
	e.Rewinds = []rewind{{at(20), at(21)}}
	e.Probes = []probe{{"chaos/probe", true, true}}
	e.Notes = []Note{{at(0.5), "ledger", "1", 1}, {at(0.7), "receipt", "1", 1}}
	e.RowLetters = []RowLetter{{"ledger", 2}}
	return e
}

func arrivalOf(s Stored, route string, seconds float64) arrival {
	return arrival{At: at(seconds), Route: route, Event: s.Event, ID: s.ID, Key: s.Key, Version: s.Version, Epoch: 1, Attempt: 1}
}

func TestSound(t *testing.T) {
	t.Parallel()
	found, excused := check(sound())
	if len(found) > 0 || excused > 0 {
		t.Errorf("%v, %d excused", found, excused)
	}
}

// Each way to spoil the evidence breaks the invariants that are named, once each, and no other.
func TestEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(e *evidence)
		rules []string
	}{
		"acknowledged and gone": {func(e *evidence) {
			e.Txns = append(e.Txns, &txn{Fate: committed, Writes: []write{{ID: 9}}})
		}, []string{"I1"}},
		"released savepoint and gone": {func(e *evidence) {
			e.Txns = append(e.Txns, &txn{Fate: committed, Writes: []write{{ID: 9, Undone: true}, {ID: 10}}})
		}, []string{"I1"}},
		"delivered, and taken back by a crash": {func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(Stored{ID: 5, Event: "event-5", Key: "k", Version: 4}, plain, 4))
		}, []string{"I2"}},
		"delivered under the name of another": {func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(Stored{ID: 5, Event: "event-3", Key: "k", Version: 3}, plain, 4))
		}, []string{"I2"}},
		"delivered and rolled back": {func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(Stored{ID: 4, Event: "event-4", Key: "k", Version: 4}, plain, 4))
		}, []string{"I8"}},
		"effect of what was rolled back": {func(e *evidence) {
			e.Effects = append(e.Effects, Effect{N: 9, At: at(4), ID: 4, Event: "event-4", Key: "k", Version: 4})
		}, []string{"I8"}},
		"rolled back and stored": {func(e *evidence) {
			e.Txns = append(e.Txns, &txn{Fate: rolledBack, Writes: []write{{ID: 3}}})
		}, []string{"I8"}},
		"never came": {func(e *evidence) {
			drop(e, plain, "event-3")
		}, []string{"I3"}},
		"came and was refused": {func(e *evidence) {
			e.Arrivals[len(e.Arrivals)-2].Answer = refused
		}, []string{"I3"}},
		"dead letter without a reason": {func(e *evidence) {
			e.Letters = append(e.Letters, Letter{plain, "event-3"})
		}, []string{"I3"}},
		"no effect":   {func(e *evidence) { e.Effects = e.Effects[:2] }, []string{"I3"}},
		"not at rest": {func(e *evidence) { e.Unquiet = "1 holes" }, []string{"quiet"}},
		"effect twice": {func(e *evidence) {
			x := e.Effects[2]
			x.N++
			e.Effects = append(e.Effects, x)
		}, []string{"I4"}},
		"arrivals out of order": {func(e *evidence) {
			drop(e, healthy, "event-1")
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[0], healthy, 4))
		}, []string{"I5"}},
		"effects out of order": {func(e *evidence) {
			e.Effects[0], e.Effects[2] = e.Effects[2], e.Effects[0]
		}, []string{"I5", "I5"}},
		"through a closed gate": {func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[2], plain, 7.5))
		}, []string{"I6"}},
		"effect through a closed gate": {func(e *evidence) { e.Effects[2].At = at(8) }, []string{"I6"}},
		"lost in a pause": {func(e *evidence) {
			drop(e, plain, "event-3")
			e.Closings = append(e.Closings, closing{What: plain, Routes: []string{plain}, Keeps: true, Sent: at(2.2), From: at(2.3), To: at(4), Over: at(4)})
		}, []string{"I3"}},
		"watermark back":               {func(e *evidence) { e.Samples[4].Watermark = 1 }, []string{"I7"}},
		"epoch back":                   {func(e *evidence) { e.Samples[2].Epoch = 9 }, []string{"I7"}},
		"watermark of a shard back":    {func(e *evidence) { e.Samples[3].Watermark = 6 }, []string{"I7"}},
		"replay that nobody asked for": {func(e *evidence) { e.Replays = nil }, []string{"I9"}},
		"replay without the mark": {func(e *evidence) {
			e.Arrivals[len(e.Arrivals)-1].Replay = false
		}, []string{"I9"}},
		"held up by the dead target": {func(e *evidence) {
			e.Calms = []calm{{IDs: []int64{3}, Sent: at(2), Limit: 200 * time.Millisecond}}
		}, []string{"I10", "I10", "I10", "I10"}},
		"a row that was never handled": {func(e *evidence) { e.Notes = e.Notes[:1] }, []string{"I3"}},
		"a row that is a dead letter without a reason": {func(e *evidence) {
			e.RowLetters = append(e.RowLetters, RowLetter{"receipt", 1})
		}, []string{"I3"}},
		"poison of which something has remained": {func(e *evidence) {
			e.Notes = append(e.Notes, Note{at(1), "ledger", "2", 2})
		}, []string{"I4"}},
		"poison that is forgotten": {func(e *evidence) { e.RowLetters = nil }, []string{"I3"}},
		"a row handled three times": {func(e *evidence) {
			e.Notes = append(e.Notes, e.Notes[0], e.Notes[0])
		}, []string{"I4"}},
		"a row that was rolled back": {func(e *evidence) {
			e.Notes = append(e.Notes, Note{at(1), "ledger", "4", 4})
		}, []string{"I8"}},
		"a row that a crash took back": {func(e *evidence) {
			e.Notes = append(e.Notes, Note{at(1), "ledger", "5", 5})
		}, []string{"I2"}},
		"a row that says another":                      {func(e *evidence) { e.Notes[0].Write = 3 }, []string{"I2", "I3"}},
		"a row through a closed gate":                  {func(e *evidence) { e.Notes[0].At = at(6.1) }, []string{"I6"}},
		"a row handled before the change was accepted": {func(e *evidence) { e.Notes[0].At = at(0.2) }, []string{"I11"}},
		"a change that was not told":                   {func(e *evidence) { e.Changes[0].Told = false }, []string{"I11"}},
		"silence that was not told":                    {func(e *evidence) { e.Probes[0].Opened = false }, []string{"I11"}},
		"a finding that does not close":                {func(e *evidence) { e.Probes[0].Closed = false }, []string{"I11"}},
		"a finding about nothing": {func(e *evidence) {
			e.Findings = []Finding{{"cursor_lag", "tables/receipt/0", "480 h behind"}}
		}, []string{"I11"}},
		"a deleted row handled twice": {func(e *evidence) {
			e.Notes = append(e.Notes, Note{at(1), "ledger", "1", 7}, Note{at(1), "ledger", "1", 7})
		}, []string{"I4"}},
		"bad signature":        {func(e *evidence) { e.Forged = 1 }, []string{"signature"}},
		"evidence twice":       {func(e *evidence) { e.Unsound = []string{"W7"} }, []string{"verify"}},
		"a daemon that panics": {func(e *evidence) { e.Broken = []string{"panic"} }, []string{"process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sound()
			c.spoil(e)
			found, _ := check(e)
			var rules []string
			for _, v := range found {
				rules = append(rules, v.Rule)
			}
			if !slices.Equal(rules, c.rules) {
				t.Errorf("found %v, want %v", found, c.rules)
			}
		})
	}
}

// What is allowed is not reported.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, allow := range map[string]func(e *evidence){
		"duplicates": func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[0], flaky, 4), arrivalOf(e.Stored[0], plain, 4))
		},
		"an answer that was lost": func(e *evidence) { e.Arrivals[0].Answer = unheard },
		"no order on a route without": func(e *evidence) {
			drop(e, plain, "event-1")
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[0], plain, 4))
		},
		"an arrival within a second of the closing": func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[2], plain, 6.9))
		},
		"an arrival after the opening was sent": func(e *evidence) {
			e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[2], plain, 9.05))
		},
		"a route that was off": func(e *evidence) {
			drop(e, plain, "event-3")
			e.Closings = append(e.Closings, closing{What: plain, Routes: []string{plain}, Sent: at(2.2), From: at(2.3), To: at(4), Over: at(4)})
		},
		"what was in doubt and is stored": func(e *evidence) {
			e.Txns[2].Fate = unknown
		},
		"a row that was handled and deleted": func(e *evidence) {
			e.Notes = append(e.Notes, Note{at(1), "ledger", "1", 7})
		},
		"a rewind of the log": func(e *evidence) {
			e.Samples = append(e.Samples, Sample{at(20.5), 0, 1, 2})
		},
		"a backlog of the dead target": func(e *evidence) {
			e.Stored[2].Kind = "alarm"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sound()
			allow(e)
			if found, _ := check(e); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// A process that was stopped with the permission in its hand is excused, for a moment.
func TestStoppedWithThePermission(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arrived float64
		excused int
	}{{8.2, 1}, {8.95, 1}, {7.9, 0}} {
		e := sound()
		e.Stops = []stop{{at(5), at(8)}}
		e.Arrivals = append(e.Arrivals, arrivalOf(e.Stored[2], plain, c.arrived))
		found, excused := check(e)
		if excused != c.excused || len(found) != 1-c.excused {
			t.Errorf("arrived at %v: %v, %d excused", c.arrived, found, excused)
		}
	}
}

// The effect of an event bounds when its routes were looked at.
func TestOffAtAnotherTime(t *testing.T) {
	t.Parallel()
	e := sound()
	drop(e, plain, "event-3")
	e.Closings = append(e.Closings,
		closing{What: plain, Routes: []string{plain}, Sent: at(0), From: at(0), To: at(1), Over: at(1.9)},
		closing{What: plain, Routes: []string{plain}, Sent: at(2.6), From: at(2.7), To: at(4), Over: at(4)})
	if found, _ := check(e); len(found) != 1 || found[0].Rule != "I3" {
		t.Error(found)
	}
}

func drop(e *evidence, route, event string) {
	e.Arrivals = slices.DeleteFunc(e.Arrivals, func(a arrival) bool { return a.Route == route && a.Event == event })
}

// What a mutant replaces is there: a rule that is written anew needs its mutant anew.
func TestMutantsFitTheCode(t *testing.T) {
	t.Parallel()
	files, err := sql.Code(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, file := range files {
		code[file.Name()] = file.Text
	}
	for name, m := range mutants {
		for _, e := range m.sql {
			if !strings.Contains(code[e.function], e.old) {
				t.Errorf("mutant %s: %s does not hold %q", name, e.function, e.old)
			}
		}
	}
}

// Faults and mutants agree on their names, and each has one.
func TestNames(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, f := range faults {
		if known[f.name] || f.weight < 1 {
			t.Errorf("fault %s: twice, or without weight", f.name)
		}
		known[f.name] = true
	}
	for name, m := range mutants {
		if name != m.name || len(m.scenes) == 0 || len(m.sql) == 0 && m.bug == "" || m.by == "" {
			t.Errorf("mutant %s is incomplete", name)
		}
		for _, s := range m.scenes {
			if !known[s] {
				t.Errorf("mutant %s: there is no fault %s", name, s)
			}
		}
	}
	all, err := chosenMutants("all")
	if err != nil || len(all) != len(mutants) {
		t.Errorf("all: %d, %v", len(all), err)
	}
	if _, err := chosenMutants("nofence,nonsense"); err == nil || !strings.Contains(err.Error(), slices.Sorted(maps.Keys(mutants))[0]) {
		t.Errorf("an unknown mutant: %v", err)
	}
}
