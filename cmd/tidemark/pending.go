package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func pendingCommand() cli.Command {
	var f store.PendingFilter
	var limit int
	return cli.Command{
		Use: "pending", Short: "Events and rows that wait for another attempt", Example: "  tidemark pending list --route billing",
		Sub: []cli.Command{{
			Use: "list", Short: "List what waits, why, and until when; the next to be due first", Role: "tidemark_reader",
			Flags: func(flags *pflag.FlagSet) {
				flags.StringVar(&f.Worker, "worker", "", "only this worker")
				flags.StringVar(&f.Route, "route", "", "only events on this route")
				flags.StringVar(&f.Source, "source", "", "only rows of this source; outbox: only events")
				cli.Limit(flags, &limit, 100)
			},
			Run: func(ctx context.Context, s *cli.Session) error {
				all, more, err := cli.Page(limit, func(limit int) ([]store.PendingItem, error) {
					f.Limit = limit
					return s.Pending(ctx, f)
				})
				if err != nil {
					return err
				}
				if more {
					defer s.Note("there are more: --limit 0 shows all")
				}
				return cli.Table(s.Printer, "nothing waits", all, "WORKER|ROUTE OR SOURCE|ITEM|FAILED|NEXT|WHY",
					func(p store.PendingItem) cli.Row {
						return cli.Row{
							p.Worker, cli.Or(p.RouteCode, p.Source), p.Item, p.ErrorCount, nextAttempt(s, p),
							p.LastError,
						}
					})
			},
		}, pendingRetry(), pendingDiscard()},
	}
}

// waitingFlags choose what waits.
func waitingFlags(flags *pflag.FlagSet, w *store.WaitingItem) {
	flags.StringVar(&w.Route, "route", "", "the route of an event")
	flags.StringVar(&w.Worker, "worker", "", "the worker of a row, with --source")
	flags.StringVar(&w.Source, "source", "", "the source of a row")
}

func pendingRetry() cli.Command {
	var w store.WaitingItem
	var after time.Duration
	return cli.Command{
		Use: "retry [ITEM]", Short: "Let what waits be tried now: an event, a row, or all of a route or source", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Let what waits for another attempt be tried now: an event (its number or id, with --route), a row (its id, with --worker and
--source), or without ITEM all that waits there after a failure. With --after it parks one of them for that long; later events of its key
wait behind it. A breaker that is open counts as before: the daemon tries one event now and then.`,
		Example: "  tidemark pending retry --route billing --reason 'the target is up again'\n  tidemark pending retry 4711 --route billing --after 6h --reason 'maintenance until six'",
		Flags: func(flags *pflag.FlagSet) {
			waitingFlags(flags, &w)
			flags.DurationVar(&after, "after", 0, "park it: try it no sooner than this long from now, such as 6h")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			var due time.Time
			if s.Given("after") {
				due = s.Now.Add(after)
			}
			if len(s.Args) > 0 {
				w.Item = s.Arg(0)
			}
			all := int64(0)
			for {
				n, err := s.PendingRetry(ctx, w, due, s.Reason)
				if err != nil {
					return cli.EventName(err, w.Item)
				}
				if all += n; n < 10_000 {
					break
				}
			}
			return s.Result(cli.Fields{"deliveries", all}, "%s due %s", cli.Count(all, "delivery", "deliveries"), cli.Or(due, "now"))
		},
	}
}

func pendingDiscard() cli.Command {
	var w store.WaitingItem
	return cli.Command{
		Use: "discard ITEM", Short: "Give up an event or row that waits: it becomes a dead letter", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Give up an event (its number or id, with --route) or a row (its id, with --worker and --source) that waits for another attempt.
It has failed for good: the evidence says given_up, a dead letter keeps it, and the next event of its key is due.`,
		Example: "  tidemark pending discard 4711 --route billing --reason 'the order was cancelled'",
		Flags:   func(flags *pflag.FlagSet) { waitingFlags(flags, &w) },
		Run: func(ctx context.Context, s *cli.Session) error {
			w.Item = s.Arg(0)
			letter, err := cli.InTx(ctx, s, func(db *store.DB) (store.DeadLetter, error) { return db.PendingDiscard(ctx, w, s.Reason) })
			if err != nil {
				return cli.EventName(err, w.Item)
			}
			return s.Result(letter, "%s: given up, dead letter %d", w.Item, letter.ID)
		},
	}
}

func nextAttempt(s *cli.Session, p store.PendingItem) string {
	switch {
	case p.Held:
		return "when its domain's gate is open"
	case p.Behind != nil:
		return fmt.Sprintf("behind event %d", *p.Behind)
	case p.NextAttemptAt == nil:
		return "behind an earlier one of its key"
	case p.NextAttemptAt.After(s.Now):
		return cli.Cell(p.NextAttemptAt)
	}
	return "due"
}
