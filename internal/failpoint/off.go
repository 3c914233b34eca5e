//go:build !failpoints

// Package failpoint lets test/chaos pause a worker between any two of its steps, and switch
// off one of its rules. Without the build tag failpoints it does nothing.
package failpoint

// Pause does nothing.
func Pause(step string) {}

// Bug returns false: all rules hold.
func Bug(name string) bool { return false }
