package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// standby starts one of the server, from a copy that is made while the server is down: that needs none of the programs
// that some packages lack.
func standby(t *testing.T, primary *devpg.Server) session {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for the server's user
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", primary.DataDir(), data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := primary.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	server := testserver.New(t, devpg.Options{Dir: dir, Settings: map[string]string{
		"primary_conninfo": fmt.Sprintf("host=127.0.0.1 port=%d user=postgres", primary.Port()),
	}})
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{t, "standby", conn}
}

// CU11: a worker rests while a standby is further behind than it may be, and no longer.
func TestSourceWaitsForAStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("two servers")
	}
	t.Parallel()
	primary := testserver.New(t, devpg.Options{})
	db := tidemarktest.NewDBAt(t, primary.URL("postgres"))
	follower := standby(t, primary)
	follower.wantRows(`select pg_is_in_recovery()::text`, "true")
	s := tail(t, db, "sequence", "")
	limit := func(interval any) {
		t.Helper()
		s.exec(`select tidemark.worker_set('w', jsonb_build_object('source', 'table', 'replication_lag_limit', $1::text))`, interval)
	}
	// until gives the standby something to follow, runs passes, and returns the first of that status.
	until := func(status string) run {
		t.Helper()
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for deadline := time.Now().Add(patience); ; <-poll.C {
			s.exec(`insert into births default values`)
			got := s.once()
			if got.Status == status {
				return got
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v, want it %s", got, status)
			}
		}
	}

	limit("300 milliseconds")
	until("ran")
	follower.exec(`select pg_wal_replay_pause()`)
	got := until("throttled")
	if !strings.HasPrefix(got.Detail, "a standby is 00:0") || !strings.HasSuffix(got.Detail, " behind, more than 00:00:00.3") {
		t.Errorf("%+v", got)
	}
	taken := one[int](s.session, `select count(*)::int from taken`)
	for range 3 {
		until("throttled")
	}
	equal(t, "taken while it rests", one[int](s.session, `select count(*)::int from taken`), taken)

	limit("1 hour")
	until("ran")
	limit("300 milliseconds")
	until("throttled")
	follower.exec(`select pg_wal_replay_resume()`)
	until("ran")
	follower.exec(`select pg_wal_replay_pause()`)
	until("throttled")
	limit(nil)
	s.wantWell()
}
