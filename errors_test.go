package tidemark_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sql"
)

func TestAsError(t *testing.T) {
	t.Parallel()
	pgErr := &pgconn.PgError{Code: "TM004", Message: `there is no worker "x"`, Hint: "Workers: …"}

	err := tidemark.AsError(fmt.Errorf("run: %w", pgErr))

	var refused *tidemark.Error
	if !errors.As(err, &refused) || refused.Code != "TM004" || refused.Hint != "Workers: …" {
		t.Fatalf("got %#v", err)
	}
	if got, want := err.Error(), `TM004: there is no worker "x"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, tidemark.ErrArgument) {
		t.Error("TM004 is not ErrNotFound alone")
	}
	var cause *pgconn.PgError
	if !errors.As(err, &cause) || cause != pgErr {
		t.Error("the error of the database is lost")
	}
	if again := tidemark.AsError(err); again != err {
		t.Errorf("a second AsError changed it: %v", again)
	}
}

// coded is an error of a driver that is not pgx; asked one that tells message and hint as lib/pq does.
type (
	coded struct{ error }
	asked struct{ coded }
)

func (coded) SQLState() string      { return "TM004" }
func (asked) Get(field byte) string { return string(field) + " of the server" }

func TestAsErrorOfOtherDrivers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause         error
		message, hint string
	}{
		{coded{errors.New("no worker")}, "no worker", ""},
		{asked{}, "M of the server", "H of the server"},
	} {
		var refused *tidemark.Error
		err := tidemark.AsError(fmt.Errorf("run: %w", c.cause))
		if !errors.As(err, &refused) || refused.Message != c.message || refused.Hint != c.hint || !errors.Is(err, tidemark.ErrNotFound) || !errors.Is(err, c.cause) {
			t.Errorf("%v became %#v", c.cause, err)
		}
	}
}

func TestAsErrorLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("TM004"), &pgconn.PgError{Code: "42501"}, &pgconn.PgError{}} {
		if got := tidemark.AsError(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	unknown := tidemark.AsError(&pgconn.PgError{Code: "TM999", Message: "of the future"})
	if got, want := unknown.Error(), "TM999: of the future"; got != want || errors.Is(unknown, tidemark.ErrNotFound) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every code that the SQL raises has an error here.
func TestEveryCodeHasAnError(t *testing.T) {
	t.Parallel()
	files, err := sql.Code(sql.Files)
	if err != nil || len(files) == 0 {
		t.Fatal("no SQL", err)
	}
	raised := regexp.MustCompile(`errcode = '(TM\d{3})'`)
	for _, file := range files {
		for _, m := range raised.FindAllStringSubmatch(file.Text, -1) {
			if len((&tidemark.Error{Code: m[1]}).Unwrap()) == 0 {
				t.Errorf("%s raises %s, which has no error", file.Path, m[1])
			}
		}
	}
}
