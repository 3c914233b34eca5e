// Package systemd_test checks the unit and the configuration that the packages install.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The unit's times fit those of the daemon.
func TestUnitTimes(t *testing.T) {
	t.Parallel()
	unit := read(t, "tidemark.service")
	value := func(key string) time.Duration {
		t.Helper()
		got := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		if got == nil {
			t.Fatalf("the unit has no %s", key)
		}
		d, err := time.ParseDuration(got[1])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if stop, own := value("TimeoutStopSec"), config.Default().StopTimeout; stop < own+15*time.Second {
		t.Errorf("TimeoutStopSec=%s leaves no time to settle after stop_timeout %s", stop, own)
	}
	// The daemon calls its loop stuck after a minute.
	if watchdog := value("WatchdogSec"); watchdog <= time.Minute {
		t.Errorf("WatchdogSec=%s is not above the time after which the loop is stuck", watchdog)
	}
	for _, line := range []string{"Type=notify", "DynamicUser=yes", "Restart=always", "ExecReload=/bin/kill -HUP $MAINPID"} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
}

// systemd understands the unit, and rates its exposure at most 2.0 of 10.
func TestUnitVerifies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	// verify wants to find the program.
	unit := strings.Replace(read(t, "tidemark.service"), "/usr/bin/tidemark", "/bin/sleep", 1)
	name := filepath.Join(t.TempDir(), "tidemark.service")
	if err := os.WriteFile(name, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", name},
		{"security", "--offline=true", "--threshold=20", name},
	} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// The installed configuration is one, once the variables are set, and everyone may read it: it holds no secret.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	text := read(t, "tidemark.yaml")
	for _, name := range regexp.MustCompile(`\$\{env:(\w+)\}`).FindAllStringSubmatch(text, -1) {
		if name[1] != "NAME" && !strings.Contains(read(t, "tidemark.env"), "#"+name[1]+"=") {
			t.Errorf("tidemark.env does not show %s", name[1])
		}
	}
	text = strings.ReplaceAll(text, "\n# secrets:", "\nsecrets:")
	text = strings.ReplaceAll(text, "\n#   billing:", "\n  billing:")
	name := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(name, []string{"TIDEMARK_DATABASE_URL=postgres:///app", "BILLING_KEY=whsec_x"})
	if err != nil || c.Database.URL.Reveal() != "postgres:///app" || c.Secrets["billing"][0].Reveal() != "whsec_x" {
		t.Errorf("%v, %v, %v", c.Database, c.Secrets, err)
	}
}

// The packages' scripts stop the daemon when the package goes, and do nothing to it in an upgrade or where systemd does not run.
func TestPackageScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ script, argument, runs string }{
		{"reload.sh", "configure", "daemon-reload\n"},
		{"stop.sh", "remove", "disable --now tidemark.service\n"},
		{"stop.sh", "0", "disable --now tidemark.service\n"},
		{"stop.sh", "upgrade", ""},
		{"stop.sh", "1", ""},
	} {
		for running, want := range map[string]string{dir: test.runs, filepath.Join(dir, "none"): ""} {
			script := strings.ReplaceAll(read(t, test.script), "/run/systemd/system", running)
			c := exec.CommandContext(t.Context(), "sh", "-euc", script, "sh", test.argument)
			c.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			if out, err := c.CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%s %s: %q, %v, want %q", test.script, test.argument, out, err, want)
			}
		}
	}
}
