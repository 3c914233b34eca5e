package tidemarktest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Database is a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx of the test's database.
type Database interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A Program has handlers to register: a *consumer.Client.
type Program interface {
	Register(ctx context.Context) error
}

// A DrainedProgram handles all that is due, and returns: a *consumer.Client.
type DrainedProgram interface {
	Program
	Drain(ctx context.Context) error
}

// GoLive registers the handlers of the programs and opens all that keeps routes and tables from being delivered: the stage, the
// gates, every route. Call it before the test emits: a new worker begins with what commits from then on.
func GoLive(t testing.TB, db Database, programs ...Program) {
	t.Helper()
	for _, p := range programs {
		if err := p.Register(t.Context()); err != nil {
			t.Fatalf("register: %v", err)
		}
	}
	exec(t, db, `select tidemark.stage_set('live', 'test')`)
	exec(t, db, `select tidemark.route_go_live(r.route_code, 'test') from tidemark.outbound_route r`)
	exec(t, db, `select tidemark.gate_set(g, true, 'test')
		from (select 'routes.enabled' union all select 'worker.' || w.worker || '.enabled' from tidemark.worker w where w.source <> 'kafka') g (g)`)
}

// Advance lets d pass for what waits: each retry is due by d earlier. The clock of the server cannot be set for a test.
func Advance(t testing.TB, db Database, d time.Duration) {
	t.Helper()
	const earlier = `set next_attempt_at = next_attempt_at - $1::float8 * interval '1 second' where next_attempt_at < 'infinity'`
	exec(t, db, `update tidemark.pending `+earlier, d.Seconds())
	exec(t, db, `update tidemark.pending_row `+earlier, d.Seconds())
}

func exec(t testing.TB, db Database, sql string, arguments ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
