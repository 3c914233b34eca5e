package demo_test

import (
	"bytes"
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
	var out bytes.Buffer
	if err := demo.Governance(t.Context(), &out, demo.GovernanceOptions{Rows: 20_000, Load: 3 * time.Second, Binary: tidemark(t)}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	shows(t, &out,
		`killed \(kill -9\) with [\d,]+ rows done`, `\[#{30}\] 100 %`, `births committed +2\d,\d{3} `, `transactions rolled back +[1-9]`,
		`gov_backfill_sweep +2\d,\d{3} +2\d,\d{3} +0 +0\n`, `gov_handoff_intake +2\d,\d{3} +2\d,\d{3} +0 +0\n`, `births without a candidate +0\n`,
		`verdicts that are not true now +0 `, `dead letters +0\n`,
	)
}
