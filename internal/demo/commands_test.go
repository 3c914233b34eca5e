package demo_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

// The demo checks itself and fails unless its result is perfect. Requirement PK4.
func TestCommandsDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "tidemark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/tidemarkhq/tidemark/cmd/tidemark").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := demo.Commands(t.Context(), &out, demo.CommandsOptions{Invoices: 200, Binary: binary}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`billing.charge.capture/v1 +enabled f +dry_run t`, `status +processed\n`, `status +duplicate\n`, `original status +processed\n +result +\{"charged": 1200, "invoice": 1\}`,
		`signs as shop-1, with another key +identity.signature_invalid\n`, `sql.business_rule +the customer has no card\n`, `runs_again +1\n`, `state +processed\n`,
		`daemon is killed`, `PostgreSQL is killed`, `broker is stopped`, `charges in demo_billing.charge +200 +must be +200\n`,
		`exactly one result processed +200 +must be +200\n`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("the output does not match %q:\n%s", want, &out)
		}
	}
}
