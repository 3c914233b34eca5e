package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/intake"
)

// A batch ends at batchLines lines or at batchBytes of payloads, whichever comes first.
const (
	batchLines = 1000
	batchBytes = 4 << 20
)

// emitFlags are the flags of tidemark emit beside the fields of an event.
type emitFlags struct {
	file             string
	ndjson           bool
	cloudEvents      bool
	ignoreAttributes bool
	carryOn          bool
	strict           bool
}

// lineResult is the result of a line.
type lineResult struct {
	Line    int        `json:"line"`
	EventID *string    `json:"event_id"` // null: nothing was stored
	Error   *lineError `json:"error,omitempty"`
}

type lineError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// lineEmitter emits the events of a reader.
type lineEmitter struct {
	session *cli.Session
	reader  *intake.Reader
	strict  bool
	carryOn bool

	read, committed   int // last line
	accepted, refused int
	unknown           map[string]unknownType
	results           []lineResult // not yet printed; good lines only for JSON
}

// unknownType counts the lines of a type that is not stored.
type unknownType struct{ lines, first int }

func emitLines(ctx context.Context, s *cli.Session, reader *intake.Reader, f emitFlags) error {
	e := &lineEmitter{session: s, reader: reader, strict: f.strict, carryOn: f.carryOn, unknown: map[string]unknownType{}}
	if err := e.run(ctx); err != nil {
		if e.committed > 0 {
			return cli.Hint(err, fmt.Sprintf("The good lines among 1 to %d are emitted.", e.committed))
		}
		return err
	}
	return e.summary()
}

