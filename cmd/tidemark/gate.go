package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newGate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "The switches that workers obey within a second",
		Long: `The switches that workers obey within a second: routes.enabled for all of them, and
worker.NAME.enabled for each. Both must be open for a worker to run. A fresh one is closed.
domain.NAME.enabled is for the events of one domain: while it is closed they wait, and the others go on. A domain
has such a gate once it was opened or closed for the first time.`,
	}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{Use: "list", Short: "List gates", RunE: a.withSchema(gateList)}),
		newGateSet(a, "open", "Open a gate", true),
		newGateSet(a, "close", "Close a gate", false),
	)
	return cmd
}

func gateList(ctx context.Context, s *session, _ []string) error {
	gates, err := s.Gates(ctx)
	if err != nil {
		return err
	}
	type g = store.Gate
	return rows(s.printer, "no gates", gates,
		column[g]{"GATE", func(g g) string { return g.Gate }},
		column[g]{"STATE", func(g g) string { return openOrClosed(g.Open) }},
		column[g]{"CHANGED", func(g g) string { return s.ageOr(g.ChangedAt, "never") }},
		column[g]{"BY", func(g g) string { return text(g.ChangedBy) }},
		column[g]{"REASON", func(g g) string { return text(g.Reason) }})
}

func openOrClosed(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

func newGateSet(a *app, name, short string, open bool) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   name + " GATE",
		Short: short,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			err := s.inTx(ctx, func(db *store.DB) error {
				if err := db.GateSet(ctx, args[0], open, reason); err != nil || !open {
					return err
				}
				return tellOutlooks(ctx, s, db, args[0])
			})
			if err != nil {
				return err
			}
			if s.json {
				return s.object(struct {
					Gate string `json:"gate"`
					Open bool   `json:"open"`
				}{args[0], open})
			}
			return s.linef("gate %s: %s", args[0], openOrClosed(open))
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}
