package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

func newDemo() *cobra.Command {
	options := demo.Options{Load: 16 * time.Second, Rate: 800, Events: 10_500}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job end to end, on a private PostgreSQL that leaves nothing behind",
		Long: `Starts a private PostgreSQL, a NATS server, a Kafka broker and a receiver of webhooks, installs
Tidemark and the pack iu-core, and lets an application emit while two daemons deliver, one of
which is stopped, and other things go wrong. Shows what came of it, counted by the application
and the receivers, and fails unless everything that is promised holds. Takes half a minute.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().BoolVar(&options.Keep, "keep", false, "wait at the end for a look around, until Ctrl-C")
	return cmd
}
