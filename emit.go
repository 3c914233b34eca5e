package tidemark

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/emit"
)

// Querier is what Emit needs of a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Emit emits an event in the transaction tx by tidemark.emit_strict, and returns its id: rolled back, there is no event. A
// type that is not registered or not enabled is an error. With an IdempotencyKey that was used before, nothing is stored and
// the id is that of the first event.
//
// The payload must fit the whole JSON Schema that its type has when the statement begins; the database alone checks a part
// of it. Schemas are kept in memory, and each emit asks whether they still hold: the first emit of a type that has a schema,
// and the first after a change, take two statements, every other one takes one.
//
// The error is ErrUnknownType, ErrPayload, ErrForbiddenKey, ErrArgument, ErrDomain or ErrMaintenance where Tidemark refuses the event. Roll
// tx back then: where the database refused it, PostgreSQL allows nothing else.
func Emit(ctx context.Context, tx Querier, e Event) (id string, err error) {
	return emitOne(ctx, rows(tx), e)
}

// EmitMany emits events in one statement, as Emit does one. The ids stand in the order of the events. An
// event that is refused refuses them all, in a transaction or without one: nothing is stored.
func EmitMany(ctx context.Context, tx Querier, events []Event) (ids []string, err error) {
	return emitMany(ctx, rows(tx), events)
}

// EmitSQL is Emit for database/sql, with the driver github.com/jackc/pgx/v5/stdlib.
func EmitSQL(ctx context.Context, tx *sql.Tx, e Event) (id string, err error) {
	return emitOne(ctx, rowsSQL(tx), e)
}

// EmitManySQL is EmitMany for database/sql.
func EmitManySQL(ctx context.Context, tx *sql.Tx, events []Event) (ids []string, err error) {
	return emitMany(ctx, rowsSQL(tx), events)
}

func rows(tx Querier) emit.Query {
	return func(ctx context.Context, sql string, args ...any) emit.Row { return tx.QueryRow(ctx, sql, args...) }
}

func rowsSQL(tx *sql.Tx) emit.Query {
	return func(ctx context.Context, sql string, args ...any) emit.Row {
		return tx.QueryRowContext(ctx, sql, args...)
	}
}

func emitOne(ctx context.Context, query emit.Query, e Event) (string, error) {
	id, err := emit.One(ctx, query, true, emit.Event{Domain: e.Domain, Type: e.Type, Payload: e.Payload}, e.arguments())
	if err != nil {
		return "", AsError(err)
	}
	return *id, nil
}

func emitMany(ctx context.Context, query emit.Query, events []Event) ([]string, error) {
	document, err := document(events)
	if err != nil {
		return nil, err
	}
	checked := make([]emit.Event, len(events))
	for i, e := range events {
		checked[i] = emit.Event{Domain: e.Domain, Type: e.Type, Payload: e.Payload}
	}
	stored, err := emit.Many(ctx, query, true, checked, document)
	if err != nil {
		return nil, AsError(err)
	}
	var ids []string
	for _, id := range stored {
		ids = append(ids, *id)
	}
	return ids, nil
}

// document is the argument of emit_many_strict.
func document(events []Event) (string, error) {
	text, err := json.Marshal(events)
	if err == nil {
		return string(text), nil
	}
	for i, e := range events {
		// JSON has no text for it, so that the database cannot be the one to refuse it.
		if _, unwritable := e.OccurredAt.MarshalText(); unwritable != nil {
			return "", &Error{
				Code: "TM005", Message: fmt.Sprintf("event %d: occurred_at must be a time of the years 1 to 9999", i+1),
				Hint: "Leave it out where it is not known: then it is the time of the emit.",
			}
		}
	}
	return "", err
}

func (e Event) arguments() []any {
	var payload *string
	if e.Payload != nil {
		text := string(e.Payload)
		payload = &text
	}
	var occurred *time.Time
	if !e.OccurredAt.IsZero() {
		occurred = &e.OccurredAt
	}
	return []any{
		e.Domain, e.Type, payload, e.Key, e.Stream, string(e.Lane), string(e.Severity), e.SubjectTable, e.SubjectRef,
		e.IdempotencyKey, e.Trace, e.Actor, occurred,
	}
}
