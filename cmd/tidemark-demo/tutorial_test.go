package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const tutorial = "../../docs/command-tutorial.md"

var fenced = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")

// A step of the tutorial is a block of shell, and the lines that it must print.
type step struct{ script, prints string }

func steps(t *testing.T) (all []step) {
	t.Helper()
	text, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		if block[1] == "sh" {
			all = append(all, step{script: block[2]})
		} else {
			all[len(all)-1].prints = block[2]
		}
	}
	return all
}

// The tutorial's commands work as they stand there, one after the other in one shell, and print what it says.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	for _, needed := range []string{"psql", "bash"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("the tutorial needs %s: %v", needed, err)
		}
	}
	all := steps(t)
	if len(all) < 10 || all[0].script != "make build bin/tidemark-demo\n" || !strings.HasPrefix(all[1].script, "bin/tidemark-demo playground ") {
		t.Fatalf("the tutorial begins otherwise: %+v", all)
	}
	dir := t.TempDir()
	for _, program := range []string{"tidemark", "tidemark-demo"} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin", program), "../"+program).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	playground(t, dir, strings.TrimSpace(all[1].script)+" --topic orders")
	hasTopic(t, dir, "orders")

	// After each step the shell says which one has ended.
	const end = "=== end of step "
	var script strings.Builder
	script.WriteString("set -e -o pipefail -m\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n")
	// A superuser would meet none of the rights that a newcomer needs later.
	script.WriteString(`. playground/env; test "$(psql "$TIDEMARK_DATABASE_URL" -Atc 'select rolsuper, rolcreaterole from pg_roles where rolname = current_user')" = 'f|t'` + "\n")
	for i, s := range all[2:] {
		fmt.Fprintf(&script, "%s\necho '%s%d'\n", s.script, end, i)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TIDEMARK_ADMIN_LISTEN=127.0.0.1:0") // the tutorial's reader has the default port
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, s := range all[2:] {
		printed, rest, found := bytes.Cut(out, fmt.Appendf(nil, "%s%d\n", end, i))
		if !found {
			t.Fatalf("step %d did not end\n%s", i, out)
		}
		out = rest
		for line := range strings.Lines(s.prints) {
			words := strings.Fields(line)
			for i, word := range words {
				words[i] = strings.ReplaceAll(regexp.QuoteMeta(word), `\.\.\.`, `\S+.*`)
			}
			if !regexp.MustCompile(`(?m)^\s*` + strings.Join(words, `\s+`) + `\s*$`).Match(printed) {
				t.Errorf("no line %q is printed by\n%s\nwhich prints\n%s", strings.TrimSpace(line), s.script, printed)
			}
		}
	}
}

// hasTopic fails unless the playground's broker, which makes no topic by itself, has the topic.
func hasTopic(t *testing.T, dir, topic string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "playground", "env"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(string(regexp.MustCompile(`KAFKA='(.*)'`).FindSubmatch(text)[1])))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic}).FirstErr(); err != nil {
		t.Error(err)
	}
}

// playground runs the tutorial's playground until the test ends.
func playground(t *testing.T, dir, script string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", "exec "+script) // it is stopped as a user does
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, &out)
		}
		if left, err := os.ReadDir(filepath.Join(dir, "playground")); err != nil || len(left) > 0 {
			t.Errorf("the playground leaves %v, %v", left, err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "playground", "env")); err == nil {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the playground ended: %v\n%s", err, &out)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the playground does not start")
		}
	}
}
