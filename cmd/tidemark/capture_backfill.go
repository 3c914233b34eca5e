package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func captureBackfill() cli.Command {
	var eventType string
	var page int
	var cancel bool
	return cli.Command{
		Use: "backfill TABLE", Short: "Make the rows of a captured table events, before and between those of its changes", Role: "tidemark_admin",
		Reason: cli.MayGiveReason,
		Long: `Make the rows that a captured table has events of the type, in the order of the primary key, each with the row as it
is at that moment (operation read). A row that was written since the beginning has an event of its own and is left out.
Among the events of a row each stands where it belongs: applied in their order they give the table.

Run it as the table's owner. It locks the rows of a page against writers for the moment of one transaction. Stop it
whenever you like: the same command goes on where it was. --cancel gives it up.`,
		Example: "  tidemark capture backfill public.orders --type order.row --reason 'new search'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&eventType, "type", "", "type of the events, in the domain of the inbound route for inserts")
			flags.IntVar(&page, "page", 1000, "how many rows to lock and emit at a time; up to 10000")
			flags.BoolVar(&cancel, "cancel", false, "give the backfill up where it is; its events stay")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			b, err := s.OpenBackfill(ctx, s.Arg(0))
			if err != nil {
				return err
			}
			switch {
			case cancel && b == nil:
				return cli.Hint(fmt.Errorf("no backfill of %s is under way", s.Arg(0)),
					"A table that is gone is named with its schema, as in tidemark.capture_backfill.")
			case cancel:
				if err := s.CaptureBackfillCancel(ctx, b.ID, s.Reason); err != nil {
					return err
				}
				return s.Result(cli.Fields{"table", b.Name, "cancelled", true, "rows", b.Rows}, "%s: cancelled after %s", b.Name, cli.Count(b.Rows, "row"))
			case b == nil && eventType == "":
				return cli.Usagef("--type: what events are the rows?")
			case b == nil:
				if err := s.NeedReason(); err != nil {
					return err
				}
				if b, err = beginBackfill(ctx, s, eventType); err != nil {
					return err
				}
			case eventType != "" && eventType != b.Type:
				return fmt.Errorf("a backfill of %s with type %s is under way: leave --type out, or cancel it", b.Name, b.Type)
			}
			return runBackfill(ctx, s, b, page)
		},
	}
}

func beginBackfill(ctx context.Context, s *cli.Session, eventType string) (*store.Backfill, error) {
	if err := s.RetryWhileBusy(ctx, s.Arg(0), func() error { return s.CaptureBackfillBegin(ctx, s.Arg(0), eventType, s.Reason) }); err != nil {
		return nil, err
	}
	return s.OpenBackfill(ctx, s.Arg(0))
}

// runBackfill goes on until no row is left or it is told to stop.
func runBackfill(ctx context.Context, s *cli.Session, b *store.Backfill, page int) error {
	const pause, every = time.Second, 10 * time.Second
	told := time.Now()
	for {
		done, err := s.CaptureBackfillStep(ctx, b.ID, page)
		switch {
		case store.HasCode(err, "40001"): // a writer has moved a row of the page to another partition: the next step finds it there
		case store.HasCode(err, "55P03"): // a writer has a row of the page: wait for it outside, where it waits for nothing of ours
			busy := "a row is locked"
			if blame, err := s.LockBlame(ctx, s.Arg(0)); err == nil && blame != "" {
				busy += ", held by " + blame
			}
			s.Note("%s; trying again", busy)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil:
			b.Rows, b.LeftOut = b.Rows+done.Emitted, b.LeftOut+done.LeftOut
			if done.Complete {
				return s.Result(cli.Fields{"table", b.Name, "rows", b.Rows, "left_out", b.LeftOut, "complete", true},
					"%s: %s, and %d left out that changed meanwhile", b.Name, cli.Count(b.Rows, "row"), b.LeftOut)
			}
		}
		if err := ctx.Err(); err != nil {
			return cli.Hint(fmt.Errorf("stopped after %s: %w", cli.Count(b.Rows, "row"), err), "The same command goes on there.")
		}
		if time.Since(told) >= every {
			s.Note("%s: %s", b.Name, cli.Count(b.Rows, "row"))
			told = time.Now()
		}
	}
}
