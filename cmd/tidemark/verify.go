package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
)

func verifyCommand() cli.Command {
	return cli.Command{
		Use: "verify", Short: "Check the whole installation; changes nothing", Role: "tidemark_reader",
		Long: `Check the whole installation: its objects, gates, cursors, evidence, dead letters, routes, sources, captures,
partitions, privileges and heartbeats. Changes nothing. The exit status is 1 if a check fails; warnings alone give 0.
The table cuts details at 200 characters; -o json has them in full.`,
		Example: "  tidemark verify",
		Run: func(ctx context.Context, s *cli.Session) error {
			checks, err := s.Verify(ctx)
			if err != nil {
				return err
			}
			return cli.ShowChecks(s, checks)
		},
	}
}
