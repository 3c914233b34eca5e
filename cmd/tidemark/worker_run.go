package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func workerRun() cli.Command {
	var f store.RunFilter
	var batch, shard int
	var untilEmpty bool
	return cli.Command{
		Use: "run WORKER", Short: "Run one pass of a worker, in a transaction", Role: "tidemark_executor",
		Example: "  tidemark worker run default --until-empty",
		Flags: func(flags *pflag.FlagSet) {
			flags.IntVar(&batch, "batch", 0,
				"events or rows that a pass reads at most: 1 to 50000 (default 5000; of a table the worker's page size)")
			flags.StringVar(&f.Source, "source", "", "of a worker of tables: only this source")
			flags.IntVar(&shard, "shard", 0, "only this shard")
			flags.BoolVar(&untilEmpty, "until-empty", false, "run passes until nothing is left to read")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			full := 5000
			if s.Given("batch") {
				f.Page, full = &batch, batch
			}
			if s.Given("shard") {
				f.Shard = &shard
			}
			for {
				pass, err := cli.InTx(ctx, s, func(db *store.DB) (store.Pass, error) { return db.WorkerRun(ctx, s.Arg(0), f) })
				if err != nil {
					return err
				}
				showPass(s, pass)
				more := pass.More || pass.Status == "ran" && (pass.Events >= full || pass.Staged > 0)
				if !untilEmpty || !more {
					return nil
				}
			}
		},
	}
}

func showPass(s *cli.Session, p store.Pass) {
	switch {
	case s.JSON:
		s.Object(p.Summary)
	case len(p.Runs) > 0:
		for _, run := range p.Runs {
			if run.Source == "outbox" {
				run.Worker += " " + cli.Shard(run.Source, run.Shard)
				s.Line("%s", passText(run))
			} else {
				s.Line("%s", tablePassText(run))
			}
		}
	case p.Source != "":
		s.Line("%s", tablePassText(p))
	default:
		s.Line("%s", passText(p))
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
	line := fmt.Sprintf("%s: %s", p.Worker, cli.Count(p.Events, "event"))
	if p.Late > 0 {
		line += fmt.Sprintf(", %d of them late", p.Late)
	}
	if len(decided) > 0 {
		line += "; " + strings.Join(decided, ", ")
	}
	if p.Fallbacks > 0 {
		line += fmt.Sprintf("; %s", cli.Count(p.Fallbacks, "statement failed and was split",
			"statements failed and were split"))
	}
	if p.Staged > 0 {
		line += fmt.Sprintf("; %s staged for replays", cli.Count(p.Staged, "event"))
	}
	line += fmt.Sprintf("; watermark %d", p.Watermark)
	if p.BlockedBy != "" {
		line += "; it waits: too many numbers below it are kept open by " + p.BlockedBy
	}
	return line
}

func tablePassText(p store.Pass) string {
	name := p.Worker + " " + cli.Shard(p.Source, p.Shard)
	switch p.Status {
	case "ran":
	case "cut":
		return fmt.Sprintf("%s: %s: %s", name, p.Step, p.Detail)
	case "closed":
		return fmt.Sprintf("%s did not run: closed by %s", name, p.Detail)
	default:
		return fmt.Sprintf("%s did not run, %s: %s", name, p.Status, p.Detail)
	}
	line := fmt.Sprintf("%s: %s: %s, %d handed over", name, p.Step, cli.Count(p.Rows, "row"), p.Taken)
	for _, part := range []struct {
		n    int
		what string
	}{{p.Failed, "failed"}, {p.Late, "late"}, {p.Coalesced, "coalesced"}} {
		if part.n > 0 {
			line += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	line += "; " + p.Phase
	if place := cli.Watermark((*time.Time)(p.WatermarkTS), p.WatermarkID); place != "" {
		line += "; watermark " + place
	}
	if len(p.Result) > 0 && string(p.Result) != "{}" {
		line += "; " + string(p.Result)
	}
	if p.HeldBackBy != "" {
		line += "; newer rows wait for " + p.HeldBackBy
	}
	if p.BlockedBy != "" {
		line += "; it waits: too many numbers below it are kept open by " + p.BlockedBy
	}
	return line
}
