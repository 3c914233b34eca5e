package demo_test

import (
	"bytes"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

// The demo checks itself and fails unless its result is perfect. Requirement PK4.
func TestCommandsDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Commands(t.Context(), &out, demo.CommandsOptions{Invoices: 200, Binary: tidemark(t)}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	shows(t, &out,
		`billing.charge.capture/v1 +enabled f +dry_run t`, `status +processed\n`, `status +duplicate\n`, `original status +processed\n +result +\{"charged": 1200, "invoice": 1\}`,
		`signs as shop-1, with another key +identity.signature_invalid\n`, `sql.business_rule +the customer has no card\n`, `runs_again +1\n`, `state +processed\n`,
		`daemon is killed`, `PostgreSQL is killed`, `broker is stopped`, `charges in demo_billing.charge +200 +must be +200\n`,
		`exactly one result processed +200 +must be +200\n`,
	)
}
