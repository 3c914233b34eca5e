package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A daemon is a `tidemark run` that is started again whenever it ends, as a supervisor does.
type daemon struct {
	name    string
	binary  string
	dir     string
	environ []string
	log     *os.File

	mu      sync.Mutex
	process *os.Process // nil: it is not running
	rest    time.Time   // not started before
	ending  bool
	starts  int
	over    chan struct{}
}

const configuration = `name: %s
database: {url: "%s", max_connections: 8}
lease: 3s
poll: {min: 5ms, max: 250ms}
batch: {max: 2000}
stop_timeout: 3s
admin: {listen: ""}
log: {level: info, format: json}
secrets: {chaos: "%s"}
workers: [%s]
webhook: {allow: [127.0.0.0/8]}
%s`

func newDaemon(name, binary, dir, url, run, secret, more string, environ []string) (*daemon, error) {
	d := &daemon{name: name, binary: binary, dir: dir, environ: environ, over: make(chan struct{})}
	if err := os.WriteFile(d.config(), fmt.Appendf(nil, configuration, name, url, secret, run, more), 0o600); err != nil {
		return nil, err
	}
	var err error
	if d.log, err = os.Create(filepath.Join(dir, name+".log")); err != nil {
		return nil, err
	}
	go d.supervise()
	return d, nil
}

func (d *daemon) config() string { return filepath.Join(d.dir, d.name+".yaml") }

func (d *daemon) supervise() {
	// The kernel sends the parent's death signal when the thread that forked ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(d.over)
	for {
		cmd := exec.CommandContext(context.Background(), d.binary, "run", "--config", d.config())
		cmd.Env, cmd.Dir = d.environ, d.dir
		cmd.Stdout, cmd.Stderr = d.log, d.log
		cmd.SysProcAttr = dieWithParent()
		if !d.start(cmd) {
			return
		}
		_ = cmd.Wait() // how it ended is in its log
		d.mu.Lock()
		d.process = nil
		pause := max(time.Until(d.rest), 200*time.Millisecond)
		d.mu.Unlock()
		time.Sleep(pause)
	}
}

func (d *daemon) start(cmd *exec.Cmd) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ending {
		return false
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	d.process = cmd.Process
	d.starts++
	return true
}

// signal reports whether there was a process to take it.
func (d *daemon) signal(s syscall.Signal, rest time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rest = time.Now().Add(rest)
	return d.process != nil && d.process.Signal(s) == nil
}

// end stops it in order, and by force where that takes too long.
func (d *daemon) end() error {
	d.mu.Lock()
	d.ending = true
	d.mu.Unlock()
	d.signal(syscall.SIGCONT, 0)
	d.signal(syscall.SIGTERM, 0)
	select {
	case <-d.over:
		return nil
	case <-time.After(30 * time.Second):
		d.signal(syscall.SIGQUIT, 0) // its log shows where it hangs
		select {
		case <-d.over:
		case <-time.After(5 * time.Second):
		}
		d.signal(syscall.SIGKILL, 0)
		<-d.over
		return fmt.Errorf("daemon %s did not stop within 30 s of SIGTERM", d.name)
	}
}

// broken is what its log says that it must not.
func (d *daemon) broken() []string {
	text, err := os.ReadFile(d.log.Name())
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for line := range bytes.Lines(text) {
		s := strings.TrimSpace(string(line))
		if strings.HasPrefix(s, "panic:") || strings.HasPrefix(s, "fatal error:") || strings.Contains(s, "DATA RACE") ||
			strings.Contains(s, `"level":"ERROR"`) {
			found = append(found, d.name+": "+s)
		}
	}
	return found
}
