package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

// Exit statuses, as tidemark --help lists them.
const (
	StatusOK          = 0
	StatusFailed      = 1
	StatusUsage       = 2
	StatusUnreachable = 3
	StatusSchema      = 4
	StatusRefused     = 5
	StatusLocked      = 6
	StatusInterrupted = 130

	// Of status and doctor, for watchdogs.
	StatusBad     = 1
	StatusUnknown = 2
)

type usageError struct{ error }

// Usagef is an error in the command line.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// EventName says which name is none of an event.
func EventName(err error, name string) error {
	if errors.Is(err, store.ErrEventName) {
		return Usagef("%q is %v", name, err)
	}
	return err
}

type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint adds to an error what to do about it.
func Hint(err error, hint string) error { return hinted{err, hint} }

// Exit ends the command with a status of its own. Without an error it prints nothing.
type Exit struct {
	error
	Status int
}

func (e Exit) Unwrap() error { return e.error }

// ExitWith is an Exit with an error to print, or nil.
func ExitWith(status int, err error) error { return Exit{err, status} }

// report prints the error and returns the exit status.
func report(cmd *cobra.Command, err error) int {
	if err == nil {
		return StatusOK
	}
	var exit Exit
	if errors.As(err, &exit) && exit.error == nil {
		return exit.Status
	}
	text, hint, status := describe(cmd, err)
	if exit.error != nil {
		status = exit.Status
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "tidemark: %s\n", oneline.Clean(text))
	if hint != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "hint: %s\n", oneline.Clean(hint))
	}
	return status
}

// Describe is the text and the hint that the command would print for the error.
func Describe(err error) (text, hint string) {
	text, hint, _ = describe(&cobra.Command{}, err)
	return text, hint
}

func describe(cmd *cobra.Command, err error) (text, hint string, status int) {
	var usage usageError
	var refused *tidemark.Error
	var roles *migrate.RolesError
	var unreachable *pgconn.ConnectError
	var pgErr *pgconn.PgError
	var withHint hinted
	if errors.As(err, &withHint) {
		hint = withHint.hint
	}
	switch {
	case errors.As(err, &usage):
		return err.Error(), cmp.Or(hint, cmd.CommandPath()+" --help"), StatusUsage
	case errors.Is(err, context.Canceled):
		return "interrupted", hint, StatusInterrupted
	case errors.Is(err, migrate.ErrOlder), errors.Is(err, migrate.ErrNewer):
		return err.Error(), hint, StatusSchema
	case errors.As(err, &roles):
		return err.Error(), hint, StatusRefused
	case errors.As(err, &unreachable):
		return "cannot reach the database: " + connectFailure(unreachable),
			cmp.Or(hint, "Name it with --database-url or TIDEMARK_DATABASE_URL."), StatusUnreachable
	case errors.As(err, &refused):
		return err.Error(), cmp.Or(hint, refused.Hint), StatusRefused
	case errors.As(err, &pgErr):
		return describeSQL(cmd, err, pgErr, hint)
	case lostConnection(err):
		return "the connection to the database was lost: " + err.Error(), hint, StatusUnreachable
	}
	return err.Error(), hint, StatusFailed
}

// describeSQL is for PostgreSQL's own errors.
func describeSQL(cmd *cobra.Command, err error, pgErr *pgconn.PgError, hint string) (string, string, int) {
	text := strings.Replace(err.Error(), pgErr.Error(), pgErr.Code+": "+pgErr.Message, 1)
	if pgErr.Detail != "" && pgErr.Code != "23514" { // there it is the whole row
		text += ": " + pgErr.Detail
	}
	if role := cmd.Annotations[roleAnnotation]; pgErr.Code == "42501" && role != "" && pgErr.Hint == "" {
		hint = cmp.Or(hint, needsRole(cmd, role))
	}
	hint = cmp.Or(hint, pgErr.Hint)
	switch {
	case pgErr.Code == "23514":
		return text, cmp.Or(hint, "The constraint's name says what is taken."), StatusRefused
	case pgErr.Code == "42501", pgErr.Code[:2] == "22", pgErr.Code[:2] == "23", pgErr.Code[:2] == "54":
		return text, hint, StatusRefused
	case pgErr.Code[:2] == "08", pgErr.Code[:3] == "57P", pgErr.Code == "53300":
		return text, hint, StatusUnreachable
	case pgErr.Code == "55P03", pgErr.Code[:2] == "40":
		return text, hint, StatusLocked
	}
	return text, hint, StatusFailed
}

func needsRole(cmd *cobra.Command, role string) string {
	return fmt.Sprintf("%q needs a member of the role %s.", cmd.CommandPath(), role)
}

// connectFailure says where the connection was to go and why it failed. The error's own text has a line for each
// attempt.
func connectFailure(e *pgconn.ConnectError) string {
	host := e.Config.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(e.Config.Port)))
	}
	where := fmt.Sprintf("%s as %s at %s", e.Config.Database, e.Config.User, host)
	var pgErr *pgconn.PgError
	var lookup *net.DNSError
	var network *net.OpError
	switch {
	case errors.As(e, &pgErr):
		return fmt.Sprintf("%s: %s: %s", where, pgErr.Code, pgErr.Message)
	case errors.As(e, &lookup):
		return fmt.Sprintf("%s: %s", where, lookup.Err)
	case errors.As(e, &network):
		return fmt.Sprintf("%s: %v", where, network.Err)
	}
	return fmt.Sprintf("%s: %v", where, e.Unwrap())
}

func lostConnection(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
