package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func workerCommand() cli.Command {
	return cli.Command{
		Use: "worker", Short: "Workers read the log, or tables, and hand on what they find",
		Example: "  tidemark worker list\n  tidemark worker set births --source table --function app.on_birth",
		Sub: []cli.Command{
			{Use: "list", Short: "List workers and how they are doing", Role: "tidemark_reader", Run: workerList},
			{
				Use: "show WORKER", Short: "Show a worker's settings, and how far each of its cursors is",
				Role: "tidemark_reader", Run: workerShow,
			},
			workerSet(), workerAttach(), workerDetach(),
			workerPause("pause", "Stop a worker where it stands; its gate stays as it is", true),
			workerPause("resume", "Let a paused worker continue", false),
			workerRun(), workerRewind(),
			cli.Delete("WORKER", "Delete a worker that serves no route and reads no source; its evidence stays",
				func(ctx context.Context, s *cli.Session) error { return s.WorkerDelete(ctx, s.Arg(0), s.Reason) }),
		},
	}
}

func workerList(ctx context.Context, s *cli.Session) error {
	all, err := s.WorkerHealth(ctx)
	if err != nil {
		return err
	}
	return workerTable(s, all)
}

func workerTable(s *cli.Session, all []store.Health) error {
	return cli.Table(s.Printer, "no workers", all,
		"WORKER|SOURCE|STATUS|WATERMARK|BEHIND|FOR|HOLES|PENDING|DEAD LETTERS|LAST RUN", func(h store.Health) cli.Row {
			return cli.Row{
				h.Worker, cli.Shard(h.Source, h.Shard), cli.WorkerState(h.Status, h.Gate), cli.Or(h.Watermark,
					"-"), cli.Or(h.Behind, "-"),
				cli.Seconds(h.BehindSeconds), h.Holes, h.Pending, h.OpenDeadLetters, s.AgeOr(h.LastRunAt, "never"),
			}
		})
}

func workerShow(ctx context.Context, s *cli.Session) error {
	d, err := s.WorkerDetails(ctx, s.Arg(0))
	if err != nil {
		return err
	}
	if s.JSON {
		s.Object(d)
		return nil
	}
	workerFacts(s, d.Worker)
	s.Line("")
	for _, l := range d.Leases {
		if l.HeldBy != nil {
			defer s.Note("%s/%d: %s kept open by %s", l.Source, l.Shard, cli.Count(l.Holes, "hole is", "holes are"), *l.HeldBy)
		}
	}
	if d.Log != nil {
		return workerTable(s, d.Logs)
	}
	return cli.Table(s.Printer, "it has no source yet: tidemark worker attach WORKER SOURCE", d.Cursors,
		"SOURCE|SHARD|PHASE|WATERMARK|LAG|ROWS SEEN|PENDING|DEAD LETTERS|VERIFIED THROUGH|LAST RUN|RESULT", func(c store.SourceCursor) cli.Row {
			return cli.Row{
				c.Source, c.Shard, c.Phase, cli.Or(cli.Watermark(c.WatermarkTS, c.WatermarkID),
					"the beginning"), cli.Or(c.Lag, "-"), c.EventsSeen,
				c.Pending, c.OpenDeadLetters, cli.Or(c.VerifiedThrough, "-"), s.AgeOr(c.LastRunAt, "never"), cursorResult(c),
			}
		})
}

// cursorResult is the result of a cursor's last pass.
func cursorResult(c store.SourceCursor) string {
	last, err := c.Last()
	switch {
	case err != nil:
		return err.Error()
	case c.PausedAt != nil:
		return "paused"
	case last.Status == "", last.Status == "ran" && len(last.Result) == 0:
		return last.Status
	case last.Status == "ran":
		return string(last.Result)
	}
	return last.Status + ": " + last.Detail
}

