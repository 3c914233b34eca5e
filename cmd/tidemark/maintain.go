package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func maintainCommand() cli.Command {
	return cli.Command{
		Use: "maintain", Short: "Create partitions ahead of time and drop expired ones", Role: "tidemark_executor",
		Long: `Create partitions ahead of time, drop those past their retention that no worker needs any more, and refresh the
figures of tidemark status. Every daemon does so; without a daemon, call it every minute.`,
		Example: "  * * * * *  tidemark maintain",
		Run: func(ctx context.Context, s *cli.Session) error {
			done, err := s.Maintain(ctx)
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "nothing to do", done, "ACTION|OBJECT|DETAIL", func(u store.Upkeep) cli.Row {
				return cli.Row{u.Action, u.Object, u.Detail}
			})
		},
	}
}
