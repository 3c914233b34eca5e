//go:build !linux

package main

import "time"

// cpuClock knows the CPU time of a cluster on Linux only.
type cpuClock struct{}

func newCPUClock(int) cpuClock { return cpuClock{} }

func (cpuClock) known() bool { return false }

func (cpuClock) total() time.Duration { return 0 }

func (cpuClock) cluster() time.Duration { return 0 }

func peakMemory(int) float64 { return 0 }

func processCPU(int) time.Duration { return 0 }
