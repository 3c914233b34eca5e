package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newVerify(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "verify",
		Short: "Check the whole installation; changes nothing",
		Long: `Check the whole installation: its objects, gates, cursors, evidence, dead letters, routes, sources,
captures, partitions, privileges, heartbeats. Changes nothing. The exit status is 1 when a check fails; warnings alone are 0.
What was found is cut at 200 characters; -o json has it whole.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			checks, err := s.Verify(ctx)
			if err != nil {
				return err
			}
			if err := showChecks(s, checks, 200); err != nil {
				return err
			}
			return failures(checks)
		}),
	})
}

const uncut = math.MaxInt

// showChecks cuts what was found at most characters, in a table.
func showChecks(s *session, checks []store.Check, most int) error {
	type c = store.Check
	return rows(s.printer, "no checks", checks,
		column[c]{"STATUS", func(c c) string { return c.Status }},
		column[c]{"CHECK", func(c c) string { return c.Check }},
		column[c]{"FOUND", func(c c) string { return cut(c.Detail, most) }},
		column[c]{"HINT", func(c c) string { return c.Hint }})
}

func failures(checks []store.Check) error {
	failed := 0
	for _, c := range checks {
		if c.Status == "fail" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}
