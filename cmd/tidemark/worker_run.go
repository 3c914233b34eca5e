package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newWorkerRun(a *app) *cobra.Command {
	var f store.RunFilter
	var batch, shard int
	var untilEmpty bool
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "run NAME",
		Short: "Run a pass of a worker, in a transaction of its own",
	})
	flags := cmd.Flags()
	flags.IntVar(&batch, "batch", 0, "events or rows read at most by a pass: 1 to 50000 (default 5000, of a table the worker's page size)")
	flags.StringVar(&f.Source, "source", "", "of a worker of tables: only this source")
	flags.IntVar(&shard, "shard", 0, "of a worker of tables: only this shard")
	flags.BoolVar(&untilEmpty, "until-empty", false, "pass after pass, until nothing is left to read")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		full := 5000
		if flags.Changed("batch") {
			f.Page, full = &batch, batch
		}
		if flags.Changed("shard") {
			f.Shard = &shard
		}
		for {
			var pass store.Pass
			err := s.inTx(ctx, func(db *store.DB) (err error) {
				pass, err = db.WorkerRun(ctx, args[0], f)
				return err
			})
			if err != nil {
				return err
			}
			if err := showPass(s, pass); err != nil {
				return err
			}
			if more := pass.More || pass.Status == "ran" && (pass.Events >= full || pass.Staged > 0); !untilEmpty || !more {
				return nil
			}
		}
	})
	return cmd
}

func showPass(s *session, p store.Pass) error {
	switch {
	case s.json:
		return s.object(p.Summary)
	case len(p.Runs) > 0:
		for _, run := range p.Runs {
			if err := s.linef("%s", tablePassText(run)); err != nil {
				return err
			}
		}
		return nil
	case p.Source != "":
		return s.linef("%s", tablePassText(p))
	default:
		return s.linef("%s", passText(p))
	}
}

func passText(p store.Pass) string {
	switch p.Status {
	case "closed":
		return fmt.Sprintf("%s did not run: closed by %s", p.Worker, p.Gate)
	case "busy", "held":
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
	if p.Staged > 0 {
		line += fmt.Sprintf("; %s staged for replays", count(p.Staged, "event", "events"))
	}
	line += fmt.Sprintf("; watermark %d", p.Watermark)
	if p.BlockedBy != "" {
		line += "; it waits: too many numbers below it are open, kept so by " + p.BlockedBy
	}
	return line
}

func tablePassText(p store.Pass) string {
	name := p.Worker + " " + shardOf(p.Source, p.Shard)
	switch p.Status {
	case "ran":
	case "cut":
		return fmt.Sprintf("%s: %s: %s", name, p.Step, p.Detail)
	case "closed":
		return fmt.Sprintf("%s did not run: closed by %s", name, p.Detail)
	default:
		return fmt.Sprintf("%s did not run, %s: %s", name, p.Status, p.Detail)
	}
	line := fmt.Sprintf("%s: %s: %s, %d handed over", name, p.Step, count(p.Rows, "row", "rows"), p.Taken)
	for _, part := range []struct {
		n    int
		what string
	}{{p.Failed, "failed"}, {p.Late, "late"}, {p.Coalesced, "coalesced"}} {
		if part.n > 0 {
			line += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	line += "; " + p.Phase
	if place := watermark((*time.Time)(p.WatermarkTS), p.WatermarkID); place != "" {
		line += "; watermark " + place
	}
	if len(p.Result) > 0 && string(p.Result) != "{}" {
		line += "; " + string(p.Result)
	}
	if p.HeldBackBy != "" {
		line += "; newer rows wait for " + p.HeldBackBy
	}
	if p.BlockedBy != "" {
		line += "; it waits: too many numbers below it are open, kept so by " + p.BlockedBy
	}
	return line
}
