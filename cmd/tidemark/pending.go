package main

import (
	"context"

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
							cli.Cut(cli.Cell(p.LastError), 60),
						}
					})
			},
		}},
	}
}

func nextAttempt(s *cli.Session, p store.PendingItem) string {
	switch {
	case p.Held:
		return "when its domain's gate is open"
	case p.NextAttemptAt == nil:
		return "behind an earlier one of its key"
	case p.NextAttemptAt.After(s.Now):
		return cli.Cell(p.NextAttemptAt)
	}
	return "due"
}
