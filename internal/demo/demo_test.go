package demo_test

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

// The demo checks itself and fails unless its result is perfect.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, demo.Options{Load: 6 * time.Second}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`events committed +\d{3,}`, `lost +0\n`, `doubled +0\n`, `out of order per unit +0\n`, `rolled back, but received +0\n`,
		`received while the gate was closed +0\n`, `evidence: dry_run +\d{3,}`, `evidence: failed +1 `, `attempt 2: sent`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("the output does not match %q:\n%s", want, &out)
		}
	}
}
