//go:build failpoints

// Package failpoint lets test/chaos pause a worker between any two of its steps, and switch
// off one of its rules. Without the build tag failpoints it does nothing.
package failpoint

import (
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// TIDEMARK_PAUSE is the share of steps that pause, such as 0.01. TIDEMARK_BUG names the rule
// to break.
var (
	share, _ = strconv.ParseFloat(os.Getenv("TIDEMARK_PAUSE"), 64)
	bug      = os.Getenv("TIDEMARK_BUG")
)

// Pause sleeps for 1.2 to 3 seconds in the share of its calls that TIDEMARK_PAUSE sets.
func Pause(step string) {
	if share > 0 && rand.Float64() < share {
		time.Sleep(1200*time.Millisecond + rand.N(1800*time.Millisecond))
	}
}

// Bug reports whether TIDEMARK_BUG names this rule.
func Bug(name string) bool { return bug == name }
