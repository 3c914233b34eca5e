package demo_test

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The demo checks itself and fails unless its result is perfect.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, demo.Options{Load: 5 * time.Second, Rate: 150}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`events committed +\d{3,}`, `lost +0\n`, `doubled +0\n`, `out of order per unit +0\n`,
		`rolled back +\d{2,}`, `rolled back, but received +0 `, `received after a later number +[1-9]`,
		`the last arrival anywhere`, `evidence: dry_run +\d{3,}`, `evidence: failed +1 `, `attempt [2-9]: sent`,
		`daemon (one|two), which was at work, is stopped; daemon (one|two) took over`,
		`SQL function, exactly once +\d{3,} +0 +0 +0 +0 +\d`,
		`webhook, in order by key +\d{3,} +[1-9]\d* +[1-9]\d* +0 +0 +\d`,
		`webhook, in any order +\d{3,} +[1-9]\d* +[1-9]\d* +not asked for +0 +\d`,
		`NATS JetStream +\d{3,} +\d+ +0 +0 +0 +\d`,
		`Kafka +\d{3,} +\d+ +\d+ +0 +0 +\d`,
		`webhook, dead +0 +[1-9]\d* +\d{3,} wait`,
		`wrong ones: 0\n`, `a finding says why:\n.*connection refused`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("the output does not match %q:\n%s", want, &out)
		}
	}
}