// workerFacts prints a worker's settings. Those of tables are left out for a worker of the log.
func workerFacts(s *cli.Session, w store.Worker) {
	facts := []any{"worker", w.Worker, "handler", strings.TrimSpace(w.Handler + " " + cli.Cell(w.HandlerRef))}
	if w.Source == "outbox" {
		facts = append(facts, "domains", cli.Or(w.Domains, "all"), "read order", w.ReadOrder, "hole limit", w.HoleLimit,
			"shards", w.Shards)
	} else {
		facts = append(facts, "reads", "tables", "payload columns", w.PayloadColumns, "shards", w.Shards,
			"page size", w.PageSize,
			"page timeout", w.PageTimeout, "retry policy", cli.Or(w.RetryPolicy, "default"), "coalesce window", w.CoalesceWindow,
			"storm fraction", w.StormFraction, "off peak", w.OffPeak, "lock wait limit", w.LockWaitLimit,
			"replication lag limit", w.ReplicationLagLimit, "peak pause", cli.Choose(w.OffPeak != nil, w.PeakPause, ""))
	}
	s.Facts(append(facts, "description", w.Description)...)
}

var workerColumns = cli.Columns{
	{Flag: "source", Default: "outbox", Usage: "what it reads: outbox (the log), or table"},
	{Flag: "handler", Usage: "what it does: route or go; of a table sql, emit or go"},
	{
		Flag: "function", Name: "handler_ref", Kind: cli.Optional,
		Usage: "of a table: SCHEMA.FUNCTION that takes an array of its rows (handler sql)",
	},
	{
		Flag: "event", Name: "handler_ref", Kind: cli.Optional,
		Usage: "of a table: DOMAIN/TYPE of the event that each row becomes (handler emit)",
	},
	{
		Flag: "payload-columns", Kind: cli.List,
		Usage: "handler emit: columns that the event shows beside the id and the key columns",
	},
	{Flag: "domains", Kind: cli.List, Usage: "decide only events of these domains; others leave no record"},
	{
		Flag: "read-order", Default: "eager",
		Usage: "eager: pass numbers that have not shown up and come back; strict: wait",
	},
	{Flag: "hole-limit", Kind: cli.Int, Default: "10000", Usage: "ranges of missing numbers to keep at most"},
	{
		Flag: "shards", Kind: cli.Int, Default: "1",
		Usage: "parts, by the key of events or the key columns of rows, each with a cursor and a lease",
	},
	{Flag: "page-size", Kind: cli.Int, Default: "5000", Usage: "of a table: rows that a pass reads at most"},
	{
		Flag: "page-timeout", Default: "5s",
		Usage: "of a table: a pass that takes longer is rolled back and tried with fewer rows",
	},
	{
		Flag: "retry-policy", Kind: cli.Object,
		Usage: "of a table: JSON object with any of max_attempts, base_seconds, max_seconds, jitter",
	},
	{
		Flag: "coalesce-window", Kind: cli.Optional,
		Usage: "of a table: rows of a group within this time are handed over as one, the latest",
	},
	{
		Flag: "storm-fraction", Kind: cli.Optional,
		Usage: "of a table: share of all groups that may change at once, from 0 to 1",
	},
	{Flag: "off-peak", Kind: cli.Optional, Usage: `of a table: hours at full speed, such as "22:00-06:00 Europe/Berlin"`},
	{Flag: "peak-pause", Default: "1s", Usage: "of a table: outside of these hours, the pause between two passes"},
	{Flag: "lock-wait-limit", Kind: cli.Optional, Usage: "of a table: wait while more sessions than this wait for locks"},
	{
		Flag: "replication-lag-limit", Kind: cli.Optional,
		Usage: "of a table: wait while a standby is further behind than this",
	},
	{Flag: "description", Usage: "free text that says what it is for"},
}

