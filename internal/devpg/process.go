package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 5 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// postmaster is one run of the server.
type postmaster struct {
	pid    int
	signal func(os.Signal) error // fails once the server has ended: the pid may be reused
	done   chan struct{}         // closed when the server has ended
}

func spawn(cmd *exec.Cmd) (*postmaster, error) {
	p := &postmaster{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the death signal when the thread that forked ends, and Go may
		// end a thread at any time. So this goroutine keeps its thread until the
		// server ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		dieWithParent(cmd.SysProcAttr)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid, p.signal = cmd.Process.Pid, cmd.Process.Signal
		release := watch(p.pid)
		started <- nil
		_ = cmd.Wait() // the server's log says how it ended
		release()
		close(p.done)
	}()
	return p, <-started
}

func (p *postmaster) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ends sends sig and reports whether the server ended within d.
func (p *postmaster) ends(sig syscall.Signal, d time.Duration) bool {
	_ = p.signal(sig) // fails only if the server has ended
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// kill ends the postmaster and its children at once. It first stops the
// postmaster, so that it forks no child after the list is made: a child that
// survives keeps the shared memory, and the next postmaster refuses to start.
func (p *postmaster) kill() error {
	_ = p.signal(syscall.SIGSTOP)
	var family []int
	err := poll(stopTimeout, func() (bool, error) {
		all, err := processes()
		if err != nil || all[p.pid].state != 'T' && p.running() {
			return false, err
		}
		for pid, proc := range all {
			if proc.parent == p.pid {
				family = append(family, pid)
			}
		}
		return true, nil
	})
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = p.signal(syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-p.done
	return poll(stopTimeout, func() (bool, error) {
		all, err := processes()
		for _, pid := range family {
			// A zombie counts as gone: a container may have no init to reap it.
			if proc, ok := all[pid]; ok && proc.state != 'Z' {
				return false, err
			}
		}
		return true, err
	})
}

type process struct {
	parent int
	state  byte // as ps prints it: T is stopped, Z a zombie
}

func poll(d time.Duration, done func() (bool, error)) error {
	deadline := time.Now().Add(d)
	for tick := time.NewTicker(pollEvery); ; <-tick.C {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of PostgreSQL still run after %v", d)
		}
	}
}

// startError is a failed start with the server's log.
type startError struct{ reason, log string }

func (e *startError) Error() string { return e.reason + "\n" + lastLines(e.log, 15) }

// isBusy reports whether the start failed because another process holds the port,
// or because a child of the killed server still holds the shared memory.
func isBusy(err error) bool {
	var e *startError
	return errors.As(err, &e) &&
		(strings.Contains(e.log, "Address already in use") || strings.Contains(e.log, "is still in use"))
}

// launch starts the server on its directory and port and waits until it accepts
// connections.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	log, err := os.OpenFile(s.home.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil {
		s.logFrom = info.Size()
	}
	// Not CommandContext: ctx ends with the start, the server does not.
	cmd := s.command(exec.Command(filepath.Join(s.binDir, "postgres"), "-D", s.dataDir, "-p", strconv.Itoa(s.port))) //nolint:noctx // see above
	cmd.Stdout, cmd.Stderr = log, log
	if s.run, err = spawn(cmd); err != nil {
		s.run = nil
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !s.ready() {
		select {
		case <-s.run.done:
			return &startError{"postgres ended while starting", s.logsFrom(s.logFrom)}
		case <-ctx.Done():
			_ = s.run.kill()
			return &startError{context.Cause(ctx).Error(), s.logsFrom(s.logFrom)}
		case <-tick.C:
		}
	}
	return nil
}

// ready reads postmaster.pid, as pg_ctl does: its first line is the pid, the
// eighth the state. The file of a killed server stays until the new one replaces it.
func (s *Server) ready() bool {
	b, err := os.ReadFile(filepath.Join(s.dataDir, "postmaster.pid"))
	lines := strings.Split(string(b), "\n")
	return err == nil && len(lines) >= 8 &&
		lines[0] == strconv.Itoa(s.run.pid) && strings.TrimSpace(lines[7]) == "ready"
}

// Pid returns the postmaster's pid, or 0 while it is not running.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.run.running() {
		return 0
	}
	return s.run.pid
}

// Kill ends the server as a crash does: SIGKILL to the postmaster and all its
// children. It returns when they are gone.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.run.running() {
		return errors.New("kill PostgreSQL: it is not running")
	}
	return s.run.kill()
}

// Restart starts the server again on the same data and port: after Kill, after
// its own death, or, if it still runs, after a fast shutdown.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("restart PostgreSQL: it was stopped for good")
	}
	if err := s.shutdown(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.launch(ctx)
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * pollEvery):
		}
	}
}

// Stop shuts the server down and removes its temporary directory. Connected
// clients are disconnected. Stopping twice is fine.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	err := s.shutdown()
	s.removeSharedMemory()
	if s.dirLock != nil {
		err = errors.Join(err, s.dirLock.Close())
	}
	return errors.Join(err, s.home.remove())
}

// shutdown tries PostgreSQL's fast mode, then its immediate mode, then force.
func (s *Server) shutdown() error {
	if !s.run.running() || s.run.ends(syscall.SIGINT, stopTimeout) || s.run.ends(syscall.SIGQUIT, stopTimeout) {
		return nil
	}
	return s.run.kill()
}

// removeSharedMemory frees the System V segment of a server that was killed and
// not restarted; postmaster.pid names it. macOS has 32 of them in all.
func (s *Server) removeSharedMemory() {
	b, _ := os.ReadFile(filepath.Join(s.dataDir, "postmaster.pid")) // gone after an orderly shutdown
	if lines := strings.Split(string(b), "\n"); len(lines) >= 7 && s.run != nil && lines[0] == strconv.Itoa(s.run.pid) {
		if key := strings.Fields(lines[6]); len(key) == 2 {
			_ = exec.Command("ipcrm", "-m", key[1]).Run() //nolint:noctx // best effort, answers at once
		}
	}
}

func (s *Server) logsFrom(offset int64) string {
	b, _ := os.ReadFile(s.home.logFile()) // no log yet: empty
	return string(b[min(offset, int64(len(b))):])
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
