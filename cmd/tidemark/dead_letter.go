package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newDeadLetter(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "dead-letter", Short: "Events that could not be routed or delivered, and rows that could not be handled"}
	cmd.AddCommand(newDeadLetterList(a), newDeadLetterShow(a), newDeadLetterReplay(a), newDeadLetterDiscard(a))
	return cmd
}

// letterFlags choose dead letters.
type letterFlags struct {
	filter       store.LetterFilter
	since, until string
}

func (f *letterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Route, "route", "", "only this route")
	flags.StringVar(&f.filter.Source, "source", "", "only rows of this source; outbox: only events")
	flags.StringVar(&f.filter.Code, "code", "", "only this error code")
	flags.StringVar(&f.since, "since", "", "last failed at this time or later: RFC 3339, or how long ago (90m, 24h, 7d)")
	flags.StringVar(&f.until, "until", "", "last failed before this time")
}

func (f *letterFlags) read(s *session) (_ store.LetterFilter, err error) {
	if f.filter.Limit < 0 {
		return f.filter, usagef("--limit must not be negative")
	}
	if f.filter.Since, err = when("since", f.since, s.now); err != nil {
		return f.filter, err
	}
	f.filter.Until, err = when("until", f.until, s.now)
	return f.filter, err
}

func newDeadLetterList(a *app) *cobra.Command {
	var f letterFlags
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List open dead letters, those that failed last first",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			filter, err := f.read(s)
			if err != nil {
				return err
			}
			return deadLetterList(ctx, s, filter)
		}),
	})
	f.add(cmd)
	cmd.Flags().BoolVar(&f.filter.Resolved, "resolved", false, "the resolved ones too")
	cmd.Flags().IntVar(&f.filter.Limit, "limit", 100, "at most so many; 0: all")
	return cmd
}

func deadLetterList(ctx context.Context, s *session, f store.LetterFilter) error {
	limit := f.Limit
	if limit > 0 {
		f.Limit++
	}
	letters, err := s.DeadLetters(ctx, f)
	if err != nil {
		return err
	}
	more := limit > 0 && len(letters) > limit
	if more {
		letters = letters[:limit]
	}
	type l = store.DeadLetter
	columns := []column[l]{
		{"ID", func(l l) string { return number(l.ID) }},
		{"ROUTE OR SOURCE", func(l l) string { return routeOrSource(l.RouteCode, l.Source) }},
		{"ITEM", func(l l) string { return firstOf(text(l.ItemID), optional(l.Seq)) }},
		{"ATTEMPTS", func(l l) string { return number(l.Attempts) }},
		{"LAST FAILED", func(l l) string { return s.age(l.LastFailedAt) }},
		{"ERROR", func(l l) string { return l.ErrorCode }},
		{"DETAIL", func(l l) string { return cut(text(l.ErrorDetail), 60) }},
	}
	if f.Resolved {
		columns = append(columns, column[l]{"RESOLUTION", func(l l) string { return firstOf(text(l.Resolution), "open") }})
	}
	err = rows(s.printer, "no dead letters", letters, columns...)
	if err == nil && more {
		s.note("there are more: --limit 0 shows all")
	}
	return err
}

// routeOrSource is where a thing that failed was on its way to, or came from.
func routeOrSource(route *string, source string) string {
	if route == nil {
		return source
	}
	return *route
}

func newDeadLetterShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show ID",
		Short: "Show a dead letter and the event or row that it keeps",
		RunE:  a.withSchema(deadLetterShow),
	})
}

// letterDetails is the JSON of `dead-letter show`.
type letterDetails struct {
	store.DeadLetter
	EventSnapshot json.RawMessage `json:"event_snapshot"` // null: not for this role
}

func deadLetterShow(ctx context.Context, s *session, args []string) error {
	id, err := letterID(args[0])
	if err != nil {
		return err
	}
	letter, err := s.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	snapshot, err := s.DeadLetterSnapshot(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(letterDetails{letter, snapshot})
	}
	shown := string(snapshot)
	if snapshot == nil {
		shown = "(not for your role, which is not in tidemark_admin)"
	}
	resolution := "open"
	if letter.ResolvedAt != nil {
		resolution = fmt.Sprintf("%s by %s, %s", text(letter.Resolution), text(letter.ResolvedBy), utc(*letter.ResolvedAt))
	}
	return s.facts(
		fact{"dead letter", number(letter.ID)}, fact{"state", resolution}, fact{"reason", text(letter.ResolutionReason)},
		fact{"route", text(letter.RouteCode)}, fact{"source", letter.Source}, fact{"worker", letter.Worker},
		fact{"error", letter.ErrorCode}, fact{"detail", text(letter.ErrorDetail)}, fact{"attempts", number(letter.Attempts)},
		fact{"first failed", utc(letter.FirstFailedAt)}, fact{"last failed", utc(letter.LastFailedAt) + ", " + s.age(letter.LastFailedAt)},
		fact{"idempotency key", letter.IdempotencyKey}, fact{"event", text(letter.EventID)}, fact{"number", optional(letter.Seq)},
		fact{"row", text(letter.ItemID)}, fact{"row's time", utcOr(letter.ItemTS, "")},
		fact{"snapshot", shown})
}

func letterID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usagef("%q is not the number of a dead letter", text)
	}
	return id, nil
}

func newDeadLetterDiscard(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "discard ID",
		Short: "Resolve a dead letter that will never be delivered; it stays on record",
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			id, err := letterID(args[0])
			if err != nil {
				return err
			}
			if err := needReason(reason); err != nil {
				return err
			}
			if err := s.DeadLetterDiscard(ctx, id, reason); err != nil {
				return err
			}
			if s.json {
				letter, err := s.DeadLetter(ctx, id)
				if err != nil {
					return err
				}
				return s.object(letter)
			}
			return s.linef("dead letter %d: discarded", id)
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}
