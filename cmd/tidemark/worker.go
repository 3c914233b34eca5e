package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newWorker(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "worker", Short: "Workers read the log, or tables of others, and hand on what they find"}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{Use: "list", Short: "List workers and how they are doing", RunE: a.withSchema(workerList)}),
		newWorkerShow(a), newWorkerRun(a), newWorkerSet(a), newWorkerAttach(a), newWorkerDetach(a), newWorkerRewind(a), newWorkerPause(a, true), newWorkerPause(a, false),
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

func workerTable(s *session, all []store.Health) error {
	type h = store.Health
	return rows(s.printer, "no workers", all,
		column[h]{"WORKER", func(h h) string { return h.Worker }},
		column[h]{"SOURCE", func(h h) string { return shardOf(h.Source, h.Shard) }},
		column[h]{"STATUS", workerStatus},
		column[h]{"WATERMARK", func(h h) string { return firstOf(optional(h.Watermark), "-") }},
		column[h]{"BEHIND", func(h h) string { return firstOf(optional(h.Behind), "-") }},
		column[h]{"FOR", func(h h) string { return seconds(h.BehindSeconds) }},
		column[h]{"HOLES", func(h h) string { return number(h.Holes) }},
		column[h]{"PENDING", func(h h) string { return number(h.Pending) }},
		column[h]{"DEAD LETTERS", func(h h) string { return number(h.OpenDeadLetters) }},
		column[h]{"LAST RUN", func(h h) string { return s.ageOr(h.LastRunAt, "never") }})
}

// shardOf names a part of a source; the first, which is often the only one, by the source alone.
func shardOf(source string, shard int) string {
	if shard == 0 {
		return source
	}
	return fmt.Sprintf("%s/%d", source, shard)
}

func workerStatus(h store.Health) string {
	if h.Gate != nil {
		return h.Status + " by " + *h.Gate
	}
	return h.Status
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
