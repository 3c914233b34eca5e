package test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CU11: a worker rests while a standby is further behind than it may be, and no longer.
func TestSourceWaitsForAStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("two servers")
	}
	t.Parallel()
	primary := testserver.New(t, devpg.Options{})
	db := tidemarktest.NewDBAt(t, primary.URL("postgres"))
	conn, err := pgx.Connect(t.Context(), testserver.Standby(t, primary, "standby", nil).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	follower := session{t, "standby", conn}
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
