// Command tidemark installs, feeds, runs and looks after a Tidemark database.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	cmd, err := newRoot().ExecuteContextC(ctx)
	return report(cmd, err)
}
