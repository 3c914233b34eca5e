package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func findingCommand() cli.Command {
	return cli.Command{
		Use: "finding", Short: "Problems that Tidemark has found", Example: "  tidemark finding list",
		Sub: []cli.Command{findingList(), {
			Use: "show ID", Short: "Show a finding, what it means and what to do",
			Role: "tidemark_reader", Run: findingShow,
		}, findingAck()},
	}
}

func findingList() cli.Command {
	var closed bool
	var limit int
	return cli.Command{
		Use: "list", Short: "List open findings, worst first", Role: "tidemark_reader",
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&closed, "closed", false, "the closed ones instead, newest first")
			flags.IntVar(&limit, "limit", 100, "of the closed ones at most this many; 0: all")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if err := cli.CheckLimit(limit); err != nil {
				return err
			}
			var all []store.Finding
			var err error
			if closed {
				all, err = s.ClosedFindings(ctx, nil, limit)
			} else {
				all, err = s.OpenFindings(ctx, nil, 0)
			}
			if err != nil {
				return err
			}
			return cli.FindingTable(s, all)
		},
	}
}

func findingShow(ctx context.Context, s *cli.Session) error {
	id, err := cli.ID("finding", s.Arg(0))
	if err != nil {
		return err
	}
	f, err := s.Finding(ctx, id)
	if err != nil {
		return err
	}
	state, acked := "open", ""
	if f.ClosedAt != nil {
		state = "closed " + cli.Cell(f.ClosedAt)
	}
	if f.AckedAt != nil {
		acked = cli.Cell(f.AckedBy) + ", " + cli.Cell(f.AckedAt) + ": " + cli.Cell(f.AckNote)
	}
	e, err := s.Explain(ctx, f.Kind, f.Subject)
	if err != nil {
		return err
	}
	return s.Show(f, "finding", f.ID, "kind", f.Kind, "subject", f.Subject, "severity", f.Severity, "state", state,
		"opened", s.At(f.OpenedAt),
		"last seen", s.At(f.LastSeenAt), "seen", cli.Count(f.Count, "time"), "acknowledged", acked, "detail", f.Detail,
		"means", e.Means, "do", e.Todo, "next", strings.Join(e.CLI, "; "))
}

func findingAck() cli.Command {
	var note string
	return cli.Command{
		Use: "ack ID", Short: "Acknowledge a finding; it stays open until the problem is over", Role: "tidemark_admin",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&note, "note", "", "who deals with it, or why it may stay; the audit records it (required)")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			id, err := cli.ID("finding", s.Arg(0))
			if err != nil {
				return err
			}
			if strings.TrimSpace(note) == "" {
				return cli.Usagef("--note is required: your colleagues read it")
			}
			f, err := s.FindingAck(ctx, id, note)
			if err != nil {
				return err
			}
			return s.Result(f, "finding %d: acknowledged by %s, still open", f.ID, cli.Cell(f.AckedBy))
		},
	}
}
