package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// RouteState is what the switches of a route amount to.
func RouteState(r store.Route) string {
	paused := r.PausedAt != nil
	switch {
	case !r.Enabled:
		return Choose(paused, "off, paused", "off")
	case r.DryRun:
		return Choose(paused, "dry run, paused", "dry run")
	}
	return Choose(paused, "paused", "live")
}

// WorkerState is the status of a worker and the gate that closes it.
func WorkerState(status string, gate *string) string {
	if gate == nil {
		return status
	}
	return status + " by " + *gate
}

// StageText is the stage for people.
func StageText(stage store.Stage) string {
	switch {
	case stage.Stage == "live" && !stage.Armed:
		return "live, but disarmed: it was made live as database " + Cell(stage.Database) + ", and this is another database or cluster"
	case stage.Stage == "live":
		return "live"
	}
	return "dry_run: nothing is delivered"
}

// ReplayState is the state of a replay and what it waits for.
func ReplayState(r store.RouteReplayed) string {
	if r.WaitsFor == nil {
		return r.State
	}
	return r.State + ": " + ReplayWaits(r)
}

// ReplayWaits is what a replay waits for. A name alone is that of a closed gate.
func ReplayWaits(r store.RouteReplayed) string {
	waits := Cell(r.WaitsFor)
	return Choose(strings.Contains(waits, " "), "", "closed by ") + waits
}

// ReplaySent is how many of a replay's events were delivered.
func ReplaySent(r store.RouteReplayed) string {
	if r.Events == nil {
		return Cell(r.Sent)
	}
	return fmt.Sprintf("%d of %d", r.Sent, *r.Events)
}

// Shard names a part of a source. The first part, often the only one, has the source's name alone.
func Shard(source string, shard int) string {
	if shard == 0 {
		return source
	}
	return fmt.Sprintf("%s/%d", source, shard)
}

// Watermark is how far a cursor of a table has come. Empty: at the beginning.
func Watermark(ts *time.Time, id *string) string {
	switch {
	case ts == nil:
		return Cell(id)
	case id == nil:
		return "before " + ts.UTC().Format(time.RFC3339Nano)
	}
	return ts.UTC().Format(time.RFC3339Nano) + " " + *id
}

// NoPayload stands for what the role may not read.
const NoPayload = "(hidden: your role may not read it, a member of tidemark_admin may)"

// CheckTable prints checks.
func CheckTable(s *Session, checks []store.Check) error {
	return Table(s.Printer, "no checks", checks, "STATUS|CHECK|FOUND|HINT", func(c store.Check) Row {
		return Row{c.Status, c.Check, c.Detail, c.Hint}
	})
}

// ShowChecks prints checks. Its error is that of checks that failed.
func ShowChecks(s *Session, checks []store.Check) error {
	if err := CheckTable(s, checks); err != nil {
		return err
	}
	return Failures(checks)
}

// Failures is the error of checks that failed.
func Failures(checks []store.Check) error {
	failed := 0
	for _, c := range checks {
		if c.Status == "fail" {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d checks failed", failed, len(checks))
}

// FindingTable prints findings.
func FindingTable(s *Session, all []store.Finding) error {
	return Table(s.Printer, "no findings", all, "SEVERITY|ID|FINDING|SUBJECT|OPENED|SEEN|STATE|DETAIL",
		func(f store.Finding) Row {
			state := "open"
			switch {
			case f.ClosedAt != nil:
				state = "closed " + s.Age(*f.ClosedAt)
			case f.AckedBy != nil:
				state = "acked by " + *f.AckedBy
			}
			return Row{f.Severity, f.ID, f.Kind, f.Subject, s.Age(f.OpenedAt), Count(f.Count, "time"), state, f.Detail}
		})
}

// Verdict is the error of an installation that is not well, with the exit status for watchdogs.
func Verdict(all []store.Cause) error {
	number := map[string]int{}
	for _, c := range all {
		number[c.Status]++
	}
	const hint = "tidemark doctor explains each."
	if n := number["bad"]; n > 0 {
		return ExitWith(StatusBad, Hint(fmt.Errorf("%s", Count(n, "thing does not work", "things do not work")), hint))
	}
	if n := number["unknown"]; n > 0 {
		return ExitWith(StatusUnknown, Hint(fmt.Errorf("%s could not be evaluated", Count(n, "check")), hint))
	}
	return nil
}

// Takes says what an SQL target is called with. form is target_takes as SQL has it; nil: the target is no such function.
func Takes(form *string) string {
	switch Cell(form) {
	case "event":
		return "an event a call (jsonb)"
	case "batch":
		return "a batch a call (tidemark.outbox[])"
	}
	return ""
}