func workerSet() cli.Command {
	var from string
	var allDomains bool
	return cli.Command{
		Use: "set WORKER", Short: "Create or change a worker", Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: workerColumns,
		Long: `Create or change a worker. A new worker of the log begins with the next event, or where --from says. With
--source table it reads tables: give it a function, or the type of the events that it makes of rows, then sources by
tidemark worker attach. Its source and its kind of handler are fixed once it exists. An empty text removes a limit or a
policy.`,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&from, "from", "now", "where a worker of the log begins: "+cli.FromUsage)
			flags.BoolVar(&allDomains, "all-domains", false, "decide events of all domains")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			changes, err := workerChanges(s)
			if err != nil {
				return err
			}
			start := ""
			if s.Given("from") {
				if start, err = cli.StartOf(from, s.Now); err != nil {
					return err
				}
			}
			_, err = s.Worker(ctx, s.Arg(0))
			isNew := errors.Is(err, tidemark.ErrNotFound)
			w, err := s.WorkerSet(ctx, s.Arg(0), changes, s.Reason, start)
			if err != nil {
				return err
			}
			if s.JSON {
				s.Object(w)
				return nil
			}
			if (isNew || start != "") && w.Source == "outbox" {
				h, err := s.WorkerHealthOf(ctx, w.Worker)
				if err != nil {
					return err
				}
				earlier := ""
				if h.Behind != nil && *h.Behind > 0 {
					earlier = ", and " + cli.Count(*h.Behind, "earlier event")
				}
				s.Note("worker %s begins after event %s (--from %s); it decides what commits from now on%s", w.Worker,
					cli.Cell(h.Watermark), from, earlier)
			}
			workerFacts(s, w)
			return nil
		},
	}
}

// workerChanges reads the columns. --function and --event name the handler too.
func workerChanges(s *cli.Session) (store.Changes, error) {
	changes, err := workerColumns.Changes(s.Flags)
	switch {
	case err != nil:
		return nil, err
	case s.NumGiven("function", "event") == 2:
		return nil, cli.Usagef("give --function or --event, not both")
	case s.NumGiven("domains", "all-domains") == 2:
		return nil, cli.Usagef("give --domains or --all-domains, not both")
	case s.Given("all-domains"):
		changes["domains"] = nil
	}
	for flag, handler := range map[string]string{"function": "sql", "event": "emit"} {
		switch {
		case !s.Given(flag):
		case s.Given("handler") && changes["handler"] != handler:
			return nil, cli.Usagef("--%s is for the handler %s", flag, handler)
		default:
			changes["handler"] = handler
		}
	}
	return changes, nil
}

func workerPause(name, short string, pause bool) cli.Command {
	return cli.Pause(name, "worker", short, pause, func(ctx context.Context, s *cli.Session) (bool, error) {
		return s.WorkerPause(ctx, s.Arg(0), pause, s.Reason)
	})
}

func workerAttach() cli.Command {
	return cli.Command{
		Use: "attach WORKER SOURCE", Short: "Let a worker of tables read a source, from the beginning of the table", Role: "tidemark_admin",
		Reason: cli.MayGiveReason,
		Run: func(ctx context.Context, s *cli.Session) error {
			worker, source := s.Arg(0), s.Arg(1)
			made, err := s.WorkerSourceAdd(ctx, worker, source, s.Reason) // 0: it has the cursors already
			if err != nil {
				return err
			}
			rows, err := s.SourceRows(ctx, source)
			if err != nil {
				return err
			}
			if made > 0 && rows > 0 {
				s.Note("it begins with the rows that are there, about %d; a --filter of the source leaves some out", rows)
			}
			return s.Result(cli.Fields{
				"worker", worker, "source", source,
				"cursors", made,
			}, "worker %s: reads %s%s", worker, source,
				cli.Choose(made == 0, " already", ", "+cli.Count(made, "cursor")))
		},
	}
}

func workerDetach() cli.Command {
	return cli.Command{
		Use: "detach WORKER SOURCE", Short: "Take a source from a worker of tables and drop its cursors; the audit keeps them", Role: "tidemark_admin",
		Reason: cli.NeedsReason,
		Long: `Take a source from a worker of tables and drop its cursors; the audit keeps them. From the worker commands it takes a topic that no
daemon is to read any more: tidemark worker detach commands kafka:TOPIC, five minutes after a daemon last read it.`,
		Run: func(ctx context.Context, s *cli.Session) error {
			worker, source := s.Arg(0), s.Arg(1)
			gone, err := s.WorkerSourceRemove(ctx, worker, source, s.Reason)
			if err != nil {
				return err
			}
			return s.Result(cli.Fields{
				"worker", worker, "source", source,
				"cursors", gone,
			}, "worker %s: no longer reads %s, %s gone", worker, source,
				cli.Count(gone, "cursor is", "cursors are"))
		},
	}
}
