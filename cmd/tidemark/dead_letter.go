package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func deadLetterCommand() cli.Command {
	return cli.Command{
		Use: "dead-letter", Short: "Events and rows that failed for good, until they are replayed or discarded",
		Example: "  tidemark dead-letter list --route billing\n  tidemark dead-letter replay --route billing --dry-run",
		Sub: []cli.Command{
			deadLetterList(),
			{
				Use: "show ID", Short: "Show a dead letter and the event or row that it keeps",
				Role: "tidemark_reader", Run: deadLetterShow,
			},
			deadLetterReplay(),
			{
				Use: "discard ID", Short: "Resolve a dead letter that will never be delivered; it stays on record", Role: "tidemark_admin",
				Reason: cli.NeedsReason, Run: deadLetterDiscard,
			},
			letterJob(),
		},
	}
}

// letterFlags choose dead letters.
type letterFlags struct {
	filter store.LetterFilter
	window cli.Window
	limit  int
}

func (f *letterFlags) add(flags *pflag.FlagSet, limit int) {
	flags.StringVar(&f.filter.Route, "route", "", "only this route")
	flags.StringVar(&f.filter.Source, "source", "", "only rows of this source; outbox: only events")
	flags.StringVar(&f.filter.Code, "code", "", "only this error code")
	f.window.Add(flags, "last failed", "")
	cli.Limit(flags, &f.limit, limit)
}

func (f *letterFlags) read(s *cli.Session) (err error) {
	f.filter.Since, f.filter.Until, err = f.window.Times(s.Now)
	return err
}

func deadLetterList() cli.Command {
	var f letterFlags
	return cli.Command{
		Use: "list", Short: "List open dead letters, the latest failure first", Role: "tidemark_reader",
		Flags: func(flags *pflag.FlagSet) {
			f.add(flags, 100)
			flags.BoolVar(&f.filter.Resolved, "resolved", false, "the resolved ones too")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if err := f.read(s); err != nil {
				return err
			}
			letters, more, err := cli.Page(f.limit, func(limit int) ([]store.DeadLetter, error) {
				f.filter.Limit = limit
				return s.DeadLetters(ctx, f.filter)
			})
			if err != nil {
				return err
			}
			if more {
				defer s.Note("there are more: --limit 0 shows all")
			}
			header := "ID|ROUTE OR SOURCE|ITEM|ATTEMPTS|LAST FAILED|ERROR|DETAIL" + cli.Choose(f.filter.Resolved, "|RESOLUTION", "")
			return cli.Table(s.Printer, "no dead letters", letters, header, func(l store.DeadLetter) cli.Row {
				row := cli.Row{
					l.ID, cli.Or(l.RouteCode, l.Source), cli.Or(l.ItemID, cli.Cell(l.Seq)), l.Attempts,
					s.Age(l.LastFailedAt),
					l.ErrorCode, l.ErrorDetail, cli.Or(l.Resolution, "open"),
				}
				return row[:strings.Count(header, "|")+1]
			})
		},
	}
}

func deadLetterShow(ctx context.Context, s *cli.Session) error {
	id, err := cli.ID("dead letter", s.Arg(0))
	if err != nil {
		return err
	}
	l, err := s.LetterDetails(ctx, id)
	if err != nil {
		return err
	}
	state := "open"
	if l.ResolvedAt != nil {
		state = fmt.Sprintf("%s by %s, %s", cli.Cell(l.Resolution), cli.Cell(l.ResolvedBy), cli.Cell(l.ResolvedAt))
	}
	return s.Show(l, "dead letter", l.ID, "state", state,
		"reason", l.ResolutionReason, "route", l.RouteCode,
		"source", l.Source, "worker", l.Worker, "error", l.ErrorCode, "detail", l.ErrorDetail, "attempts", l.Attempts,
		"first failed", l.FirstFailedAt, "last failed", s.At(l.LastFailedAt), "idempotency key", l.IdempotencyKey, "event", l.EventID,
		"number", l.Seq, "row", l.ItemID, "row's time", l.ItemTS, "snapshot", cli.Or(l.EventSnapshot, cli.NoPayload))
}

func deadLetterDiscard(ctx context.Context, s *cli.Session) error {
	id, err := cli.ID("dead letter", s.Arg(0))
	if err != nil {
		return err
	}
	if err := s.DeadLetterDiscard(ctx, id, s.Reason); err != nil {
		return err
	}
	letter, err := s.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	return s.Result(letter, "dead letter %d: discarded", id)
}

// replayBatch is how many letters a transaction replays: as many as one lost connection takes back.
const replayBatch = 500

func deadLetterReplay() cli.Command {
	var f letterFlags
	var all, dryRun bool
	return cli.Command{
		Use: "replay [ID]", Short: "Try dead letters again: one, or all that the flags choose", Role: "tidemark_executor", Reason: cli.MayGiveReason,
		Long: `Try dead letters again: one, or all that the flags choose, oldest events first. Each 500 of them are a
transaction: an interrupted run keeps what it has done, and the same command tries what is still open. A run tries no
letter twice, and leaves out letters that fail for the first time after its start. From 500 letters on, the table lists
only those that are still open; JSON lists all. The exit status is 1 if some are still open.`,
		Flags: func(flags *pflag.FlagSet) {
			f.add(flags, 0)
			flags.BoolVar(&all, "all", false, "all open ones")
			flags.BoolVar(&dryRun, "dry-run", false, "deliver and write nothing; show what would happen")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			chosen := all || s.Given("route", "source", "code", "since", "until")
			switch {
			case len(s.Args) == 1 && chosen:
				return cli.Usagef("give an ID or flags that choose, not both")
			case len(s.Args) == 0 && !chosen:
				return cli.Usagef("give an ID, choose with --route, --source, --code, --since, --until, or give --all")
			}
			if err := cli.CheckLimit(f.limit); err != nil {
				return err
			}
			if err := f.read(s); err != nil {
				return err
			}
			if len(s.Args) == 0 {
				return replayMany(ctx, s, f.filter, f.limit, dryRun)
			}
			return replayOne(ctx, s, dryRun)
		},
	}
}

