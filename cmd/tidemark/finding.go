package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newFinding(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "finding", Short: "What needs somebody's attention"}
	cmd.AddCommand(newFindingList(a), newFindingShow(a), newFindingAck(a))
	return cmd
}

func newFindingList(a *app) *cobra.Command {
	var closed bool
	var limit int
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List open findings, worst first",
	})
	cmd.Flags().BoolVar(&closed, "closed", false, "those that are over instead, newest first")
	cmd.Flags().IntVar(&limit, "limit", 100, "of the closed ones at most so many; 0: all")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, _ []string) error {
		if limit < 0 {
			return usagef("--limit must not be negative")
		}
		all, err := s.OpenFindings(ctx)
		if closed {
			all, err = s.ClosedFindings(ctx, limit)
		}
		if err != nil {
			return err
		}
		return findingTable(s, all)
	})
	return cmd
}

func findingTable(s *session, all []store.Finding) error {
	type f = store.Finding
	return rows(s.printer, "no findings", all,
		column[f]{"SEVERITY", func(f f) string { return f.Severity }},
		column[f]{"ID", func(f f) string { return number(f.ID) }},
		column[f]{"FINDING", func(f f) string { return f.Kind }},
		column[f]{"SUBJECT", func(f f) string { return f.Subject }},
		column[f]{"OPENED", func(f f) string { return s.age(f.OpenedAt) }},
		column[f]{"SEEN", func(f f) string { return count(int(f.Count), "time", "times") }},
		column[f]{"STATE", func(f f) string {
			switch {
			case f.ClosedAt != nil:
				return "closed " + s.age(*f.ClosedAt)
			case f.AckedBy != nil:
				return "acked by " + *f.AckedBy
			default:
				return "open"
			}
		}},
		column[f]{"DETAIL", func(f f) string { return cut(f.Detail, 100) }})
}

func newFindingShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show ID",
		Short: "Show a finding, what it means and what to do",
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			id, err := findingID(args[0])
			if err != nil {
				return err
			}
			f, err := s.Finding(ctx, id)
			if err != nil {
				return err
			}
			return findingShow(s, f)
		}),
	})
}

func findingShow(s *session, f store.Finding) error {
	if s.json {
		return s.object(f)
	}
	state, acked := "open", ""
	if f.ClosedAt != nil {
		state = "closed " + utc(*f.ClosedAt)
	}
	if f.AckedAt != nil {
		acked = text(f.AckedBy) + ", " + utc(*f.AckedAt) + ": " + text(f.AckNote)
	}
	e := explain(f.Kind)
	return s.facts(
		fact{"finding", number(f.ID)}, fact{"kind", f.Kind}, fact{"subject", f.Subject}, fact{"severity", f.Severity}, fact{"state", state},
		fact{"opened", utc(f.OpenedAt) + ", " + s.age(f.OpenedAt)}, fact{"last seen", utc(f.LastSeenAt) + ", " + s.age(f.LastSeenAt)},
		fact{"seen", count(int(f.Count), "time", "times")}, fact{"acknowledged", acked}, fact{"detail", f.Detail},
		fact{"means", e.means}, fact{"do", e.do}, fact{"next", e.command(f.Subject)})
}

func newFindingAck(a *app) *cobra.Command {
	var note string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "ack ID",
		Short: "Say that somebody knows of a finding; it stays open until it is over",
	})
	cmd.Flags().StringVar(&note, "note", "", "who looks after it, or why it may stay; goes to the audit")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		id, err := findingID(args[0])
		if err != nil {
			return err
		}
		if strings.TrimSpace(note) == "" {
			return usagef("--note is needed: others read it")
		}
		f, err := s.FindingAck(ctx, id, note)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(f)
		}
		return s.linef("finding %d: acknowledged by %s, still open", f.ID, text(f.AckedBy))
	})
	return cmd
}

func findingID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usagef("%q is not the number of a finding", text)
	}
	return id, nil
}
