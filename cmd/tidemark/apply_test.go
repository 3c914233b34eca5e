package main

import (
	"context"
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
		"billing": {1, "create  domain billing", ": the plan is against what was there before it"},
		"shop":    {6, "", ", and a plan does not wait for it: 55P03: domain shop: "},
	} {
		status, stdout, stderr := planOf(t, db, name)
		if status != want.status || !strings.Contains(stdout, want.plan) || !strings.Contains(stderr, under) || !strings.Contains(stderr, want.after) {
			t.Errorf("%s: %d\n%s%s", name, status, stdout, stderr)
		}
	}
}

// planOf runs plan of a file that has one domain.
func planOf(t *testing.T, db *tidemarktest.DB, name string) (status int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "file: %s\ndomains: {%[1]s: {}}\ngates: {worker.commands.enabled: false}\n", name), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errors strings.Builder
	plan := program(t, db.URL, "plan", "--check", file)
	plan.Stdout, plan.Stderr = &out, &errors
	_ = plan.Run() // the status says it
	return plan.ProcessState.ExitCode(), out.String(), errors.String()
}

// A lock that is not an apply's is waited for; where it is held for long, the status is not that of a change.
func TestPlanWaitsForOtherLocks(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	conn := db.Connect(t)
	// ANALYZE takes the lock of an apply, as VACUUM and CREATE INDEX CONCURRENTLY do.
	if _, err := conn.Exec(t.Context(), `begin; analyze tidemark.owned; insert into tidemark.domain (domain) values ('shop')`); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := planOf(t, db, "billing")
	if status != 1 || strings.Contains(stderr, "an apply is under way") || !strings.Contains(stderr, "1 change would be made") {
		t.Errorf("beside ANALYZE: %d\n%s", status, stderr)
	}
	if !strings.Contains(stderr, "gate worker.commands.enabled is ignored") {
		t.Errorf("of an earlier release: %s", stderr)
	}
	status, _, stderr = planOf(t, db, "shop")
	if status != 6 || !strings.Contains(stderr, "tidemark: another session has locked it for more than 5 seconds: 55P03: domain shop: ") {
		t.Errorf("beside a lock: %d\n%s", status, stderr)
	}

	watch, ended := db.Connect(t), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for waits := false; !waits; { // for longer than for an apply
			if err := watch.QueryRow(ctx, `select exists (select from pg_stat_activity where datname = current_database()
				and wait_event_type = 'Lock' and query like '%configuration_change%' and query_start < now() - interval '600 ms')`).Scan(&waits); err != nil {
				ended <- err
				return
			}
		}
		_, err := conn.Exec(t.Context(), `rollback`)
		ended <- err
	}()
	if status, _, stderr = planOf(t, db, "shop"); status != 1 || !strings.Contains(stderr, "1 change would be made") {
		t.Errorf("after the lock: %d\n%s", status, stderr)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
