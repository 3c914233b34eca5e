package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// LI4: the loop wakes River as route_worker_run does: sql/test/inside_river_wake_test.go.
func TestLoopWakesRiver(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `select tidemark.route_set('jobs', '{"domain": "test", "target_kind": "river", "target_ref": "tick", "enabled": true, "dry_run": false}')`)
	listener := db.Connect(t)
	if _, err := listener.Exec(t.Context(), `listen "public.river_insert"`); err != nil {
		t.Fatal(err)
	}
	run(t, db, ts)

	const jobs = `select count(*)::text from river_job`
	emit(t, db, "a1")
	eventually(t, db, jobs, "1") // the gate is closed
	exec(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	emit(t, db, "a2")
	eventually(t, db, jobs, "2")
	exec(t, db, `select pg_notify('public.river_insert', 'end')`)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, want := range []string{`{"queue": "default"}`, "end"} {
		if n, err := listener.WaitForNotification(ctx); err != nil || n.Payload != want {
			t.Fatal(n, err)
		}
	}
}
