package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// rules are the invariants that were violated, with how often.
func (r *result) rules() string {
	counts := map[string]int{}
	for _, v := range r.found {
		counts[v.Rule]++
	}
	var list []string
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s (%d)", rule, counts[rule]))
	}
	return strings.Join(list, " ")
}

func (r *result) print(out io.Writer) {
	e := r.evidence
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	say("%s, %s in all", r.title(), r.took.Round(time.Second))
	fates := map[fate]int{}
	for _, t := range e.Txns {
		fates[t.Fate]++
	}
	say("transactions: %d committed, %d rolled back, %d of unknown fate", fates[committed], fates[rolledBack], fates[unknown])
	lost := r.taken()
	say("events: %d committed (%d acknowledged without waiting for the disk were taken back by crashes)", len(e.Stored), lost)
	r.printFaults(say)
	r.printDeliveries(say)
	r.printCalm(say)
	r.printViolations(say)
}

// taken is how many asynchronous commits a crash took back, which is allowed.
func (r *result) taken() int {
	stored := map[int64]bool{}
	for i := range r.evidence.Stored {
		stored[r.evidence.Stored[i].ID] = true
	}
	n := 0
	for _, t := range r.evidence.Txns {
		for _, w := range t.Writes {
			if t.Async && t.Fate == committed && !w.Undone && !stored[w.ID] {
				n++
			}
		}
	}
	return n
}

func (r *result) printFaults(say func(string, ...any)) {
	total, crashes, owners := 0, 0, 0
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		n := r.counts[name]
		total += n
		list = append(list, fmt.Sprintf("%s %d", name, n))
		switch name {
		case "server-kill", "server-immediate", "backend-kill", "async-crash", "prepared-crash":
			crashes += n
		case "daemon-kill", "daemon-term", "owner-stop":
			owners += n
		}
	}
	starts := 0
	for _, d := range r.daemons {
		starts += d.starts
	}
	say("faults: %d; %d crashes of the server, %d kills, stops and pauses of daemons, which were started %d times", total, crashes, owners, starts)
	say("  %s", strings.Join(list, ", "))
}

func (r *result) printDeliveries(say func(string, ...any)) {
	e := r.evidence
	type sum struct{ all, taken, again, unheard, refused, stale, replayed int }
	type lane struct{ route, key string } // a key belongs to one shard, which has epochs of its own
	sums, seen, epochs := map[string]*sum{}, map[Letter]bool{}, map[lane]int64{}
	for i := range e.Arrivals {
		a := &e.Arrivals[i]
		s := sums[a.Route]
		if s == nil {
			s = &sum{}
			sums[a.Route] = s
		}
		s.all++
		l := lane{a.Route, a.Key}
		if a.Epoch < epochs[l] {
			s.stale++
		}
		epochs[l] = max(epochs[l], a.Epoch)
		if !a.Answer.took() {
			s.refused++
			continue
		}
		if a.Answer == unheard {
			s.unheard++
		}
		if l := (Letter{a.Route, a.Event}); seen[l] && a.Replay {
			s.replayed++
		} else if seen[l] {
			s.again++
		} else {
			seen[l] = true
			s.taken++
		}
	}
	total := len(e.Effects)
	for _, route := range slices.Sorted(maps.Keys(sums)) {
		s := sums[route]
		total += s.taken + s.again
		say("%-8s %d arrivals: %d events, %d refused, %d duplicates (%.2f %%; for %d the receiver lost its answer), %d by an epoch that was over, %d replays",
			route, s.all, s.taken, s.refused, s.again, 100*float64(s.again)/float64(max(1, s.taken)), s.unheard, s.stale, s.replayed)
	}
	say("%-8s %d effects", inside, len(e.Effects))
	rows := map[string]int{}
	for i := range e.Rows {
		rows[e.Rows[i].Source]++
	}
	gone, told := 0, 0
	for i := range e.Rows {
		if e.Rows[i].Gone {
			gone++
		}
	}
	for _, x := range e.Changes {
		if x.Told {
			told++
		}
	}
	say("tables: %d rows of ledger, %d of receipt, %d of reading, %d of parcel and %d events of it, %d of these deleted; %d handled, %d dead letters",
		rows["ledger"], rows["receipt"], rows["reading"], rows["parcel"], rows["parcel-event"], gone, len(e.Notes), len(e.RowLetters))
	r.printCommands(say)
	say("operators: %d tables remade, %d times told; %d rewinds of the log, %d probes of silence", len(e.Changes), told, len(e.Rewinds), len(e.Probes))
	if r.path == byPsql {
		say("clients: %d passes", r.passes.Load())
	}
	say("deliveries: %d in all; %d dead letters, %d replays, %d times a gate or route was closed", total, len(e.Letters), len(e.Replays), len(e.Closings))
}

func (r *result) printCalm(say func(string, ...any)) {
	for _, calm := range r.evidence.Calms {
		say("calm but for %s:", calm.Beside)
		for route, ages := range r.evidence.calmAges(calm) {
			list := slices.Sorted(maps.Values(ages))
			at := func(share float64) time.Duration { return trial.Percentile(list, share).Round(time.Millisecond) }
			say("  %d events on %s, p50 %s, p99 %s, the last after %s", len(list), route, at(0.5), at(0.99), at(1))
		}
	}
}

const examples = 5

func (r *result) printViolations(say func(string, ...any)) {
	if r.excused > 0 {
		say("%d arrivals through a closed gate came from a process that had been stopped (SIGSTOP) with the permission in its hand", r.excused)
	}
	counts := map[string]int{}
	for _, v := range byRule(r.found) {
		counts[v.Rule]++
		if counts[v.Rule] <= examples {
			say("VIOLATION %s: %s", v.Rule, v.Text)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(counts)) {
		say("VIOLATIONS of %s: %d", rule, counts[rule])
	}
	if len(r.found) == 0 {
		n := 0
		for _, c := range r.counts {
			n += c
		}
		say("no violation. With %d faults that bounds the rate to %.2g a fault (3/n, 95 %%)", n, 3/float64(max(1, n)))
	}
}

func (r *result) printCommands(say func(string, ...any)) {
	e := r.evidence
	copies, named, statuses := 0, map[string]bool{}, map[string]int{}
	for _, a := range e.Answered {
		if named[a.Name] {
			copies++
			continue
		}
		named[a.Name] = true
		statuses[a.Status]++
	}
	var list []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		list = append(list, fmt.Sprintf("%d %s", statuses[status], status))
	}
	say("commands: %d records, %d effects; results: %s, %d copies; %d dead letters", len(e.Asked), len(e.Taken), strings.Join(list, ", "), copies, len(e.Refused))
}
