package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/tidemarkhq/tidemark"
)

// SQLSTATEs whose cause is the server's state and not the statement: tidemark.is_transient in Go. TestTransient holds
// the two lists equal.
var (
	transientClasses = []string{"08", "25", "40", "53", "57", "58"}
	transientCodes   = []string{"55P03", "XX001", "XX002", "TM009"}
)

// Transient reports whether the same statement may succeed later: the database is not there, or not now.
func Transient(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return transientCode(refused.Code)
	}
	if errors.Is(err, context.Canceled) {
		return false // by this process
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || // no answer in time
		errors.As(err, &connect) || errors.As(err, &network) || // no connection, or it broke
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) // closed before the statement was sent
}

// Is reports whether the database refused with one of tidemark's errors. The statements of a worker return errors as they come.
func Is(err, refusal error) bool { return errors.Is(tidemark.AsError(err), refusal) }

// HasCode reports whether the server refused the statement with this SQLSTATE.
func HasCode(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}

// TimedOut reports whether the server ended the statement because it took longer than it may.
func TimedOut(err error) bool { return HasCode(err, Timeout) }

// SessionEnded reports whether the session ended while the statement ran: the server ended it with an error, or the connection
// broke, or no answer came in time. A function can bring that about: an error ends the session that has set exit_on_error.
func SessionEnded(err error) bool {
	if err == nil || unsent(err) {
		return false
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.SeverityUnlocalized == "FATAL"
	}
	return Transient(err)
}

// WithKey adds to an error of a duplicate row in one of tidemark's tables which key it has: numbers, where evidence is recorded.
func WithKey(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23505" || refused.SchemaName != "tidemark" {
		return err
	}
	return fmt.Errorf("%w: %s", err, refused.Detail)
}

// Refused reports whether it is certain that the statement changed nothing: the server refused it, or never got it.
func Refused(err error) bool {
	if unsent(err) {
		return true
	}
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR" // FATAL ends a session also after a commit
}

// unsent reports whether it is certain that the server did not get the statement. A server that refuses the connection does so with an
// error of its own, FATAL, in the ConnectError. Where a connection breaks while the answer to a commit or a batch is awaited, pgx says
// that it is closed and that this is safe to try again, as it does where it was closed before.
func unsent(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
}

// TooMuch reports whether the answer was more than could be had: it did not come in time, or the server has no room for
// it. The same question for less may succeed.
func TooMuch(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return slices.Contains([]string{Timeout, outOfMemory, limitExceeded}, refused.Code)
	}
	var connect *pgconn.ConnectError // then nothing was asked
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &connect)
}

// SQLSTATEs of a server that cannot make up its answer.
const (
	outOfMemory   = "53200"
	limitExceeded = "54000"
)

func transientCode(code string) bool {
	return len(code) == 5 && slices.Contains(transientClasses, code[:2]) || slices.Contains(transientCodes, code)
}
