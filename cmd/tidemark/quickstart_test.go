package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// AD4: the commands of docs/quickstart.md, as they stand there, bring an event to a webhook. scripts/newcomer.sh does the same in
// a bare chroot, with the package.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("no psql")
	}
	arrived := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(receiver.Close)

	db, path, dir := tidemarktest.NewDB(t), "", t.TempDir()
	if binary, err := binary(); err != nil {
		t.Fatal(err)
	} else if err := os.Symlink(binary, filepath.Join(dir, "tidemark")); err != nil {
		t.Fatal(err)
	} else {
		path = dir + string(os.PathListSeparator) + os.Getenv("PATH")
	}
	var script []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(read(t, "../../docs/quickstart.md"), -1) {
		if !strings.HasPrefix(block[1], "sudo apt-get install") {
			script = append(script, block[1])
		}
	}
	if len(script) != 4 {
		t.Fatalf("%d blocks", len(script))
	}
	text := strings.NewReplacer(
		"http://127.0.0.1:8080", receiver.URL,
		"postgres://ada:secret@127.0.0.1/shop", "'"+db.URL+"'",
		"tidemark.yaml &", "tidemark.yaml & daemon=$!",
		"> tidemark.yaml", "> tidemark.yaml; echo 'admin: {listen: \"\"}' >> tidemark.yaml",
	).Replace(strings.Join(script, "\n"))
	// The daemon ends with the shell, which waits for the event.
	c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text+"\nread -r; kill $daemon; wait $daemon")
	c.Dir, c.Env = dir, append(os.Environ(), "PATH="+path)
	c.Stdout, c.Stderr = t.Output(), t.Output()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	done, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	select {
	case got := <-arrived:
		if !strings.HasPrefix(got, "/hooks {") || !strings.Contains(got, `"total": 12`) && !strings.Contains(got, `"total":12`) {
			t.Error(got)
		}
	case <-time.After(time.Minute):
		t.Error("no event after a minute")
	}
	if _, err := io.WriteString(done, "\n"); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
