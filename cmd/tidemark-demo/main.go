// Command tidemark-demo shows Tidemark at work, on a private PostgreSQL that leaves nothing behind. It carries that server
// and the brokers which it delivers to, so that the command tidemark need not.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tidemark-demo:", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	options := demo.Options{Load: 16 * time.Second, Rate: 800, Events: 10_500}
	cmd := &cobra.Command{
		Use:   "tidemark-demo",
		Short: "Show the main job end to end, on a private PostgreSQL that leaves nothing behind",
		Long: `Starts a private PostgreSQL, a NATS server, a Kafka broker and a receiver of webhooks, installs
Tidemark and the pack iu-core, and lets an application emit while two daemons deliver, one of
which is stopped, and other things go wrong. Shows what came of it, counted by the application
and the receivers, and fails unless everything that is promised holds. Takes half a minute.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().BoolVar(&options.Keep, "keep", false, "open the console at the end, and wait for a look around until Ctrl-C")
	cmd.AddCommand(newGovernance(), newCommands(), newPlayground())
	return cmd
}

// needTidemark finds the command tidemark beside this program, unless it is named.
func needTidemark(binary *string) error {
	if *binary == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		*binary = filepath.Join(filepath.Dir(self), "tidemark")
	}
	if _, err := os.Stat(*binary); err != nil {
		return fmt.Errorf("the command tidemark, whose daemon is shown, is not there: %w; name it with --tidemark", err)
	}
	return nil
}

func newCommands() *cobra.Command {
	options := demo.CommandsOptions{Invoices: 2000}
	cmd := &cobra.Command{
		Use:   "commands",
		Short: "Show the pack commands-demo: commands over Kafka, resends, forgers, dead letters and a replay",
		Long: `Starts a private PostgreSQL and a broker that speaks Kafka's protocol, installs Tidemark and the pack
commands-demo, and lets a daemon take commands: one that is processed, its resend, those of forgers,
one that fails and is replayed, and a storm of resends in which the daemon, PostgreSQL and the broker
are killed or stopped. Counts in the services' own tables, and fails unless each command took effect
exactly once. Takes half a minute.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needTidemark(&options.Binary); err != nil {
				return err
			}
			return demo.Commands(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().StringVar(&options.Binary, "tidemark", "", "the command tidemark (default: the one beside this program)")
	return cmd
}

func newGovernance() *cobra.Command {
	options := demo.GovernanceOptions{Rows: 1_037_724, Load: 16 * time.Second}
	cmd := &cobra.Command{
		Use:   "governance",
		Short: "Show the pack governance: five workers over a million rows of an application's tables",
		Long: `Starts a private PostgreSQL with an application's registry of 1,037,724 births and a log of its
changes, installs Tidemark and the pack governance, and lets a daemon go through all of it while the
application writes on. The daemon is killed in the middle. Shows what came of it, counted in the
application's own tables, and fails unless nothing is lost and nothing is done twice. Takes a minute
or two.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needTidemark(&options.Binary); err != nil {
				return err
			}
			return demo.Governance(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().StringVar(&options.Binary, "tidemark", "", "the command tidemark (default: the one beside this program)")
	return cmd
}

func newPlayground() *cobra.Command {
	var options demo.PlaygroundOptions
	cmd := &cobra.Command{
		Use:   "playground",
		Short: "Run a private PostgreSQL and a broker to try Tidemark with, until Ctrl-C",
		Long: `Runs a private PostgreSQL and a broker that speaks Kafka's protocol, on loopback, until Ctrl-C. Nothing
is kept. The login owns its database, has CREATEROLE, and is no superuser. The file env in the folder of --dir has the variables
with which the command tidemark finds them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Playground(cmd.Context(), cmd.OutOrStdout(), options)
		},
	}
	cmd.Flags().StringVar(&options.Dir, "dir", "playground", "folder for the files env and tidemark.yaml")
	cmd.Flags().StringSliceVar(&options.Services, "service", nil, "make the topics of this service; may be repeated")
	cmd.Flags().StringSliceVar(&options.Topics, "topic", nil, "make this topic, for a route to Kafka; may be repeated")
	return cmd
}
