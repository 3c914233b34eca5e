package demo_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

// The demo checks itself and fails unless its result is perfect. Requirements PK2, CU13.
func TestGovernanceDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "tidemark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/tidemarkhq/tidemark/cmd/tidemark").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := demo.Governance(t.Context(), &out, demo.GovernanceOptions{Rows: 20_000, Load: 3 * time.Second, Binary: binary}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`killed \(kill -9\) with [\d,]+ rows done`, `\[#{30}\] 100 %`, `births committed +2\d,\d{3} `, `transactions rolled back +[1-9]`,
		`gov_backfill_sweep +2\d,\d{3} +2\d,\d{3} +0 +0\n`, `gov_handoff_intake +2\d,\d{3} +2\d,\d{3} +0 +0\n`, `births without a candidate +0\n`,
		`verdicts that are not true now +0 `, `dead letters +0\n`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("the output does not match %q:\n%s", want, &out)
		}
	}
}