func replayOne(ctx context.Context, s *cli.Session, dryRun bool) error {
	id, err := cli.ID("dead letter", s.Arg(0))
	if err != nil {
		return err
	}
	one, err := cli.InTx(ctx, s, func(db *store.DB) (store.Replay, error) { return db.DeadLetterReplay(ctx, id, dryRun, s.Reason) })
	if err != nil {
		return err
	}
	if err := showReplays(s, []store.Replay{one}, dryRun); err != nil {
		return err
	}
	tally := replayTally{}
	tally.add(one)
	return tally.remaining(dryRun)
}

// replayMany replays in batches, each in the order of the events after the batch before.
func replayMany(ctx context.Context, s *cli.Session, f store.LetterFilter, limit int, dryRun bool) error {
	start, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	if f.Until.IsZero() || f.Until.After(start) {
		f.Until = start // what fails from now on, for the first time or again, is not part of this run
	}
	tally := replayTally{}
	for {
		f.Limit = replayBatch
		if limit > 0 {
			f.Limit = min(replayBatch, limit-tally.tried)
		}
		batch, err := cli.InTx(ctx, s,
			func(db *store.DB) ([]store.Replay, error) { return db.DeadLetterReplayMany(ctx, f, dryRun, s.Reason) })
		if err != nil {
			return tally.interrupted(err)
		}
		shown := batch
		if !s.JSON && !dryRun && tally.tried+len(batch) >= replayBatch {
			shown = slices.DeleteFunc(slices.Clone(batch), func(r store.Replay) bool { return !staysOpen(r.Outcome) })
		}
		if len(shown) > 0 || tally.tried+len(batch) == 0 {
			if err := showReplays(s, shown, dryRun); err != nil {
				return err
			}
		}
		tally.add(batch...)
		switch {
		case limit > 0 && tally.tried == limit:
			s.Note("stopped at the limit of %d: there may be more", limit)
			return tally.remaining(dryRun)
		case len(batch) < f.Limit:
			if tally.tried > replayBatch {
				s.Note("%s: %s", cli.Count(tally.tried, "dead letter"), tally)
			}
			return tally.remaining(dryRun)
		}
		s.Note("%d so far: %s", tally.tried, tally)
		f.After = batch[len(batch)-1].ID
	}
}

func showReplays(s *cli.Session, replays []store.Replay, dryRun bool) error {
	header := "ID|ROUTE OR SOURCE|ITEM|ATTEMPT|" + cli.Choose(dryRun, "WOULD BE", "OUTCOME") + "|REASON|DETAIL"
	return cli.Table(s.Printer, "no open dead letters were chosen", replays, header, func(r store.Replay) cli.Row {
		return cli.Row{
			r.ID, cli.Or(r.RouteCode, r.Source), cli.Or(r.EventID, cli.Cell(r.ItemID)), r.AttemptNo,
			r.Outcome, r.Reason, r.Detail,
		}
	})
}

// replayTally counts the outcomes of replays.
type replayTally struct {
	tried    int
	outcomes [6]int // in the order of replayOutcomes
}

// replayOutcomes are the outcomes, those that resolve a letter first.
var replayOutcomes = []string{"sent", "dry_run", "pending", "failed", "disabled", "skipped"}

// staysOpen: a replay with this outcome neither resolves its letter nor leaves it pending.
func staysOpen(outcome string) bool { return slices.Index(replayOutcomes, outcome) >= 3 }

func (t *replayTally) add(replays ...store.Replay) {
	for _, r := range replays {
		t.tried++
		if i := slices.Index(replayOutcomes, r.Outcome); i >= 0 {
			t.outcomes[i]++
		}
	}
}

func (t replayTally) String() string { return t.list(0) }

func (t replayTally) list(from int) string {
	var parts []string
	for i, n := range t.outcomes {
		if n > 0 && i >= from {
			again := cli.Choose(from > 0 && replayOutcomes[i] == "failed", " again", "")
			parts = append(parts, fmt.Sprintf("%d %s%s", n, replayOutcomes[i], again))
		}
	}
	return strings.Join(parts, ", ")
}

// remaining is the error of a run that leaves letters open.
func (t replayTally) remaining(dryRun bool) error {
	open := t.outcomes[3] + t.outcomes[4] + t.outcomes[5]
	if dryRun || open == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s still open: %s", open, cli.Count(t.tried, "dead letter"), t.list(3))
}

// interrupted adds to err what was done before it.
func (t replayTally) interrupted(err error) error {
	if t.tried == 0 {
		return err
	}
	return fmt.Errorf("%w (%d were replayed before it and stay so: %s; the same command tries those that are still open)", err, t.tried, t)
}
