package test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// one reads a single value.
func one[T any](s session, sql string, args ...any) T {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	return got
}

// column reads a column.
func column[T any](s session, sql string, args ...any) []T {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	return got
}

// wantRows compares a column of text with what is wanted.
func (s session) wantRows(sql string, want ...string) {
	s.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, column[string](s, sql)); diff != "" {
		s.t.Errorf("%s\n(-want +got)\n%s", sql, diff)
	}
}

// try runs a statement in a subtransaction that is left behind only by success, and returns its error. It
// fails the test on an error that the server did not send.
func (s session) try(sql string, args ...any) *pgconn.PgError {
	s.t.Helper()
	inTransaction := s.conn.PgConn().TxStatus() == 'T'
	if inTransaction {
		s.exec("savepoint try")
	}
	_, err := s.conn.Exec(context.Background(), sql, args...)
	var pgErr *pgconn.PgError
	if err != nil && !errors.As(err, &pgErr) {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
	if inTransaction && err != nil {
		s.exec("rollback to savepoint try")
	}
	return pgErr
}

// refused wants the statement to fail with the code and the text, in its message or its hint.
func (s session) refused(code, text, sql string, args ...any) {
	s.t.Helper()
	err := s.try(sql, args...)
	switch {
	case err == nil:
		s.t.Errorf("%s: no error, want %s", sql, code)
	case err.Code != code || !strings.Contains(err.Message+"\n"+err.Hint, text):
		s.t.Errorf("%s: got %v (%s), want %s with %q", sql, err, err.Hint, code, text)
	}
}

// later runs a statement that is to wait for a lock. Its result comes with the returned function.
func later[T any](s session, sql string, args ...any) (result func() (T, error)) {
	var got T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.conn.QueryRow(context.Background(), sql, args...).Scan(&got)
	}()
	return func() (T, error) {
		<-done
		return got, err
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}
