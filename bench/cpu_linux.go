package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc/<pid>/stat; USER_HZ is 100 on every Linux port.
const tick = time.Second / 100

// cpuClock sums the CPU time of a cluster's processes and of this one.
type cpuClock struct {
	postmaster int // 0 where the server does not run on this machine
}

func newCPUClock(backend int) cpuClock {
	s, ok := readStat(backend)
	if !ok || s.comm != "postgres" {
		return cpuClock{}
	}
	return cpuClock{postmaster: s.parent}
}

func (c cpuClock) known() bool { return c.postmaster != 0 }

func (c cpuClock) total() time.Duration {
	if !c.known() {
		return 0
	}
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum + c.cluster()
}

// cluster is the server's part.
func (c cpuClock) cluster() (sum time.Duration) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		s, ok := readStat(pid)
		switch {
		case !ok:
		case pid == c.postmaster:
			// Backends and workers that ended are counted here.
			sum += s.own + s.children
		case s.parent == c.postmaster:
			sum += s.own
		}
	}
	return sum
}

// processCPU is that of one process of this machine.
func processCPU(pid int) time.Duration {
	s, _ := readStat(pid)
	return s.own
}

// peakMemory is the most that a process of this machine has had in memory, in MB.
func peakMemory(pid int) float64 {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
			return kB / 1024
		}
	}
	return 0
}

type procStat struct {
	comm     string
	parent   int
	own      time.Duration
	children time.Duration // ended and waited for
}

func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name stands in parentheses and may hold spaces and parentheses itself.
	line := string(data)
	from, to := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if from < 0 || to < from {
		return procStat{}, false
	}
	f := strings.Fields(line[to+1:])
	if len(f) < 15 {
		return procStat{}, false
	}
	n := func(i int) time.Duration {
		v, _ := strconv.ParseInt(f[i], 10, 64)
		return time.Duration(v)
	}
	return procStat{
		comm:     line[from+1 : to],
		parent:   int(n(1)),
		own:      (n(11) + n(12)) * tick,
		children: (n(13) + n(14)) * tick,
	}, true
}
