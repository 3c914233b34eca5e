package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newMaintain(a *app) *cobra.Command {
	return needs("tidemark_executor", &cobra.Command{
		Use:   "maintain",
		Short: "Make partitions ahead, drop those past retention that nobody needs; call it every minute",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			done, err := s.Maintain(ctx)
			if err != nil {
				return err
			}
			type u = store.Upkeep
			return rows(s.printer, "nothing to do", done,
				column[u]{"ACTION", func(u u) string { return u.Action }},
				column[u]{"OBJECT", func(u u) string { return u.Object }},
				column[u]{"DETAIL", func(u u) string { return u.Detail }})
		}),
	})
}
