package main

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

//go:embed schema.sql
var schema string

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

func TestBook(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	conn := db.Connect(t)
	if _, err := conn.PgConn().Exec(t.Context(), schema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, `insert into closing values (now() + interval '1 hour')`)
	for _, payload := range []string{
		`{"id": "1", "customer": "ada", "cents": 1200}`, `{"id": "2", "customer": "ada", "cents": 300}`, `{"no": "order"}`,
	} {
		if _, err := tidemark.Emit(t.Context(), conn, tidemark.Event{Domain: "shop", Type: "order.created", Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}

	// Two instances: one works, the other waits for its lease.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() { ended <- run(ctx, db.URL) }()
	}
	eventually(t, conn, `select count(*)::text from tidemark.outbound_route where worker = 'ledger'`, "1")
	tidemarktest.GoLive(t, conn)

	eventually(t, conn, `select coalesce(string_agg(error_detail || ' ' || attempts, ', '), '') from tidemark.dead_letter`,
		"not an order: id and customer are needed 1")
	eventually(t, conn, `select count(*)::text from tidemark.pending
		where last_error = 'handler: the books are closed' and next_attempt_at > now() + interval '50 minutes'`, "2")
	exec(t, conn, `delete from closing`)
	tidemarktest.Advance(t, conn, time.Hour)
	eventually(t, conn, `select coalesce(string_agg(customer || ' ' || cents, ', '), '') from balance`, "ada 1500")
	eventually(t, conn, `select coalesce(string_agg(order_id, ' ' order by order_id), '') from entry`, "1 2")
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func eventually(t *testing.T, conn *pgx.Conn, sql, want string) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		var got string
		if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\ngot %q, want %q", sql, got, want)
		}
	}
}
