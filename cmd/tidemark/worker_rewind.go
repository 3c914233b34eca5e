package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newWorkerRewind(a *app) *cobra.Command {
	var reason, source, toTime, toID string
	var accept, dryRun bool
	var to int64
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "rewind NAME",
		Short: "Move a worker's cursor back; what was decided stays decided, rows of tables are handed over again",
		Long: `Move a worker's cursor back. In the log, what was decided stays decided: only routes without evidence for an
event get it. How many events that is, of each route, is told before the cursor moves; --dry-run only tells. To send
again what was decided: tidemark route replay. Rows of a table that are read again are handed over again: their
handler must not mind. --accept leaves the cursors of a source where they are, after a finding that held them.`,
	})
	flags := cmd.Flags()
	flags.Int64Var(&to, "to", 0, "in the log: number of the event to read on behind; 0: its beginning")
	flags.StringVar(&source, "source", "", "of a worker of tables: the source")
	flags.StringVar(&toTime, "to-time", "", "rows of this time and later are read again: RFC 3339, or how long ago (90m, 24h, 7d)")
	flags.StringVar(&toID, "to-id", "", "of the safety sequence: rows with a higher id are read again")
	flags.BoolVar(&accept, "accept", false, "read on where the cursors are")
	flags.BoolVar(&dryRun, "dry-run", false, "in the log: tell what would happen, move nothing")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		places := 0
		for _, flag := range []string{"to", "to-time", "to-id", "accept"} {
			if flags.Changed(flag) {
				places++
			}
		}
		switch {
		case places != 1:
			return usagef("give one of --to (of the log), or with --source one of --to-time, --to-id and --accept")
		case flags.Changed("to") == flags.Changed("source"):
			return usagef("--to is for the log; --to-time, --to-id and --accept are for a --source")
		case dryRun && source != "":
			return usagef("--dry-run is for the log: rows of a source that are read again are handed over again, all of them")
		}
		if !dryRun {
			if err := needReason(reason); err != nil {
				return err
			}
		}
		if source == "" {
			return rewindLog(ctx, s, args[0], to, reason, dryRun)
		}
		back, err := when("to-time", toTime, s.now)
		if err != nil {
			return err
		}
		return rewindSource(ctx, s, args[0], source, reason, back, toID)
	})
	return cmd
}

// rewound is the JSON of a rewind of the log.
type rewound struct {
	Worker string          `json:"worker"`
	Was    int64           `json:"was"`
	Is     int64           `json:"is"`
	DryRun bool            `json:"dry_run"`
	Events int64           `json:"events"` // of the log in between
	Routes []store.Rewound `json:"routes"`
}

func rewindLog(ctx context.Context, s *session, worker string, to int64, reason string, dryRun bool) error {
	// Counted and told before anything moves; what the second call counts is the same, or was decided in between.
	outlook, err := s.WorkerRewind(ctx, worker, to, "", true)
	if err != nil {
		return err
	}
	all := rewound{Worker: worker, Is: to, DryRun: dryRun, Routes: []store.Rewound{}}
	complete := true
	for _, r := range outlook {
		all.Was, complete = r.Was, complete && r.Complete
		if r.Decided == nil {
			all.Events = r.Events
		} else {
			all.Routes = append(all.Routes, r)
		}
	}
	if !s.json {
		if err := showRewind(s, all, complete); err != nil {
			return err
		}
	}
	if !dryRun {
		if _, err := s.WorkerRewind(ctx, worker, to, reason, false); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return s.object(all)
	case dryRun:
		return s.linef("worker %s: watermark %d, would be %d", worker, all.Was, to)
	default:
		return s.linef("worker %s: watermark %d, was %d", worker, to, all.Was)
	}
}

func showRewind(s *session, all rewound, complete bool) error {
	type r = store.Rewound
	var kept, due int64
	for _, r := range all.Routes {
		switch {
		case *r.Decided:
			kept += r.Events
		case *r.Outcome == "pending":
			due += r.Events
		}
	}
	atLeast := ""
	if !complete {
		atLeast = "; what is undecided was counted in the first million of them"
	}
	if err := s.linef("events %d to %d, %d in the log%s", all.Is+1, all.Was, all.Events, atLeast); err != nil {
		return err
	}
	if len(all.Routes) > 0 {
		err := rows(s.printer, "", all.Routes,
			column[r]{"ROUTE", func(r r) string { return firstOf(text(r.RouteCode), "-") }},
			column[r]{"EVENTS", func(r r) string { return number(r.Events) }},
			column[r]{"ON RECORD", func(r r) string {
				if !*r.Decided {
					return "nothing"
				}
				return text(r.Outcome)
			}},
			column[r]{"THEN", afterRewind})
		if err != nil {
			return err
		}
	}
	if kept > 0 {
		s.note("%d decisions stay as they are: none of them is delivered again, %d deliveries are new; to send events again: tidemark route replay ROUTE --from-seq %d --to-seq %d",
			kept, due, all.Is+1, all.Was)
	}
	return nil
}

func afterRewind(r store.Rewound) string {
	switch {
	case *r.Decided:
		return "stays, is not delivered again"
	case *r.Outcome == "pending":
		return "is delivered"
	default:
		return "is recorded as " + text(r.Outcome)
	}
}

func rewindSource(ctx context.Context, s *session, worker, source, reason string, back time.Time, id string) error {
	cursors, err := s.SourceRewind(ctx, worker, source, reason, back, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(struct {
			Worker  string `json:"worker"`
			Source  string `json:"source"`
			Cursors int    `json:"cursors"`
		}{worker, source, cursors})
	}
	return s.linef("worker %s, source %s: %s read on from there", worker, source, count(cursors, "cursor", "cursors"))
}
