package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/packlist"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func packCommand() cli.Command {
	return cli.Command{
		Use: "pack", Short: "Ready-made sets of domains, event types, routes and workers", Example: "  tidemark pack install governance",
		Sub: []cli.Command{
			{Use: "list", Short: "List the packs of this build and which are installed", Role: "tidemark_reader", Run: packList},
			{
				Use: "install PACK", Short: "Install or upgrade a pack; switches that an operator has set stay as they are",
				Role: "tidemark_admin", Run: packInstall,
			},
		},
	}
}

func packList(ctx context.Context, s *cli.Session) error {
	all, err := packlist.All(ctx, s.DB)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no packs", all, "PACK|VERSION|STATE|INSTALLED|WHEN|DESCRIPTION",
		func(p packlist.State) cli.Row {
			return cli.Row{
				p.Pack, cli.Or(p.Version, "-"), p.State, cli.Or(p.Installed, "-"),
				s.AgeOr(p.InstalledAt, "-"), p.Description,
			}
		})
}

func packInstall(ctx context.Context, s *cli.Session) error {
	pack, err := packlist.Find(s.Arg(0))
	if err != nil {
		return err
	}
	installed, err := cli.InTx(ctx, s, func(db *store.DB) (store.Pack, error) { return packlist.Install(ctx, db, pack) })
	if err != nil {
		return err
	}
	if !s.JSON {
		defer func() {
			for _, step := range pack.Next {
				s.Line("next: %s", step)
			}
		}()
	}
	return s.Result(installed, "pack %s %s: installed", installed.Pack, installed.Version)
}
