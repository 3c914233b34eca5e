package tidemark

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Querier is what Emit needs of a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// SQLQuerier is what EmitSQL needs of a *sql.Tx, a *sql.Conn or a *sql.DB. Transactions of other libraries are one too, or hold
// one: *sqlx.Tx, (*gorm.DB).Statement.ConnPool, bun.Tx.Tx, *ent.Tx with the feature sql/execquery.
type SQLQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
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
	return emitOne(ctx, rows(tx), sqlEmitStrict, e)
}

// EmitIfRegistered is Emit by tidemark.emit: of a type that is not registered or not enabled nothing is stored, the
// database counts the event, and the id is empty. It is for a program that is deployed before its types are registered.
func EmitIfRegistered(ctx context.Context, tx Querier, e Event) (id string, err error) {
	return emitOne(ctx, rows(tx), sqlEmit, e)
}

// EmitMany emits events in one statement, as Emit does one. The ids stand in the order of the events. An
// event that is refused refuses them all, in a transaction or without one: nothing is stored.
func EmitMany(ctx context.Context, tx Querier, events []Event) (ids []string, err error) {
	return emitMany(ctx, rows(tx), sqlEmitManyStrict, events)
}

// EmitManyIfRegistered is EmitMany by tidemark.emit_many: events of a type that is not registered or not enabled are left
// out, as by EmitIfRegistered, and their ids are empty.
func EmitManyIfRegistered(ctx context.Context, tx Querier, events []Event) (ids []string, err error) {
	return emitMany(ctx, rows(tx), sqlEmitMany, events)
}

// EmitSQL is Emit for database/sql and what builds on it, with the driver github.com/jackc/pgx/v5/stdlib or github.com/lib/pq.
func EmitSQL(ctx context.Context, tx SQLQuerier, e Event) (id string, err error) {
	return emitOne(ctx, rowsSQL(tx), sqlEmitStrict, e)
}

// EmitManySQL is EmitMany for database/sql, as EmitSQL.
func EmitManySQL(ctx context.Context, tx SQLQuerier, events []Event) (ids []string, err error) {
	return emitMany(ctx, rowsSQL(tx), sqlEmitManyStrict, events)
}

// row is a pgx.Row or a sqlRow.
type row interface{ Scan(targets ...any) error }

// query sends a statement that gives one row.
type query func(ctx context.Context, sql string, args ...any) row

func rows(tx Querier) query {
	return func(ctx context.Context, sql string, args ...any) row { return tx.QueryRow(ctx, sql, args...) }
}

func rowsSQL(tx SQLQuerier) query {
	return func(ctx context.Context, sql string, args ...any) row {
		rows, err := tx.QueryContext(ctx, sql, args...) //nolint:rowserrcheck // in Scan
		return sqlRow{rows, err}
	}
}

// sqlRow is the one row of a query, as a *sql.Row is.
type sqlRow struct {
	rows *sql.Rows
	err  error
}

func (r sqlRow) Scan(targets ...any) error {
	if r.err != nil {
		return r.err
	}
	defer func() { _ = r.rows.Close() }()
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), sql.ErrNoRows)
	}
	return cmp.Or(r.rows.Scan(targets...), r.rows.Close())
}

// emitOne emits an event by the statement. The id is empty where the function returns null.
func emitOne(ctx context.Context, query query, statement string, e Event) (string, error) {
	if e.Trace == "" {
		e.Trace = traceOf(ctx)
	}
	if field := e.notUTF8(); field != "" {
		return "", refusedText("", field)
	}
	of := name{e.Domain, e.Type}
	arguments := e.arguments()
	known := recall(of)
	for fresh := false; ; fresh = true {
		checked := known.digest
		if problem := known.check(e.Payload); problem != nil {
			if fresh {
				return "", AsError(Misfits{{Event: e, Problem: problem}})
			}
			checked = "" // The schema may have changed since: ask for that of now.
		}
		var digest, schema, id *string
		if err := query(ctx, statement, append(arguments[:len(arguments):len(arguments)], checked)...).Scan(&digest, &schema, &id); err != nil {
			return "", AsError(err)
		}
		if digest == nil {
			return orEmpty(id), nil
		}
		if *digest != known.digest {
			known = newContract(*digest, *schema)
			keep(of, known)
		}
	}
}

