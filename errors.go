package tidemark

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// What Tidemark refuses, each with the SQLSTATE that the database gives it. Ask with
// errors.Is of an error that has been through AsError.
var (
	// ErrUnknownType, TM001: the event type is not registered or not enabled.
	ErrUnknownType = errors.New("unknown event type")
	// ErrPayload, TM002: the payload is no object or does not fit the schema of its type, or
	// the event has an unknown field.
	ErrPayload = errors.New("bad payload")
	// ErrForbiddenKey, TM003: the payload holds a key that its domain forbids.
	ErrForbiddenKey = errors.New("forbidden key")
	// ErrNotFound, TM004: there is no such worker, route, gate or dead letter.
	ErrNotFound = errors.New("not found")
	// ErrArgument, TM005: an argument is out of its range.
	ErrArgument = errors.New("bad argument")
	// ErrIsolation, TM006: the transaction is not READ COMMITTED.
	ErrIsolation = errors.New("wrong isolation level")
	// ErrStandby, TM007: the server is a standby.
	ErrStandby = errors.New("on a standby")
	// ErrNotLive, TM008: the installation is not live, or is a copy of the one that is.
	ErrNotLive = errors.New("not live")
	// ErrGateClosed, TM009: a gate is closed, the worker or the route is paused, the command is off, or the installation
	// is not live.
	ErrGateClosed = errors.New("gate closed")
	// ErrAppendOnly, TM010: the log of events is not changed.
	ErrAppendOnly = errors.New("append-only")
	// ErrFenced, TM011: another instance has taken the cursor, or a standby of the server was promoted.
	ErrFenced = errors.New("fenced")
	// ErrRegression, TM012: a worker's cursor would have gone back.
	ErrRegression = errors.New("cursor would go back")
	// ErrResolved, TM013: the dead letter is resolved already, or its replay is pending; or a replay of a route or of dead letters is over;
	// or a request of the API was done, and its answer is erased.
	ErrResolved = errors.New("already resolved")
	// ErrDomain, TM014: the role that logged in may not emit into the domain.
	ErrDomain = errors.New("domain not granted")
	// ErrMaintenance, TM015: PostgreSQL maintains a table in another role's session, so that the login is not the caller's.
	ErrMaintenance = errors.New("inside maintenance")
)

// ErrSchema: the schema in the database is older than this module, or newer by a breaking migration. Client.Run of
// package consumer returns it; it has no SQLSTATE.
var ErrSchema = errors.New("the schema in the database does not fit this program")

var byCode = map[string]error{
	"TM001": ErrUnknownType,
	"TM002": ErrPayload,
	"TM003": ErrForbiddenKey,
	"TM004": ErrNotFound,
	"TM005": ErrArgument,
	"TM006": ErrIsolation,
	"TM007": ErrStandby,
	"TM008": ErrNotLive,
	"TM009": ErrGateClosed,
	"TM010": ErrAppendOnly,
	"TM011": ErrFenced,
	"TM012": ErrRegression,
	"TM013": ErrResolved,
	"TM014": ErrDomain,
	"TM015": ErrMaintenance,
}

// Error is a refusal by Tidemark.
type Error struct {
	Code    string // SQLSTATE, of the class TM
	Message string // what was wrong, and where
	Hint    string // what to do about it; may be empty

	cause error
}

// Error is code and message, in one line.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap gives the error of this package that belongs to the code, if this version
// knows it, and the error of the driver that the refusal came as, if it came from the database.
func (e *Error) Unwrap() []error {
	var errs []error
	if sentinel := byCode[e.Code]; sentinel != nil {
		errs = append(errs, sentinel)
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

// AsError turns an error of the database that has a code of the class TM, and what Emit finds of a payload, into an
// *Error. Every other error, nil too, is returned as it is. An error of the database is one that has the method
// SQLState() string, as those of pgx and lib/pq have.
func AsError(err error) error {
	var refused *Error
	if errors.As(err, &refused) {
		return err
	}
	var misfits Misfits
	if errors.As(err, &misfits) {
		return &Error{Code: "TM002", Message: misfits.Error(), Hint: misfits.hint(), cause: err}
	}
	var coded interface {
		error
		SQLState() string
	}
	if !errors.As(err, &coded) || len(coded.SQLState()) != 5 || coded.SQLState()[:2] != "TM" {
		return err
	}
	message, hint := fields(coded)
	return &Error{Code: coded.SQLState(), Message: message, Hint: hint, cause: err}
}

// fields are message and hint of an error of the database. Of a driver with neither way to ask, the message is its text.
func fields(err error) (message, hint string) {
	switch e := err.(type) { //nolint:errorlint // it is unwrapped already
	case *pgconn.PgError:
		return e.Message, e.Hint
	case interface{ Get(field byte) string }: // lib/pq
		return e.Get('M'), e.Get('H')
	}
	return err.Error(), ""
}
