package tidemark

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Querier is what Emit needs of a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const (
	emitOne = `select tidemark.emit_strict(
	domain => $1, type => $2, payload => coalesce($3::jsonb, '{}'), key => nullif($4, ''), stream => nullif($5, ''),
	lane => nullif($6, '')::tidemark.lane, severity => nullif($7, '')::tidemark.severity,
	subject_table => nullif($8, ''), subject_ref => nullif($9, ''), idempotency_key => nullif($10, ''),
	trace => nullif($11, ''), actor => nullif($12, ''), occurred_at => $13)::text`
	emitMany = `select to_json(array_agg(m.event_id::text order by m.position))::text from tidemark.emit_many_strict($1::text::jsonb) m`
)

// Emit emits an event in the transaction tx by tidemark.emit_strict, and returns its id:
// rolled back, there is no event. A type that is not registered or not enabled is an error. With an IdempotencyKey that was used before, nothing is stored and the id is that
// of the first event.
//
// The error is ErrUnknownType, ErrPayload, ErrForbiddenKey or ErrArgument where Tidemark
// refuses the event; then tx can only be rolled back.
func Emit(ctx context.Context, tx Querier, e Event) (id string, err error) {
	err = tx.QueryRow(ctx, emitOne, e.arguments()...).Scan(&id)
	return id, AsError(err)
}

// EmitMany emits events in one statement. The ids stand in the order of the events. An
// event that is refused refuses them all, in a transaction or without one: nothing is stored.
func EmitMany(ctx context.Context, tx Querier, events []Event) (ids []string, err error) {
	document, err := document(events)
	if err != nil {
		return nil, err
	}
	var text *string
	if err := tx.QueryRow(ctx, emitMany, document).Scan(&text); err != nil {
		return nil, AsError(err)
	}
	return eventIDs(text)
}

// EmitSQL is Emit for database/sql, with the driver github.com/jackc/pgx/v5/stdlib.
func EmitSQL(ctx context.Context, tx *sql.Tx, e Event) (id string, err error) {
	err = tx.QueryRowContext(ctx, emitOne, e.arguments()...).Scan(&id)
	return id, AsError(err)
}

// EmitManySQL is EmitMany for database/sql.
func EmitManySQL(ctx context.Context, tx *sql.Tx, events []Event) (ids []string, err error) {
	document, err := document(events)
	if err != nil {
		return nil, err
	}
	var text *string
	if err := tx.QueryRowContext(ctx, emitMany, document).Scan(&text); err != nil {
		return nil, AsError(err)
	}
	return eventIDs(text)
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

// eventIDs reads what emitMany returned; null: there were no events.
func eventIDs(text *string) (ids []string, err error) {
	if text == nil {
		return nil, nil
	}
	err = json.Unmarshal([]byte(*text), &ids)
	return ids, err
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
