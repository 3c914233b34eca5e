package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A plan waits for no apply that is under way: it names the session, and where both change the same it ends.
func TestPlanBesideApply(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	conn := db.Connect(t)
	if _, err := conn.Exec(t.Context(), `set application_name = 'release'; begin;
		select * from tidemark.configuration_apply('shop', '[{"kind": "domain", "name": "shop", "definition": {}}]', 'why')`); err != nil {
		t.Fatal(err)
	}
	under := fmt.Sprintf(`tidemark: an apply is under way (pid %d, application "release", user `, conn.PgConn().PID())
	for name, want := range map[string]struct {
		status int
		plan   string
		after  string
	}{
		"billing": {0, "create  domain billing", ": the plan is against what was there before it"},
		"shop":    {1, "", ", and a plan does not wait for it: 55P03: domain shop: "},
	} {
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "file: %s\ndomains: {%[1]s: {}}\n", name), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		plan := program(t, db.URL, "plan", file)
		plan.Stdout, plan.Stderr = &stdout, &stderr
		_ = plan.Run() // the status says it
		if plan.ProcessState.ExitCode() != want.status || !strings.Contains(stdout.String(), want.plan) ||
			!strings.Contains(stderr.String(), under) || !strings.Contains(stderr.String(), want.after) {
			t.Errorf("%s: %d\n%s%s", name, plan.ProcessState.ExitCode(), &stdout, &stderr)
		}
	}
}
