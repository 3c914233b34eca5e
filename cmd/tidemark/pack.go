package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/packs"
)

func newPack(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "pack", Short: "Ready-made sets of domains, event types, routes and workers"}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{
			Use:   "list",
			Short: "List the packs of this build and those that are installed",
			RunE:  a.withSchema(packList),
		}),
		needs("tidemark_admin", &cobra.Command{
			Use:   "install NAME",
			Short: "Install a pack, or bring it up to date; an operator's switches stay as they are",
			RunE:  a.withSchema(packInstall),
		}),
	)
	return cmd
}

// packState is a line of `pack list`.
type packState struct {
	Pack        string     `json:"pack"`
	Version     string     `json:"version"` // of this build; empty: it does not have the pack
	Description string     `json:"description"`
	State       string     `json:"state"` // not installed, installed, outdated, or unknown to this build
	Installed   string     `json:"installed_version"`
	InstalledAt *time.Time `json:"installed_at"`
	InstalledBy string     `json:"installed_by"`
}

func packList(ctx context.Context, s *session, _ []string) error {
	known, err := packs.All()
	if err != nil {
		return err
	}
	installed, err := s.Packs(ctx)
	if err != nil {
		return err
	}
	type p = packState
	return rows(s.printer, "no packs", packStates(known, installed),
		column[p]{"PACK", func(p p) string { return p.Pack }},
		column[p]{"VERSION", func(p p) string { return firstOf(p.Version, "-") }},
		column[p]{"STATE", func(p p) string { return p.State }},
		column[p]{"INSTALLED", func(p p) string { return firstOf(p.Installed, "-") }},
		column[p]{"WHEN", func(p p) string { return s.ageOr(p.InstalledAt, "-") }},
		column[p]{"DESCRIPTION", func(p p) string { return p.Description }})
}

func packStates(known []packs.Pack, installed []store.Pack) []packState {
	var all []packState
	there := map[string]store.Pack{}
	for _, p := range installed {
		there[p.Pack] = p
	}
	for _, p := range known {
		state := packState{Pack: p.Name, Version: p.Version, Description: p.Description, State: "not installed"}
		if i, found := there[p.Name]; found {
			state.Installed, state.InstalledAt, state.InstalledBy = i.Version, &i.InstalledAt, i.InstalledBy
			state.State = "installed"
			if i.Checksum != p.Checksum {
				state.State = "outdated"
			}
		}
		all = append(all, state)
		delete(there, p.Name)
	}
	for _, i := range installed {
		if _, unknown := there[i.Pack]; unknown {
			all = append(all, packState{
				Pack: i.Pack, State: "unknown to this build", Installed: i.Version, InstalledAt: &i.InstalledAt, InstalledBy: i.InstalledBy,
			})
		}
	}
	return all
}

func packInstall(ctx context.Context, s *session, args []string) error {
	pack, found, err := packs.Find(args[0])
	if err != nil {
		return err
	}
	if !found {
		return unknownPack(args[0])
	}
	var installed store.Pack
	err = s.inTx(ctx, func(db *store.DB) (err error) {
		installed, err = db.InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, s.roles(ctx, pack.SQL))
		return err
	})
	if err != nil {
		return err
	}
	if s.json {
		return s.object(installed)
	}
	if err := s.linef("pack %s %s: installed", installed.Pack, installed.Version); err != nil {
		return err
	}
	for _, step := range pack.Next {
		if err := s.linef("next: %s", step); err != nil {
			return err
		}
	}
	return nil
}

func unknownPack(name string) error {
	all, err := packs.All()
	if err != nil {
		return err
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return &tidemark.Error{Code: "TM004", Message: `there is no pack "` + name + `"`, Hint: "Packs: " + strings.Join(names, ", ")}
}
