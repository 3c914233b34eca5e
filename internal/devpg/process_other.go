//go:build unix && !linux

package devpg

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func dieWithParent(*syscall.SysProcAttr) {}

// watch leaves a shell that reads from a pipe which ends with this process,
// whatever ends it, and then shuts the server down. Best effort: there is an
// instant between the start of the server and that of the shell.
func watch(pid int) (release func()) {
	cmd := exec.Command("/bin/sh", "-c", `read -r _ || kill -QUIT "$1"`, "sh", strconv.Itoa(pid)) //nolint:noctx // lives as long as the server
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return func() {}
	}
	if err := cmd.Start(); err != nil {
		return func() {}
	}
	return func() {
		_, _ = pipe.Write([]byte("\n")) // the server has ended: its pid may be another's by now
		_ = cmd.Wait()
	}
}

func processes() (map[int]process, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output() //nolint:noctx // answers at once
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			pid, _ := strconv.Atoi(f[0])
			parent, _ := strconv.Atoi(f[1])
			all[pid] = process{parent: parent, state: f[2][0]}
		}
	}
	return all, nil
}
