package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// facts hold what the report prints. The application counts what was committed, and the targets what arrived; Tidemark is
// asked only why a delivery was tried again.
type facts struct {
	committed  map[string]bool
	rolledBack int64
	late       int64
	accounts   []account      // of targets, in their order
	retried    map[string]int // failed tries by route
	cutOff     map[string]map[string]int
	evidence   []evidence
	dead       dead
}

type evidence struct {
	Outcome string
	N       int64
}

// dead is what Tidemark has on record about the dead target.
type dead struct {
	Waiting int64
	Finding string
}

func (s *show) report(ctx context.Context) error {
	f, err := s.gather(ctx)
	if err != nil {
		return err
	}
	s.say("\n5. What happened")
	line := func(n int64, what, note string) {
		s.say("%s", strings.TrimRight(fmt.Sprintf("   %-36s%8d   %s", what, n, note), " "))
	}
	function := f.accounts[0]
	line(int64(len(f.committed)), "events committed", "counted by the application, in the transactions that emitted them")
	line(int64(function.Delivered), "events received", "by the SQL function, counted by the application")
	line(int64(function.Lost), "lost", "")
	line(int64(function.Twice), "doubled", "")
	line(int64(function.OutOfOrder), "out of order per unit", "")
	line(f.rolledBack, "rolled back", "emitted, and taken back by a rollback, also to a savepoint")
	line(int64(f.invented()), "rolled back, but received", "anywhere")
	line(f.late, "received after a later number", "committed late: a plain watermark would have lost them")
	line(s.afterClosing.Milliseconds(), "ms after the gate closed", "the last arrival anywhere; up to 1000 are allowed")
	for _, e := range f.evidence {
		line(e.N, "evidence: "+e.Outcome, evidenceNotes[e.Outcome])
	}
	s.table(f)
	s.say(`
Look further, in a database of your own (tidemark migrate up), or here with: bin/tidemark-demo --keep
   tidemark status                              how the workers are
   tidemark event list                          the log; event show ID: with its evidence
   tidemark verify                              checks of the whole installation
   select * from tidemark.route_attempt;        one row per event, route and attempt
   select * from tidemark.audit;                who switched what, when and why
`)
	broken := s.broken(f)
	for _, b := range broken {
		s.say("BROKEN: %s", b)
	}
	if len(broken) > 0 {
		return errors.New("the result is not what Tidemark promises: please report it")
	}
	return nil
}

// table prints a line for each target.
func (s *show) table(f *facts) {
	s.say("\n   %-25s%10s%9s%7s%14s%6s%9s%9s", "target", "delivered", "retried", "twice", "out of order", "lost", "p50 ms", "p99 ms")
	for i, t := range s.everywhere() {
		a := f.accounts[i]
		disorder := fmt.Sprint(a.OutOfOrder)
		if !t.ordered {
			disorder = "not asked for"
		}
		s.say("   %-25s%10d%9d%7d%14s%6d%9.1f%9.1f", t.name, a.Delivered, f.retried[t.route], a.Twice, disorder, a.Lost,
			milliseconds(a.p50), milliseconds(a.p99))
	}
	s.say("   %-25s%10d%9d%7s%14s%6s   %d wait", "webhook, dead", 0, f.retried[routeDead], "", "", "", f.dead.Waiting)
	s.say(`
   retried        tries that failed, each on record
   twice          %s
   p50, p99       from when the Go program had its commit acknowledged to the arrival, or to the commit of what the
                  function did: of %d events, under load and before anything but the dead target was disturbed
   signatures     those of all webhooks were checked; wrong ones: %d
   the dead one   is left alone for a while after 5 failures, and a finding says why:
                  %s`, s.explained(f), len(s.acknowledged), s.receiver.Forged.Load(), f.dead.Finding)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// explained returns why events arrived twice.
func (s *show) explained(f *facts) string {
	silent, again := int(s.receiver.Silent.Load()), 0
	for _, a := range f.accounts {
		again += a.Twice
	}
	text := fmt.Sprintf("%d times the receiver took an event and gave no answer", silent)
	if again > silent {
		text += fmt.Sprintf("; %d answers were cut off by the gate", again-silent)
	}
	return text + ".\n                  Each of these has an attempt on record whose outcome is unknown"
}

var evidenceNotes = map[string]string{
	"sent":     "delivered; by the function, in the same transaction as this evidence",
	"dry_run":  "decided by a route in dry run, delivered nowhere",
	"disabled": "decided by a route that is off",
	"failed":   "the poison event's first attempt",
	"pending":  "waited: for another attempt, for the one before it of its unit, or for the dead",
}

// broken returns the guarantees that did not hold.
func (s *show) broken(f *facts) (list []string) {
	check := func(kept bool, format string, args ...any) {
		if !kept {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	check(len(f.committed) > 0, "nothing was committed")
	check(f.accounts[0].Twice == 0, "%d events came to the function twice", f.accounts[0].Twice)
	for i, t := range s.everywhere() {
		a := f.accounts[i]
		check(a.Lost == 0, "%s: %d events were lost", t.name, a.Lost)
		check(a.Invented == 0, "%s: %d events arrived that were never committed", t.name, a.Invented)
		check(!t.ordered || a.OutOfOrder == 0, "%s: %d events out of order", t.name, a.OutOfOrder)
		for event, times := range a.Again {
			check(times <= f.cutOff[t.route][event], "%s: event %s came %d times, and why is not on record", t.name, event, times+1)
		}
	}
	check(s.receiver.Forged.Load() == 0, "%d signatures were wrong", s.receiver.Forged.Load())
	check(s.afterClosing <= obeyed, "an event arrived %s after the gate was closed", s.afterClosing)
	check(f.dead.Waiting == int64(len(f.committed)), "%d events wait for the dead target, not %d", f.dead.Waiting, len(f.committed))
	check(f.dead.Finding != "", "no finding names the dead target")
	return list
}

func (f *facts) invented() (n int) {
	for _, a := range f.accounts {
		n += a.Invented
	}
	return n
}
