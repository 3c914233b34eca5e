package testkafka

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// JVM is one run of a Java program. It ends with this process.
type JVM struct {
	Pid  int
	Done chan struct{} // closed when the program has ended
	log  string
}

// Run starts a Java program with the jars of a folder. Its output is appended to the file log.
func Run(jars, log string, args ...string) (*JVM, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args = append([]string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*")}, args...)
	cmd := exec.Command("java", args...) //nolint:noctx // the program lives until Kill
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt of the terminal is for this process alone
	p := &JVM{Done: make(chan struct{}), log: log}
	started := make(chan error)
	go func() {
		// Linux sends the death signal when the thread that forked ends, so this goroutine keeps its thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		dieWithParent(cmd.SysProcAttr)
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.Pid = cmd.Process.Pid
		started <- nil
		_ = cmd.Wait() // the log says how it ended
		close(p.Done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the program at once, as a crash does, and returns when it has ended. Killing it twice is fine.
func (p *JVM) Kill() {
	select {
	case <-p.Done: // its pid may be another's
	default:
		_ = syscall.Kill(p.Pid, syscall.SIGKILL)
		<-p.Done
	}
}

// Err adds the end of the program's log to an error.
func (p *JVM) Err(reason error) error {
	b, _ := os.ReadFile(p.log) // unreadable: no lines
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Errorf("%w\n%s", reason, strings.Join(lines[max(0, len(lines)-15):], "\n"))
}
