package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func gateCommand() cli.Command {
	return cli.Command{
		Use: "gate", Short: "Switches that workers obey within a second",
		Long: `Switches that workers obey within a second. A worker runs while routes.enabled and its own worker.NAME.enabled
are both open; a new gate is closed. While domain.NAME.enabled is closed, the events of that domain wait and the others
go on; a domain has such a gate once it was opened or closed for the first time. Commands run while commands.enabled and their
commands.SERVICE.enabled are both open.`,
		Example: "  tidemark gate close routes.enabled --reason 'target is down'",
		Sub: []cli.Command{
			{Use: "list", Short: "List gates", Role: "tidemark_reader", Run: gateList},
			gateSet("open", "Open a gate", true),
			gateSet("close", "Close a gate", false),
		},
	}
}

func gateList(ctx context.Context, s *cli.Session) error {
	gates, err := s.Gates(ctx)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no gates", gates, "GATE|STATE|CHANGED|BY|REASON", func(g store.Gate) cli.Row {
		return cli.Row{g.Gate, cli.Open(g.Open), s.AgeOr(g.ChangedAt, "never"), g.ChangedBy, g.Reason}
	})
}

func gateSet(name, short string, open bool) cli.Command {
	return cli.Command{
		Use: name + " GATE", Short: short, Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Run: func(ctx context.Context, s *cli.Session) error {
			gate := s.Arg(0)
			_, err := cli.InTx(ctx, s, func(db *store.DB) (any, error) {
				if err := db.GateSet(ctx, gate, open, s.Reason); err != nil || !open {
					return nil, err
				}
				return nil, cli.TellOutlooks(ctx, s, db, gate)
			})
			if err != nil {
				return err
			}
			return s.Result(cli.Fields{"gate", gate, "open", open}, "gate %s: %s", gate, cli.Open(open))
		},
	}
}
