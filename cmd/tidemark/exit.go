package main

import (
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
	"github.com/tidemarkhq/tidemark/migrate"
)

// Exit statuses, as `tidemark --help` tells them.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitSchema      = 4
	exitRefused     = 5
	exitInterrupted = 130
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// exitError ends the command with a status of its own. Without an error in it, nothing is
// said: what is to be said has been said.
type exitError struct {
	error
	status int
}

func (e exitError) Unwrap() error { return e.error }

// report tells what went wrong with cmd, if something did, and returns the exit status.
func report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitFine
	}
	var own exitError
	if errors.As(err, &own) && own.error == nil {
		return own.status
	}
	text, hint, status := describe(cmd, err)
	if own.error != nil {
		status = own.status
	}
	printError(cmd.ErrOrStderr(), text, hint)
	return status
}

func printError(w io.Writer, text, hint string) {
	fmt.Fprintf(w, "tidemark: %s\n", oneline.Clean(text))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", oneline.Clean(hint))
	}
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
		return err.Error(), firstOf(hint, cmd.CommandPath()+" --help"), exitUsage
	case errors.Is(err, context.Canceled):
		return "interrupted", hint, exitInterrupted
	case errors.Is(err, migrate.ErrOlder), errors.Is(err, migrate.ErrNewer):
		return err.Error(), hint, exitSchema
	case errors.As(err, &roles):
		return err.Error(), hint, exitRefused
	case errors.As(err, &unreachable):
		return "cannot reach the database: " + connectFailure(unreachable), firstOf(hint, "Name it with --database-url or TIDEMARK_DATABASE_URL."), exitUnreachable
	case errors.As(err, &refused):
		return err.Error(), firstOf(hint, refused.Hint), exitRefused
	case errors.As(err, &pgErr):
		return describeSQL(cmd, err, pgErr, hint)
	case lostConnection(err):
		return "the connection to the database was lost: " + err.Error(), hint, exitUnreachable
	default:
		return err.Error(), hint, exitFailed
	}
}

// describeSQL is for errors of PostgreSQL's own.
func describeSQL(cmd *cobra.Command, err error, pgErr *pgconn.PgError, hint string) (string, string, int) {
	text := strings.Replace(err.Error(), pgErr.Error(), pgErr.Code+": "+pgErr.Message, 1)
	if pgErr.Detail != "" && pgErr.Code != "23514" { // there it is the whole row
		text += ": " + pgErr.Detail
	}
	if role := cmd.Annotations[roleAnnotation]; pgErr.Code == "42501" && role != "" {
		hint = firstOf(hint, needsRole(cmd, role))
	}
	hint = firstOf(hint, pgErr.Hint)
	switch {
	case pgErr.Code == "23514":
		return text, firstOf(hint, cmd.CommandPath()+" --help tells what it takes."), exitRefused
	case pgErr.Code == "42501", pgErr.Code[:2] == "22", pgErr.Code[:2] == "23", pgErr.Code[:2] == "54":
		return text, hint, exitRefused
	case pgErr.Code[:2] == "08", pgErr.Code[:3] == "57P", pgErr.Code == "53300":
		return text, hint, exitUnreachable
	default:
		return text, hint, exitFailed
	}
}

func needsRole(cmd *cobra.Command, role string) string {
	return fmt.Sprintf("%q needs a member of the role %s.", cmd.CommandPath(), role)
}

// connectFailure is where the connection was to go and what it came to. The error's own
// text is a line per attempt, with all we know in each.
func connectFailure(e *pgconn.ConnectError) string {
	where := fmt.Sprintf("%s as %s at %s", e.Config.Database, e.Config.User, e.Config.Host)
	if !strings.HasPrefix(e.Config.Host, "/") {
		where = fmt.Sprintf("%s as %s at %s", e.Config.Database, e.Config.User,
			net.JoinHostPort(e.Config.Host, strconv.Itoa(int(e.Config.Port))))
	}
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
	default:
		return fmt.Sprintf("%s: %v", where, e.Unwrap())
	}
}

func lostConnection(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
