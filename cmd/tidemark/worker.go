package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

func newWorker(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "worker", Short: "Workers read the log and route its events"}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{Use: "list", Short: "List workers and how they are doing", RunE: a.withSchema(workerList)}),
		newWorkerRun(a), newWorkerSet(a), newWorkerRewind(a), newWorkerPause(a, true), newWorkerPause(a, false),
	)
	return cmd
}

func workerList(ctx context.Context, s *session, _ []string) error {
	all, err := s.WorkerHealth(ctx)
	if err != nil {
		return err
	}
	return workerTable(s, all)
}

func workerTable(s *session, all []postgres.Health) error {
	type h = postgres.Health
	return rows(s.printer, "no workers", all,
		column[h]{"WORKER", func(h h) string { return h.Worker }},
		column[h]{"STATUS", workerStatus},
		column[h]{"WATERMARK", func(h h) string { return number(h.Watermark) }},
		column[h]{"BEHIND", func(h h) string { return number(h.Behind) }},
		column[h]{"HOLES", func(h h) string { return number(h.Holes) }},
		column[h]{"PENDING", func(h h) string { return number(h.Pending) }},
		column[h]{"DEAD LETTERS", func(h h) string { return number(h.OpenDeadLetters) }},
		column[h]{"LAST RUN", func(h h) string { return s.ageOr(h.LastRunAt, "never") }})
}

func workerStatus(h postgres.Health) string {
	if h.Gate != nil {
		return h.Status + " by " + *h.Gate
	}
	return h.Status
}

func newWorkerRun(a *app) *cobra.Command {
	var batch int
	var untilEmpty bool
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "run NAME",
		Short: "Run a pass of a worker, in a transaction of its own",
	})
	cmd.Flags().IntVar(&batch, "batch", 5000, "events read at most by a pass: 1 to 50000")
	cmd.Flags().BoolVar(&untilEmpty, "until-empty", false, "pass after pass, until nothing is left to read")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		for {
			var pass postgres.Pass
			err := s.inTx(ctx, func(db *postgres.DB) (err error) {
				pass, err = db.RouteWorkerRun(ctx, args[0], batch)
				return err
			})
			if err != nil {
				return err
			}
			if s.json {
				err = s.object(pass.Summary)
			} else {
				err = s.linef("%s", passText(pass))
			}
			if err != nil || !untilEmpty || pass.Status != "ran" || pass.Events < batch {
				return err
			}
		}
	})
	return cmd
}

func passText(p postgres.Pass) string {
	switch p.Status {
	case "closed":
		return fmt.Sprintf("%s did not run: closed by %s", p.Worker, p.Gate)
	case "busy":
		return fmt.Sprintf("%s did not run: %s", p.Worker, p.Detail)
	}
	var decided []string
	for _, outcome := range slices.Sorted(maps.Keys(p.Decided)) {
		decided = append(decided, fmt.Sprintf("%d %s", p.Decided[outcome], outcome))
	}
	line := fmt.Sprintf("%s: %s", p.Worker, count(p.Events, "event", "events"))
	if p.Late > 0 {
		line += fmt.Sprintf(", %d of them late", p.Late)
	}
	if len(decided) > 0 {
		line += "; " + strings.Join(decided, ", ")
	}
	if p.Fallbacks > 0 {
		line += fmt.Sprintf("; %s", count(p.Fallbacks, "statement failed and was split", "statements failed and were split"))
	}
	line += fmt.Sprintf("; watermark %d", p.Watermark)
	if p.BlockedBy != "" {
		line += "; it waits: too many numbers below it are open, kept so by " + p.BlockedBy
	}
	return line
}

func newWorkerSet(a *app) *cobra.Command {
	var reason, readOrder, description string
	var domains []string
	var allDomains bool
	var holeLimit int
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set NAME",
		Short: "Make a worker, its cursor at the beginning of the log, or change one",
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&domains, "domains", nil, "decide events of these domains only; others leave no evidence")
	flags.BoolVar(&allDomains, "all-domains", false, "decide events of all domains")
	flags.StringVar(&readOrder, "read-order", "eager", "eager: pass numbers that have not shown up and come back; strict: wait")
	flags.IntVar(&holeLimit, "hole-limit", 10000, "ranges of missing numbers kept at most")
	flags.StringVar(&description, "description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes := postgres.Changes{}
		switch {
		case allDomains && flags.Changed("domains"):
			return usagef("give --domains or --all-domains, not both")
		case allDomains:
			changes["domains"] = nil
		case flags.Changed("domains"):
			changes["domains"] = domains
		}
		if flags.Changed("read-order") {
			changes["read_order"] = readOrder
		}
		if flags.Changed("hole-limit") {
			changes["hole_limit"] = holeLimit
		}
		if flags.Changed("description") {
			changes["description"] = description
		}
		w, err := s.WorkerSet(ctx, args[0], changes, reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(w)
		}
		return s.facts(
			fact{"worker", w.Worker}, fact{"domains", firstOf(strings.Join(w.Domains, ", "), "all")},
			fact{"read order", w.ReadOrder}, fact{"hole limit", number(w.HoleLimit)}, fact{"description", w.Description})
	})
	return cmd
}

func newWorkerRewind(a *app) *cobra.Command {
	var reason string
	var to int64
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "rewind NAME",
		Short: "Move a worker's cursor back; what was decided stays decided",
	})
	cmd.Flags().Int64Var(&to, "to", 0, "number of the event to read on behind; 0: the beginning of the log")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		if !cmd.Flags().Changed("to") {
			return usagef("--to is needed")
		}
		if err := needReason(reason); err != nil {
			return err
		}
		was, err := s.WorkerRewind(ctx, args[0], to, reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				Worker string `json:"worker"`
				Was    int64  `json:"was"`
				Is     int64  `json:"is"`
			}{args[0], was, to})
		}
		return s.linef("worker %s: watermark %d, was %d", args[0], to, was)
	})
	return cmd
}

func newWorkerPause(a *app, pause bool) *cobra.Command {
	use, short, done, already := "pause NAME", "Stop a worker where it stands; its gate stays as it is", "paused", "was paused already"
	if !pause {
		use, short, done, already = "resume NAME", "Let a paused worker go on", "resumed", "was not paused"
	}
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{Use: use, Short: short})
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changed, err := s.WorkerPause(ctx, args[0], pause, reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				Worker  string `json:"worker"`
				Paused  bool   `json:"paused"`
				Changed bool   `json:"changed"`
			}{args[0], pause, changed})
		}
		if !changed {
			done = already
		}
		return s.linef("worker %s: %s", args[0], done)
	})
	return cmd
}
