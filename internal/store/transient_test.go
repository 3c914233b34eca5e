package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Go and SQL agree on every code that PostgreSQL or Tidemark can raise.
func TestTransient(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var codes, want []string
	for _, a := range "0123456789" + letters {
		for _, b := range "0123456789" + letters {
			codes = append(codes, string(a)+string(b)+"000")
		}
	}
	classes := strings.Fields("00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F 34 38 39 3B 3D 3F 40 42 44 53 54 55 57 58 72 F0 HV P0 TM XX")
	for _, class := range classes {
		for _, c := range "0123456789P" {
			for _, d := range "0123456789" {
				for _, e := range "0123456789" + letters {
					codes = append(codes, class+string(c)+string(d)+string(e))
				}
			}
		}
	}
	for _, code := range codes {
		if store.Transient(&pgconn.PgError{Code: code}) {
			want = append(want, code)
		}
	}
	rows, err := tidemarktest.NewDB(t).Connect(t).Query(t.Context(),
		`select code from unnest($1::text[]) with ordinality c (code, n) where tidemark.is_transient(code) order by n`, codes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(got) == 0 {
		t.Errorf("of %d codes (-Go +SQL)\n%s%v", len(codes), diff, err)
	}
	for _, code := range []string{"", "0", "08", "080000", "08\x00"} {
		if store.Transient(&pgconn.PgError{Code: code}) {
			t.Errorf("%q is no SQLSTATE", code)
		}
	}
}

func TestTransientWithoutSQLState(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, err := range []error{
		context.DeadlineExceeded, reset, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, &net.DNSError{Err: "no such host"},
		closed(t), unreachable(t),
	} {
		if wrapped := fmt.Errorf("settle: %w", err); !store.Transient(wrapped) {
			t.Errorf("%v is transient", err)
		}
	}
	for _, err := range []error{
		nil, context.Canceled, errors.New("any other"), store.ErrHeld, store.ErrSettled, pgx.ErrNoRows, pgx.ErrTxCommitRollback,
		fmt.Errorf("connect: %w", errors.Join(reset, &pgconn.PgError{Code: "28P01"})),
	} {
		if store.Transient(err) {
			t.Errorf("%v is not transient", err)
		}
	}
}

// Of a duplicate in tidemark's evidence the error names the key, which is numbers; of one in another table it does not, which may
// hold what the application's users wrote.
func TestWithKey(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewDB(t).Connect(t)
	twice := func(table, columns, values string) string {
		row := fmt.Sprintf("insert into %s (%s) values (%s);", table, columns, values)
		_, err := conn.Exec(t.Context(), row+row)
		return store.WithKey(err).Error()
	}
	if got := twice("tidemark.attempt", "worker_id, route_id, seq, attempt_no, outcome", "1, 2, 34, 1, 'sent'"); !strings.Contains(got, "(1, 2, 34, 1)") {
		t.Error(got)
	}
	if _, err := conn.Exec(t.Context(), "create table person (name text primary key)"); err != nil {
		t.Fatal(err)
	}
	if got := twice("person", "name", "'Ada'"); strings.Contains(got, "Ada") {
		t.Error(got)
	}
}

// closed is what a statement gives on a connection that was closed.
func closed(t *testing.T) error {
	t.Helper()
	conn := tidemarktest.NewDB(t).Connect(t)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "select 1")
	return err
}

// unreachable is what connecting gives where no server listens.
func unreachable(t *testing.T) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), "postgres://x@"+address+"/x?sslmode=disable")
	if err == nil {
		_ = conn.Close(t.Context())
	}
	return err
}

// A session that has ended is told from a statement that was refused, and from a database that is away.
func TestSessionEnded(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&pgconn.PgError{Code: "P0001", SeverityUnlocalized: "FATAL"}: true,
		&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}: true,
		&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "ERROR"}: false,
		fmt.Errorf("read: %w", io.ErrUnexpectedEOF):                  true,
		fmt.Errorf("read: %w", syscall.ECONNRESET):                   true,
		&pgconn.ConnectError{}:                                       false,
		context.Canceled:                                             false,
	} {
		if got := store.SessionEnded(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	if store.SessionEnded(nil) {
		t.Error("no error")
	}
}

// A server that refuses the connection got no statement, though it ends that connection with an error of its own.
func TestConnectionIsRefused(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `create role tidemark_test_refused login connection limit 0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = db.Pool.Exec(context.Background(), `drop role tidemark_test_refused`) })
	config := db.Pool.Config()
	config.ConnConfig.User = "tidemark_test_refused"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `select 1`)
	if !store.HasCode(err, "53300") || !store.Refused(err) || store.SessionEnded(err) || !store.Transient(err) {
		t.Errorf("%v: refused %v, ended %v, transient %v", err, store.Refused(err), store.SessionEnded(err), store.Transient(err))
	}
}

// A lost answer to a commit, sent alone or in a batch, means that the session has ended. Whether the server committed is not known.
func TestAnswerOfACommitIsLost(t *testing.T) {
	t.Parallel()
	pool, lose := testserver.Deaf(t, tidemarktest.NewDB(t).Pool)
	for name, commit := range map[string]func(pgx.Tx) error{
		"alone": func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
		"in a batch": func(tx pgx.Tx) error {
			var batch pgx.Batch
			batch.Queue("commit")
			return tx.SendBatch(t.Context(), &batch).Close()
		},
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lose.Store(true)
		err = commit(tx)
		if err == nil || store.Refused(err) || !store.SessionEnded(err) {
			t.Errorf("%s: %v: refused %v, ended %v", name, err, store.Refused(err), store.SessionEnded(err))
		}
		_ = tx.Rollback(t.Context()) // gives the connection back
	}
}