// run emits everything in one transaction, or with carryOn each batch in one of its own.
func (e *lineEmitter) run(ctx context.Context) error {
	for more := true; more; {
		err := pgx.BeginFunc(ctx, e.session.Conn, func(tx pgx.Tx) error {
			for more {
				batch, bad := e.batch()
				// Sent even before a bad line: the first line that the database refuses is the one to report.
				if err := e.send(ctx, tx, batch); err != nil {
					return err
				}
				if more = bad == nil; !more && !errors.Is(bad, io.EOF) {
					return bad
				}
				if e.carryOn {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		e.report()
	}
	return nil
}

// batch reads the next events, up to the error that ends the work: io.EOF, a bad line without carryOn, or a failure to
// read.
func (e *lineEmitter) batch() (items []intake.Item, err error) {
	for size := 0; len(items) < batchLines && size < batchBytes; {
		item, err := e.reader.Next()
		var bad *intake.LineError
		switch {
		case errors.As(err, &bad):
			item.Line, err = bad.Line, badEvent(bad.Err)
		case err != nil:
			return items, err
		}
		e.read = item.Line
		if err == nil {
			size += len(item.Event.Payload)
			items = append(items, item)
		} else if err := e.refuse(item.Line, err); err != nil {
			return items, err
		}
	}
	return items, nil
}

// send emits a batch. Lines whose payloads do not fit are known. If the database refuses the batch, its halves are
// sent, down to the lines that are refused, earlier ones first.
func (e *lineEmitter) send(ctx context.Context, tx pgx.Tx, items []intake.Item) error {
	if len(items) == 0 {
		return nil
	}
	ids, err := e.emit(ctx, tx, items)
	switch {
	case err == nil:
		e.stored(items, ids)
		return nil
	case !isRefusal(err):
		return err
	case len(items) == 1:
		return e.refuse(items[0].Line, err)
	}
	var misfits tidemark.Misfits
	if errors.As(err, &misfits) {
		return e.sendFitting(ctx, tx, items, misfits)
	}
	if err := e.send(ctx, tx, items[:len(items)/2]); err != nil {
		return err
	}
	return e.send(ctx, tx, items[len(items)/2:])
}

// sendFitting refuses the items that do not fit, and emits the others.
func (e *lineEmitter) sendFitting(ctx context.Context, tx pgx.Tx, items []intake.Item, misfits tidemark.Misfits) error {
	if !e.carryOn {
		// The first refused line is reported, and the database may refuse an earlier one.
		items, misfits = items[:misfits[0].Position], misfits[:1]
	}
	var fitting, unfit []intake.Item
	for i, item := range items {
		if len(misfits) > len(unfit) && misfits[len(unfit)].Position == i+1 {
			unfit = append(unfit, item)
		} else {
			fitting = append(fitting, item)
		}
	}
	if err := e.send(ctx, tx, fitting); err != nil {
		return err
	}
	for i, item := range unfit {
		misfits[i].Position = 0 // it counts in our batch
		if err := e.refuse(item.Line, tidemark.AsError(misfits[i:i+1])); err != nil {
			return err
		}
	}
	return nil
}

// emit emits all of the items or, with an error, none; the transaction continues. A refusal leaves nothing behind, so
// with strict the database can refuse the types that it does not know.
func (e *lineEmitter) emit(ctx context.Context, tx pgx.Tx, items []intake.Item) (ids []string, err error) {
	err = pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) (err error) {
		one, many := tidemark.EmitIfRegistered, tidemark.EmitManyIfRegistered
		if e.strict {
			one, many = tidemark.Emit, tidemark.EmitMany
		}
		if len(items) == 1 { // so that the error names no position in our batch
			id, err := one(ctx, savepoint, items[0].Event)
			ids = []string{id}
			return err
		}
		events := make([]tidemark.Event, len(items))
		for i, item := range items {
			events[i] = item.Event
		}
		ids, err = many(ctx, savepoint, events)
		return err
	})
	return ids, err
}

// isRefusal tells whether the error is the fault of an event: a rule of Tidemark, data that PostgreSQL cannot hold
// (22), or too much of it (54).
func isRefusal(err error) bool {
	var misfits tidemark.Misfits
	if errors.As(err, &misfits) {
		return true
	}
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code[:2] == "TM" || pgErr.Code[:2] == "22" || pgErr.Code[:2] == "54")
}

func (e *lineEmitter) stored(items []intake.Item, ids []string) {
	for i, item := range items {
		if ids[i] != "" {
			e.accepted++
		} else {
			name := item.Event.Domain + "/" + item.Event.Type
			u := e.unknown[name]
			e.unknown[name] = unknownType{u.lines + 1, cmp.Or(u.first, item.Line)}
		}
		if e.session.JSON {
			e.results = append(e.results, lineResult{Line: item.Line, EventID: orNull(ids[i])})
		}
	}
}

// refuse records a refused line. Without carryOn it is the end.
func (e *lineEmitter) refuse(line int, err error) error {
	refused := lineError{Message: err.Error()}
	var ours *tidemark.Error
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &ours):
		refused = lineError{ours.Code, ours.Message, ours.Hint}
	case errors.As(err, &pgErr):
		refused = lineError{pgErr.Code, pgErr.Message, pgErr.Hint}
	}
	if !e.carryOn {
		return cli.Hint(&tidemark.Error{Code: refused.Code, Message: fmt.Sprintf("line %d: %s", line, refused.Message)},
			strings.TrimSpace(refused.Hint+" Nothing was emitted; --continue emits the good lines."))
	}
	e.refused++
	e.results = append(e.results, lineResult{Line: line, Error: &refused})
	return nil
}

// report prints the results, which are committed by now, in the order of the lines.
func (e *lineEmitter) report() {
	e.committed = e.read
	slices.SortStableFunc(e.results, func(a, b lineResult) int { return a.Line - b.Line })
	for _, r := range e.results {
		if e.session.JSON {
			e.session.Object(r)
		} else {
			e.session.Note("%s: line %d: %s", r.Error.Code, r.Line, r.Error.Message)
		}
	}
	e.results = nil
}

func (e *lineEmitter) summary() error {
	for _, name := range slices.Sorted(maps.Keys(e.unknown)) {
		u := e.unknown[name]
		e.session.Note("%s not stored (the first is line %d): the type %s is not registered or not enabled",
			cli.Count(u.lines, "line was", "lines were"), u.first, name)
	}
	if !e.session.JSON {
		e.session.Line("%s accepted, %d refused", cli.Count(e.accepted, "line"), e.refused)
	}
	if e.refused > 0 {
		return fmt.Errorf("%s refused", cli.Count(e.refused, "line was", "lines were"))
	}
	return nil
}

// badEvent gives an event that was refused before it reached the database the code that the database has for it.
func badEvent(err error) error {
	refused := &tidemark.Error{Code: "TM002", Message: err.Error(), Hint: "See tidemark emit --help."}
	if errors.Is(err, intake.ErrAttribute) {
		refused.Hint = "--ignore-attributes drops such attributes."
	}
	return refused
}

// orNull is null for the id of an event that was not stored.
func orNull(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
