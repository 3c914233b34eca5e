package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// found is what the independent check says.
type found struct {
	Committed  int64
	Received   int64
	Lost       int64
	Doubled    int64
	OutOfOrder int64
	Invented   int64
}

func (s *show) report(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, check)
	if err != nil {
		return err
	}
	f, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[found])
	if err != nil {
		return err
	}
	rows, err = s.conn.Query(ctx, `select outcome::text, count(*) from tidemark.route_attempt group by outcome order by outcome`)
	if err != nil {
		return err
	}
	evidence, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Outcome string
		N       int64
	}])
	if err != nil {
		return err
	}

	s.say("\n5. What happened")
	line := func(n int64, what, note string) {
		s.say("%s", strings.TrimRight(fmt.Sprintf("   %-36s%8d   %s", what, n, note), " "))
	}
	line(f.Committed, "events committed", "counted by the application, in the transactions that emitted them")
	line(f.Received, "events received", "counted by the application")
	line(f.Lost, "lost", "")
	line(f.Doubled, "doubled", "")
	line(f.OutOfOrder, "out of order per unit", "")
	line(f.Invented, "rolled back, but received", "")
	line(s.whileClosed, "received while the gate was closed", "")
	line(s.late, "received after a later number", "committed late: a plain watermark would have lost them")
	for _, e := range evidence {
		line(e.N, "evidence: "+e.Outcome, evidenceNotes[e.Outcome])
	}
	line(s.passes, "passes", "of two instances, one at a time")
	s.say(`
Look further, in a database of your own (tidemark migrate up), or here with: tidemark demo --keep
   tidemark status                              how the workers are
   tidemark event list                          the log; event show ID: with its evidence
   tidemark verify                              checks of the whole installation
   select * from tidemark.route_attempt;        one row per event, route and attempt
   select * from tidemark.audit;                who switched what, when and why
`)
	if f.Lost+f.Doubled+f.OutOfOrder+f.Invented+s.whileClosed != 0 || f.Committed == 0 || f.Committed != f.Received {
		return errors.New("the result is not what Tidemark promises: please report it")
	}
	return nil
}

var evidenceNotes = map[string]string{
	"sent":     "delivered, in the same transaction as this evidence",
	"dry_run":  "decided by a route in dry run, delivered nowhere",
	"disabled": "decided by a route that is off",
	"failed":   "the poison event's first attempt",
}
