package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

func newDemo() *cobra.Command {
	options := demo.Options{Load: 15 * time.Second}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job end to end, on a private PostgreSQL that leaves nothing behind",
		Long: `Starts a private PostgreSQL, installs Tidemark and the pack iu-core, lets pgbench write
with eight clients while two instances of a worker route its events, and shows what came
of it, counted by the application's own tables. Takes half a minute.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().BoolVar(&options.Keep, "keep", false, "wait at the end for a look around, until Ctrl-C")
	return cmd
}
