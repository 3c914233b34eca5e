package devpg

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent makes Linux send SIGQUIT when the parent dies. That is PostgreSQL's
// immediate shutdown: unlike SIGKILL it ends the children and frees the shared
// memory.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

func watch(int) (release func()) { return func() {} }

// processes reads /proc: containers often have no ps.
func processes() (map[int]process, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := make(map[int]process, len(stats))
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// "pid (name) state ppid …", where the name may hold spaces and parentheses.
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(string(fields[1]))
		all[pid] = process{parent: parent, state: fields[0][0]}
	}
	return all, nil
}
