package testserver

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
)

// Standby starts a standby of the server, from a copy that is made while the server is down: that needs none of the programs that some
// packages lack. The primary knows it by its name.
func Standby(t testing.TB, primary *devpg.Server, name string, settings map[string]string) *devpg.Server {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // for the server's user
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", primary.DataDir(), data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := primary.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"primary_conninfo": fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", primary.Port(), name)}
	maps.Copy(all, settings)
	return New(t, devpg.Options{Dir: dir, Settings: all})
}
