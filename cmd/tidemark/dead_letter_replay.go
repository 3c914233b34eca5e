package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// replayBatch is how many letters a transaction replays: what one lost connection takes back.
const replayBatch = 500

func newDeadLetterReplay(a *app) *cobra.Command {
	var f letterFlags
	var all, dryRun bool
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "replay [ID]",
		Short: "Try dead letters again: one, or all that flags choose",
		Long: `Try dead letters again: one, or all that flags choose, oldest events first. Each 500 of them are a transaction of
their own: what is interrupted keeps what it has done, and the same command goes on with the rest. A letter that
fails again is not tried twice in one run; letters that fail for the first time after the start are not in it.
Of 500 and more the table shows only those that are still open, JSON shows all. Exit status 1: some are still open.`,
	})
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "all open ones")
	flags.IntVar(&f.filter.Limit, "limit", 0, "at most so many; 0: all that are chosen")
	flags.BoolVar(&dryRun, "dry-run", false, "deliver and write nothing; tell what would happen")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		chosen := all || flags.Changed("route") || flags.Changed("source") || flags.Changed("code") || flags.Changed("since") || flags.Changed("until")
		switch {
		case len(args) == 1 && chosen:
			return usagef("give an ID or flags that choose, not both")
		case len(args) == 0 && !chosen:
			return usagef("give an ID, choose with --route, --source, --code, --since, --until, or give --all")
		}
		filter, err := f.read(s)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return replayMany(ctx, s, filter, dryRun)
		}
		return replayOne(ctx, s, args[0], dryRun)
	})
	return cmd
}

func replayOne(ctx context.Context, s *session, arg string, dryRun bool) error {
	id, err := letterID(arg)
	if err != nil {
		return err
	}
	var one store.Replay
	err = s.inTx(ctx, func(db *store.DB) error {
		one, err = db.DeadLetterReplay(ctx, id, dryRun)
		return err
	})
	if err != nil {
		return err
	}
	if err := showReplays(s, []store.Replay{one}, dryRun); err != nil {
		return err
	}
	var tally replayTally
	tally.add(one)
	return tally.remaining(dryRun)
}

// replayMany replays in batches, each in the order of the events behind the one before.
func replayMany(ctx context.Context, s *session, f store.LetterFilter, dryRun bool) error {
	limit := f.Limit
	start, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	if f.Until.IsZero() || f.Until.After(start) {
		f.Until = start // what fails from now on, for the first time or again, is not part of this run
	}
	tally := &replayTally{}
	for {
		f.Limit = replayBatch
		if limit > 0 {
			f.Limit = min(replayBatch, limit-tally.tried)
		}
		var batch []store.Replay
		err := s.inTx(ctx, func(db *store.DB) (err error) {
			batch, err = db.DeadLetterReplayMany(ctx, f, dryRun)
			return err
		})
		if err != nil {
			return tally.interrupted(err)
		}
		shown := batch
		if !s.json && !dryRun && tally.tried+len(batch) >= replayBatch {
			shown = slices.DeleteFunc(slices.Clone(batch), func(r store.Replay) bool { return !staysOpen(r.Outcome) })
		}
		if len(shown) > 0 || tally.tried+len(batch) == 0 {
			if err := showReplays(s, shown, dryRun); err != nil {
				return err
			}
		}
		tally.add(batch...)
		full := len(batch) == f.Limit
		switch {
		case limit > 0 && tally.tried == limit:
			s.note("stopped at the limit of %d: there may be more", limit)
			return tally.remaining(dryRun)
		case !full:
			if tally.tried > replayBatch {
				s.note("%s: %s", count(tally.tried, "dead letter", "dead letters"), tally)
			}
			return tally.remaining(dryRun)
		}
		s.note("%d so far: %s", tally.tried, tally)
		f.After = batch[len(batch)-1].ID
	}
}

func showReplays(s *session, replays []store.Replay, dryRun bool) error {
	type r = store.Replay
	outcome := "OUTCOME"
	if dryRun {
		outcome = "WOULD BE"
	}
	return rows(s.printer, "no open dead letters were chosen", replays,
		column[r]{"ID", func(r r) string { return number(r.ID) }},
		column[r]{"ROUTE OR SOURCE", func(r r) string { return routeOrSource(r.RouteCode, r.Source) }},
		column[r]{"ITEM", func(r r) string { return firstOf(text(r.EventID), text(r.ItemID)) }},
		column[r]{"ATTEMPT", func(r r) string { return number(r.AttemptNo) }},
		column[r]{outcome, func(r r) string { return r.Outcome }},
		column[r]{"REASON", func(r r) string { return text(r.Reason) }},
		column[r]{"DETAIL", func(r r) string { return text(r.Detail) }})
}

// replayTally counts what replays came to.
type replayTally struct {
	tried    int
	outcomes map[string]int
}

func (t *replayTally) add(replays ...store.Replay) {
	if t.outcomes == nil {
		t.outcomes = map[string]int{}
	}
	for _, r := range replays {
		t.tried++
		t.outcomes[r.Outcome]++
	}
}

// String names the outcomes, those that resolve a letter first.
func (t *replayTally) String() string {
	return tell(t.outcomes, "sent", "dry_run", "pending", "failed", "disabled", "skipped")
}

// staysOpen: a replay with this outcome neither resolves its letter nor is on its way.
func staysOpen(outcome string) bool {
	return outcome == "failed" || outcome == "disabled" || outcome == "skipped"
}

// remaining is the error of a run after which some of its letters are open and not on
// their way.
func (t *replayTally) remaining(dryRun bool) error {
	open, n := map[string]int{}, 0
	for outcome, letters := range t.outcomes {
		if staysOpen(outcome) {
			n += letters
			if outcome == "failed" {
				outcome = "failed again"
			}
			open[outcome] = letters
		}
	}
	if dryRun || n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s still open: %s", n, count(t.tried, "dead letter", "dead letters"), tell(open, "failed again", "disabled", "skipped"))
}

// interrupted is err, with what was done before it.
func (t *replayTally) interrupted(err error) error {
	if t.tried == 0 {
		return err
	}
	return fmt.Errorf("%w (%d were replayed before it and stay so: %s; the same command goes on with the rest)", err, t.tried, t)
}

// tell writes counts that are not 0, in the order of names.
func tell(counts map[string]int, names ...string) string {
	var parts []string
	for _, name := range names {
		if n := counts[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(parts, ", ")
}
