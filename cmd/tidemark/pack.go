package main

import (
	"context"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/packs"
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

// packState is a line of pack list.
type packState struct {
	Pack        string     `json:"pack"`
	Version     string     `json:"version"` // of this build; empty: this build does not have the pack
	Description string     `json:"description"`
	State       string     `json:"state"` // not installed, installed, outdated, or unknown to this build
	Installed   string     `json:"installed_version"`
	InstalledAt *time.Time `json:"installed_at"`
	InstalledBy string     `json:"installed_by"`
}

func packList(ctx context.Context, s *cli.Session) error {
	known, err := packs.All()
	if err != nil {
		return err
	}
	installed, err := s.Packs(ctx)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no packs", packStates(known, installed), "PACK|VERSION|STATE|INSTALLED|WHEN|DESCRIPTION",
		func(p packState) cli.Row {
			return cli.Row{
				p.Pack, cli.Or(p.Version, "-"), p.State, cli.Or(p.Installed, "-"),
				s.AgeOr(p.InstalledAt, "-"), p.Description,
			}
		})
}

func packStates(known []packs.Pack, installed []store.Pack) (all []packState) {
	for _, p := range known {
		all = append(all, packState{Pack: p.Name, Version: p.Version, Description: p.Description, State: "not installed"})
	}
	for _, i := range installed {
		n := slices.IndexFunc(known, func(p packs.Pack) bool { return p.Name == i.Pack })
		state := packState{Pack: i.Pack, State: "unknown to this build"}
		if n >= 0 {
			state = all[n]
			state.State = cli.Choose(i.Checksum == known[n].Checksum, "installed", "outdated")
		}
		state.Installed, state.InstalledAt, state.InstalledBy = i.Version, &i.InstalledAt, i.InstalledBy
		if n >= 0 {
			all[n] = state
		} else {
			all = append(all, state)
		}
	}
	return all
}

func packInstall(ctx context.Context, s *cli.Session) error {
	pack, err := cli.Pack(s.Arg(0))
	if err != nil {
		return err
	}
	sql := s.RoleNames(ctx, pack.SQL)
	installed, err := cli.InTx(ctx, s, func(db *store.DB) (store.Pack, error) {
		return db.InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, sql)
	})
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
