package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func workerRewind() cli.Command {
	var source, toID string
	var toTime cli.Time
	var accept, dryRun bool
	var to int64
	return cli.Command{
		Use: "rewind WORKER", Short: "Move a worker's cursor back", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Move a worker's cursor back. In the log, decisions stay as they are: only routes without a record of an event
get it. The command prints how many events that is for each route before the cursor moves; --dry-run only prints. To
send decided events again, use tidemark route replay. Rows of a table that are read again are handed over again: their
handler must tolerate that; --dry-run counts them up to 10000. --accept leaves the cursors of a source where they are, after a finding that held them.`,
		Example: "  tidemark worker rewind default --to 120000 --dry-run",
		Flags: func(flags *pflag.FlagSet) {
			flags.Int64Var(&to, "to", 0, "in the log: number of the event after which to read on; 0: the beginning")
			flags.StringVar(&source, "source", "", "of a worker of tables: the source")
			cli.TimeFlag(flags, &toTime, "to-time", "", "read rows of this time and later again")
			flags.StringVar(&toID, "to-id", "", "of the safety sequence: read rows with a higher id again")
			flags.BoolVar(&accept, "accept", false, "read on where the cursors are")
			flags.BoolVar(&dryRun, "dry-run", false, "show what would happen, move nothing")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			switch {
			case s.NumGiven("to", "to-time", "to-id", "accept") != 1:
				return cli.Usagef("give one of --to (of the log), or with --source one of --to-time, --to-id and --accept")
			case s.Given("to") == s.Given("source"):
				return cli.Usagef("--to is for the log; --to-time, --to-id and --accept are for a --source")
			}
			if !dryRun {
				if err := s.NeedReason(); err != nil {
					return err
				}
			}
			if source == "" {
				return rewindLog(ctx, s, to, dryRun)
			}
			back, err := toTime.At(s.Now)
			if err != nil {
				return err
			}
			if dryRun {
				return rewindOutlook(ctx, s, source, back, toID)
			}
			cursors, err := s.SourceRewind(ctx, s.Arg(0), source, s.Reason, back, toID)
			if err != nil {
				return err
			}
			return s.Result(cli.Fields{"worker", s.Arg(0), "source", source, "cursors", cursors},
				"worker %s, source %s: %s", s.Arg(0), source, cli.Count(cursors,
					"cursor reads on from there", "cursors read on from there"))
		},
	}
}

// rewindOutlook shows how many rows of a source would be read again.
func rewindOutlook(ctx context.Context, s *cli.Session, source string, back time.Time, toID string) error {
	all, err := s.SourceRewindOutlook(ctx, s.Arg(0), source, back, toID)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "", all, "SHARD|IS AT|ROWS AGAIN", func(o store.RewindOutlook) cli.Row {
		rows := cli.Cell(o.Rows) + cli.Choose(o.Complete, "", " or more")
		return cli.Row{o.Shard, cli.Or(o.WatermarkTS, cli.Cell(o.WatermarkID)), cli.Or(o.Problem, rows)}
	})
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

func rewindLog(ctx context.Context, s *cli.Session, to int64, dryRun bool) error {
	// It counts and prints before anything moves. The second call counts the same, except for what was decided in between.
	worker := s.Arg(0)
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
	if !s.JSON {
		if err := showRewind(s, all, complete); err != nil {
			return err
		}
	}
	if dryRun {
		return s.Result(all, "worker %s: watermark %d, would be %d", worker, all.Was, to)
	}
	if _, err := s.WorkerRewind(ctx, worker, to, s.Reason, false); err != nil {
		return err
	}
	return s.Result(all, "worker %s: watermark %d, was %d", worker, to, all.Was)
}

func showRewind(s *cli.Session, all rewound, complete bool) error {
	var kept, due int64
	for _, r := range all.Routes {
		switch {
		case *r.Decided:
			kept += r.Events
		case *r.Outcome == "pending":
			due += r.Events
		}
	}
	s.Line("events %d to %d, %d in the log%s", all.Is+1, all.Was, all.Events,
		cli.Choose(complete, "", "; undecided ones were counted among the first million"))
	if len(all.Routes) > 0 {
		err := cli.Table(s.Printer, "", all.Routes, "ROUTE|EVENTS|ON RECORD|THEN", func(r store.Rewound) cli.Row {
			outcome := cli.Cell(r.Outcome)
			then := cli.Choose(outcome == "pending", "is delivered", "is recorded as "+outcome)
			if *r.Decided {
				return cli.Row{cli.Or(r.RouteCode, "-"), r.Events, outcome, "stays, is not delivered again"}
			}
			return cli.Row{cli.Or(r.RouteCode, "-"), r.Events, "nothing", then}
		})
		if err != nil {
			return err
		}
	}
	if kept > 0 {
		s.Note("%d decisions stay as they are: none of them is delivered again, %d deliveries are new; "+
			"to send events again: tidemark route replay ROUTE --from-seq %d --to-seq %d", kept, due, all.Is+1, all.Was)
	}
	return nil
}
