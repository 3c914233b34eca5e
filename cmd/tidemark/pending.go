package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newPending(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "pending", Short: "Events and rows that wait for another attempt"}
	cmd.AddCommand(newPendingList(a))
	return cmd
}

func newPendingList(a *app) *cobra.Command {
	var f store.PendingFilter
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List what waits, why and until when; what is due first first",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			if f.Limit < 0 {
				return usagef("--limit must not be negative")
			}
			return pendingList(ctx, s, f)
		}),
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Worker, "worker", "", "only of this worker")
	flags.StringVar(&f.Route, "route", "", "only events on this route")
	flags.StringVar(&f.Source, "source", "", "only rows of this source; outbox: only events")
	flags.IntVar(&f.Limit, "limit", 100, "at most so many; 0: all")
	return cmd
}

func pendingList(ctx context.Context, s *session, f store.PendingFilter) error {
	limit := f.Limit
	if limit > 0 {
		f.Limit++
	}
	all, err := s.Pending(ctx, f)
	if err != nil {
		return err
	}
	more := limit > 0 && len(all) > limit
	if more {
		all = all[:limit]
	}
	type p = store.PendingItem
	err = rows(s.printer, "nothing waits", all,
		column[p]{"WORKER", func(p p) string { return p.Worker }},
		column[p]{"ROUTE OR SOURCE", func(p p) string { return routeOrSource(p.RouteCode, p.Source) }},
		column[p]{"ITEM", func(p p) string { return p.Item }},
		column[p]{"FAILED", func(p p) string { return number(p.ErrorCount) }},
		column[p]{"NEXT", func(p p) string { return nextAttempt(s, p) }},
		column[p]{"WHY", func(p p) string { return cut(text(p.LastError), 60) }})
	if err == nil && more {
		s.note("there are more: --limit 0 shows all")
	}
	return err
}

func nextAttempt(s *session, p store.PendingItem) string {
	switch {
	case p.Held:
		return "when its domain's gate is open"
	case p.NextAttemptAt == nil:
		return "behind an earlier one of its key"
	case p.NextAttemptAt.After(s.now):
		return utc(*p.NextAttemptAt)
	default:
		return "due"
	}
}
