//go:build unix && !linux

package testkafka

import "syscall"

// dieWithParent does nothing: elsewhere a program outlives a process that is killed.
func dieWithParent(*syscall.SysProcAttr) {}
