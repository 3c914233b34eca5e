package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/daemon"
)

func newRun(a *app) *cobra.Command {
	var file string
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "run",
		Short: "Run the daemon: deliver what the routes say, until told to stop",
		Long: `Run all workers of the database whose handler is route. Several daemons may run beside each other:
one works for each worker, the others stand by. The first SIGTERM or SIGINT stops cleanly: what is under
way comes to its end for at most stop_timeout, is recorded, and the leases are given back. A second one
ends the process at once.`,
	})
	configFlag(cmd, &file)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		p, err := a.printer(cmd)
		if err != nil {
			return err
		}
		c, err := a.loadConfig(p, file)
		if err != nil {
			return err
		}
		d, err := daemon.New(ctx, c, daemon.Options{
			Log: newLogger(cmd.ErrOrStderr(), isTerminal(os.Stderr), c.Log), Stdout: cmd.OutOrStdout(), Version: thisBuild().Version,
		})
		if err != nil {
			return err
		}
		if err := d.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return cmd
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
