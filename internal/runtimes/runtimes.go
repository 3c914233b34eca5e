// Package runtimes finds the runtimes of other languages, and the client libraries that scripts/producers.sh installs, for the tests of
// the examples. What is missing skips the test. It also runs the daemon that the programs in these languages talk to.
package runtimes

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
)

// Installed returns the directory that scripts/producers.sh has made under that name.
func Installed(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PRODUCERS")
	if dir == "" {
		t.Skip("no client libraries: set PRODUCERS to what scripts/producers.sh prints, as make test does")
	}
	if _, err := os.Stat(filepath.Join(dir, name+".installed")); err != nil {
		t.Skipf("scripts/producers.sh could not install the client libraries: %v", err)
	}
	return filepath.Join(dir, name)
}

// Need skips the test without the program.
func Need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("not installed: %v", err)
	}
}

// Run runs a command in a directory, and ends the test if it fails.
func Run(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Daemon runs a daemon between a database and a broker, which it knows as main, until the test ends.
func Daemon(t testing.TB, databaseURL, broker string, change func(*config.Config)) {
	t.Helper()
	c := config.Default()
	c.Name = "test"
	c.Database.URL = config.NewSecret(databaseURL)
	c.Admin.Listen = ""
	c.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: []string{broker}}}
	change(&c)
	d, err := daemon.New(t.Context(), c, daemon.Options{Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(running) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
