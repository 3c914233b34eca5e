package main

import (
	"os"
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
	cmd.AddCommand(newDemoGovernance())
	return cmd
}

func newDemoGovernance() *cobra.Command {
	options := demo.GovernanceOptions{Rows: 1_037_724, Load: 16 * time.Second}
	return &cobra.Command{
		Use:   "governance",
		Short: "Show the pack governance: five workers over a million rows of an application's tables",
		Long: `Starts a private PostgreSQL with an application's registry of 1,037,724 births and a log of its
changes, installs Tidemark and the pack governance, and lets a daemon go through all of it while the
application writes on. The daemon is killed in the middle. Shows what came of it, counted in the
application's own tables, and fails unless nothing is lost and nothing is done twice. Takes a minute
or two.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if options.Binary, err = os.Executable(); err != nil {
				return err
			}
			return demo.Governance(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
}
