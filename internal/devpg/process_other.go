//go:build unix && !linux

package devpg

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func dieWithParent(*syscall.SysProcAttr) {}

// watch starts a shell that reads from a pipe. The pipe ends with this process,
// however it ends, and the shell then shuts the server down. Best effort: if this
// process dies between the start of the server and that of the shell, the server
// stays.
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
		_, _ = pipe.Write([]byte("\n")) // the server has ended, and its pid may be reused: the shell must not kill it
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
