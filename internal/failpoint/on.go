//go:build failpoints

// Package failpoint lets test/chaos pause a worker between any two of its steps, and run
// it with a part of the rules left out. Without the build tag failpoints it is nothing.
package failpoint

import (
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// TIDEMARK_PAUSE is the share of steps that pause, such as 0.01; TIDEMARK_BUG the rule
// that is broken.
var (
	share, _ = strconv.ParseFloat(os.Getenv("TIDEMARK_PAUSE"), 64)
	bug      = os.Getenv("TIDEMARK_BUG")
)

// Pause may pause here, for 1.2 to 3 seconds.
func Pause(step string) {
	if share > 0 && rand.Float64() < share {
		time.Sleep(1200*time.Millisecond + rand.N(1800*time.Millisecond))
	}
}

// Bug reports whether the named rule is to be broken.
func Bug(name string) bool { return bug == name }
