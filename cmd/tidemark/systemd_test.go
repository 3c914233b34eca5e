package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// AD4: the daemon tells systemd when it is ready, that it lives, when it reloads, and when it stops.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, file := filepath.Join(dir, "notify"), filepath.Join(dir, "tidemark.yaml")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if err := os.WriteFile(file, []byte("admin: {listen: \"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, tidemarktest.NewDB(t).URL, "run", "--config", file)
	c.Env = append(c.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=300000")
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	// told reads the states up to the wanted one, and returns them.
	told := func(want string) (all []string) {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for !slices.Contains(all, want) {
			state := make([]byte, 64)
			n, err := socket.Read(state)
			if err != nil {
				t.Fatalf("%v, and no %s: %v", all, want, err)
			}
			all = append(all, string(state[:n]))
		}
		return all
	}
	told("READY=1")
	told("WATCHDOG=1")
	told("WATCHDOG=1")
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if all := told("RELOADING=1"); slices.Contains(all, "READY=1") {
		t.Errorf("%v", all)
	}
	told("READY=1")
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told("STOPPING=1")
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
