//go:build !failpoints

// Package failpoint lets test/chaos pause a worker between any two of its steps, and run
// it with a part of the rules left out. Without the build tag failpoints it is nothing.
package failpoint

// Pause may pause here.
func Pause(step string) {}

// Bug reports whether the named rule is to be broken.
func Bug(name string) bool { return false }
