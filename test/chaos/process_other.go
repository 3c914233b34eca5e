//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: a daemon outlives a harness that is killed with SIGKILL.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