// emitMany emits events by the statement. The id of an event is empty where the function returns null for it.
func emitMany(ctx context.Context, query query, statement string, events []Event) ([]string, error) {
	events = traced(ctx, events)
	document, err := document(events)
	if err != nil {
		return nil, err
	}
	known := map[name]contract{}
	for _, e := range events {
		of := name{e.Domain, e.Type}
		if _, found := known[of]; !found {
			known[of] = recall(of)
		}
	}
	for fresh := map[name]bool{}; ; {
		misfits := misfits(events, known)
		if settled(misfits, fresh) {
			return nil, AsError(misfits)
		}
		contracts, err := json.Marshal(checked(known, misfits))
		if err != nil {
			return nil, err
		}
		var changed, stored *string
		if err := query(ctx, statement, document, string(contracts)).Scan(&changed, &stored); err != nil {
			return nil, AsError(err)
		}
		if changed == nil {
			return ids(stored)
		}
		var others []registered
		if err := json.Unmarshal([]byte(*changed), &others); err != nil {
			return nil, err
		}
		for _, r := range others {
			of := name{r.Domain, r.Type}
			fresh[of] = true
			if known[of].digest != r.Digest {
				known[of] = newContract(r.Digest, string(r.Schema))
				keep(of, known[of])
			}
		}
	}
}

// ids reads an array of ids, some of them null. No array: there were no events.
func ids(array *string) (all []string, err error) {
	if array == nil {
		return nil, nil
	}
	var stored []*string
	err = json.Unmarshal([]byte(*array), &stored)
	for _, id := range stored {
		all = append(all, orEmpty(id))
	}
	return all, err
}

func orEmpty(id *string) string {
	if id == nil {
		return ""
	}
	return *id
}

// document is the argument of emit_many and emit_many_strict.
func document(events []Event) (string, error) {
	for i, e := range events {
		if field := e.notUTF8(); field != "" {
			return "", refusedText(fmt.Sprintf("event %d: ", i+1), field)
		}
	}
	text, err := json.Marshal(events)
	if err == nil {
		return string(text), nil
	}
	for i, e := range events {
		// JSON has no text for it, so that the database cannot be the one to refuse it.
		if _, unwritable := e.OccurredAt.MarshalText(); unwritable != nil {
			return "", &Error{
				Code: "TM005", Message: fmt.Sprintf("event %d: occurred_at must be a time of the years 1 to 9999", i+1),
				Hint: "Leave it out if you do not know it: it is then the time of the emit.",
			}
		}
	}
	return "", err
}

// notUTF8 names the first text that is not UTF-8, if there is one: encoding/json would replace its bytes, and make one
// idempotency key or ordering key of two.
func (e Event) notUTF8() string {
	for _, field := range [...]struct{ name, text string }{
		{"domain", e.Domain},
		{"type", e.Type},
		{"key", e.Key},
		{"stream", e.Stream},
		{"lane", string(e.Lane)},
		{"severity", string(e.Severity)},
		{"subject_table", e.SubjectTable},
		{"subject_ref", e.SubjectRef},
		{"idempotency_key", e.IdempotencyKey},
		{"trace", e.Trace},
		{"actor", e.Actor},
	} {
		if !utf8.ValidString(field.text) {
			return field.name
		}
	}
	if !utf8.Valid(e.Payload) {
		return "payload"
	}
	return ""
}

func refusedText(place, field string) error {
	return &Error{Code: "TM005", Message: place + field + " is not UTF-8", Hint: "Convert the text to UTF-8 before the emit."}
}

// arguments are those of tidemark.emit and tidemark.emit_strict, in their order.
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
