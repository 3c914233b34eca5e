// Command tidemark installs, feeds, runs and observes Tidemark in a PostgreSQL database.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemarkhq/tidemark/internal/cli"
)

// version is set by the linker in releases: -X main.version=v1.2.3.
var version string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return cli.Run(ctx, newRoot())
}
