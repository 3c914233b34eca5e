package tidemark_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// counted counts the statements of an emit.
type counted struct {
	tidemark.Querier
	statements int
}

func (c *counted) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.statements++
	return c.Querier.QueryRow(ctx, sql, args...)
}

func schemaOf(t testing.TB, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, domain, schema string,
) {
	t.Helper()
	var set string
	if err := db.QueryRow(t.Context(), `select tidemark.type_set($1, 'order', jsonb_build_object('schema', $2::jsonb))::text`,
		domain, schema).Scan(&set); err != nil {
		t.Fatal(err)
	}
}

// emits emits a payload and looks at what came of it, and at how many statements it took.
func emits(t *testing.T, tx tidemark.Querier, domain, payload string, fits bool, statements int) {
	t.Helper()
	one := &counted{Querier: tx}
	_, err := tidemark.Emit(t.Context(), one, tidemark.Event{Domain: domain, Type: "order", Payload: json.RawMessage(payload)})
	if fits != (err == nil) || !fits && !errors.Is(err, tidemark.ErrPayload) {
		t.Errorf("%s: %v, want it stored: %v", payload, err, fits)
	}
	if one.statements != statements {
		t.Errorf("%s: %d statements, want %d", payload, one.statements, statements)
	}
}

const (
	fromFive = `{"properties": {"n": {"minimum": 5}}}`
	fromNine = `{"properties": {"n": {"minimum": 9}}}`
)

// 11.7: a schema that was changed holds for the next statement, in both directions, and what is known costs one statement.
func TestEmitKnowsTheSchemaOfNow(t *testing.T) {
	t.Parallel()
	const domain = "now"
	db := tidemarktest.NewDB(t)
	operator := db.Connect(t)

	schemaOf(t, operator, domain, `null`)
	emits(t, db.Pool, domain, `{"n": 1}`, true, 1) // no schema: nothing to learn
	schemaOf(t, operator, domain, fromFive)
	emits(t, db.Pool, domain, `{"n": 1}`, false, 1) // learned, and nothing was stored
	emits(t, db.Pool, domain, `{"n": 5}`, true, 1)
	emits(t, db.Pool, domain, `{"n": 1}`, false, 1) // asked whether it still holds
	schemaOf(t, operator, domain, fromNine)
	emits(t, db.Pool, domain, `{"n": 9}`, true, 2) // learned, checked, stored
	emits(t, db.Pool, domain, `{"n": 9}`, true, 1)
	emits(t, db.Pool, domain, `{"n": 5}`, false, 1)
	schemaOf(t, operator, domain, fromFive)
	emits(t, db.Pool, domain, `{"n": 5}`, true, 2) // the kept schema refuses it, that of now does not
	schemaOf(t, operator, domain, `null`)
	emits(t, db.Pool, domain, `{"n": 1}`, true, 1)

	var stored []string
	rows, _ := operator.Query(t.Context(), `select payload ->> 'n' from tidemark.outbox order by seq`)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(stored, []string{"1", "5", "9", "9", "5", "1"}) {
		t.Errorf("stored %v, %v", stored, err)
	}
}

// A refusal by the schema stores nothing, and does not end the transaction; the transaction's own change of a schema holds in it, and
// not outside before it commits.
func TestEmitInATransactionThatChangesTheSchema(t *testing.T) {
	t.Parallel()
	const domain = "inside"
	db := tidemarktest.NewDB(t)
	schemaOf(t, db.Connect(t), domain, fromFive)
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	emits(t, tx, domain, `{"n": 5}`, true, 2)
	schemaOf(t, tx, domain, fromNine)
	emits(t, tx, domain, `{"n": 5}`, false, 1)
	emits(t, db.Pool, domain, `{"n": 5}`, true, 2) // it is not committed
	emits(t, tx, domain, `{"n": 9}`, true, 2)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	emits(t, db.Pool, domain, `{"n": 5}`, false, 1)
}

// One program, two databases, the same type with other schemas: neither is taken for the other's.
func TestEmitIntoTwoDatabases(t *testing.T) {
	t.Parallel()
	const domain = "two"
	one, two := tidemarktest.NewDB(t), tidemarktest.NewDB(t)
	schemaOf(t, one.Connect(t), domain, fromFive)
	schemaOf(t, two.Connect(t), domain, fromNine)
	for range 3 {
		emits(t, one.Pool, domain, `{"n": 5}`, true, 2)
		emits(t, two.Pool, domain, `{"n": 5}`, false, 1)
	}
	schemaOf(t, two.Connect(t), domain, fromFive) // the same schema is the same: nothing to learn
	emits(t, one.Pool, domain, `{"n": 5}`, true, 2)
	emits(t, two.Pool, domain, `{"n": 5}`, true, 1)
}

// Of a set with one event that does not fit nothing is stored, whatever it was that had to be learned; what does not fit is
// named by its place.
func TestEmitManyChecksTheWholeSchema(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	operator := db.Connect(t)
	schemaOf(t, operator, "many", fromFive)
	schemaOf(t, operator, "more", fromNine)
	schemaOf(t, operator, "free", `null`)
	event := func(domain, n string) tidemark.Event {
		return tidemark.Event{Domain: domain, Type: "order", Payload: json.RawMessage(`{"n": ` + n + `}`)}
	}
	many := func(statements int, misfit string, events ...tidemark.Event) {
		t.Helper()
		tx := &counted{Querier: db.Pool}
		ids, err := tidemark.EmitMany(t.Context(), tx, events)
		switch {
		case misfit == "" && (err != nil || len(ids) != len(events)):
			t.Errorf("%d ids, %v", len(ids), err)
		case misfit != "" && (!errors.Is(err, tidemark.ErrPayload) || !strings.HasPrefix(err.Error(), "TM002: "+misfit) || ids != nil):
			t.Errorf("%d ids, %v, want %s", len(ids), err, misfit)
		}
		if tx.statements != statements {
			t.Errorf("%d statements, want %d", tx.statements, statements)
		}
	}
	many(1, "event 2: many/order: n: minimum: got 4, want 5", event("free", "1"), event("many", "4"), event("more", "9"), event("more", "8"))
	many(1, "", event("free", "1"), event("many", "5"), event("more", "9"))
	schemaOf(t, operator, "many", fromNine)
	schemaOf(t, operator, "more", fromFive)
	many(1, "event 3: many/order: n: minimum: got 5, want 9", event("more", "5"), event("free", "1"), event("many", "5"))
	many(1, "", event("more", "5"), event("many", "9"))
	many(1, "event 1: many/order: ", event("many", "8"))
	schemaOf(t, operator, "many", fromFive)
	many(2, "", event("many", "5"), event("free", "0"))

	var n int
	if err := operator.QueryRow(t.Context(), `select count(*) from tidemark.outbox`).Scan(&n); err != nil || n != 7 {
		t.Errorf("%d events are stored, want 7; %v", n, err)
	}
}

// database/sql checks as pgx does.
func TestEmitSQLChecksTheWholeSchema(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	schemaOf(t, db.Connect(t), "std", fromFive)
	sqldb := stdlib.OpenDBFromPool(db.Pool)
	t.Cleanup(func() { _ = sqldb.Close() })
	tx, err := sqldb.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	event := func(n int) tidemark.Event {
		return tidemark.Event{Domain: "std", Type: "order", Payload: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))}
	}
	if _, err := tidemark.EmitSQL(t.Context(), tx, event(4)); !errors.Is(err, tidemark.ErrPayload) {
		t.Error(err)
	}
	if _, err := tidemark.EmitManySQL(t.Context(), tx, []tidemark.Event{event(5), event(4)}); !errors.Is(err, tidemark.ErrPayload) {
		t.Error(err)
	}
	if id, err := tidemark.EmitSQL(t.Context(), tx, event(5)); err != nil || id == "" {
		t.Error(err)
	}
	if ids, err := tidemark.EmitManySQL(t.Context(), tx, []tidemark.Event{event(5), event(6)}); err != nil || len(ids) != 2 {
		t.Error(ids, err)
	}
}

// Emitters beside an operator who changes the schema again and again follow it to the last: each schema takes one version of
// payloads only, and an emitter that is refused goes on to the one that it is told.
func TestEmitWhileSchemasChange(t *testing.T) {
	t.Parallel()
	const versions, domain = 40, "storm"
	db := tidemarktest.NewDB(t)
	operator := db.Connect(t)
	version := func(v int) string { return fmt.Sprintf(`{"properties": {"v": {"const": %d}}}`, v) }
	schemaOf(t, operator, domain, version(0))
	var wait sync.WaitGroup
	last := make(chan struct{})
	for range 3 {
		wait.Go(func() { followSchemas(t, db.Pool, domain, versions, last) })
	}
	for v := 1; v <= versions; v++ {
		schemaOf(t, operator, domain, version(v))
	}
	close(last)
	wait.Wait()
	var first, final, n int
	if err := operator.QueryRow(t.Context(), `select count(*), min((payload ->> 'v')::int), max((payload ->> 'v')::int) from tidemark.outbox`).
		Scan(&n, &first, &final); err != nil || final != versions {
		t.Errorf("%d events of versions %d to %d, %v", n, first, final, err)
	}
}

// followSchemas emits the version that the schema wants, until it was the last; last: that is in force.
func followSchemas(t *testing.T, pool *pgxpool.Pool, domain string, versions int, last <-chan struct{}) {
	for v := 0; v <= versions; {
		inForce := false
		select {
		case <-last:
			inForce = true
		default:
		}
		_, err := tidemark.Emit(t.Context(), pool, tidemark.Event{Domain: domain, Type: "order", Payload: json.RawMessage(fmt.Sprintf(`{"v": %d}`, v))})
		switch {
		case err == nil && v == versions:
			return
		case err == nil && inForce:
			t.Errorf("version %d was stored, and the schema takes %d", v, versions)
			return
		case errors.Is(err, tidemark.ErrPayload):
			var want int
			if _, after, ok := strings.Cut(err.Error(), "value must be "); ok {
				if _, scan := fmt.Sscan(after, &want); scan == nil {
					v = want
					continue
				}
			}
			t.Error(err)
			return
		case err != nil:
			t.Error(err)
			return
		}
	}
}

// FuzzSchemas compares what SQL checks of a schema with Go's checker: SQL refuses nothing that the whole schema takes, and takes
// what it refuses only if it said that it does not check all.
func FuzzSchemas(f *testing.F) {
	text, err := os.ReadFile("internal/payload/testdata/contract.json")
	if err != nil {
		f.Fatal(err)
	}
	var corpus []struct {
		Schema        json.RawMessage `json:"schema"`
		Fits, Misfits []string
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		f.Fatal(err)
	}
	for _, c := range corpus {
		for _, document := range slices.Concat(c.Fits, c.Misfits) {
			f.Add(string(c.Schema), document)
		}
	}
	conn := tidemarktest.NewDB(f).Connect(f)
	f.Fuzz(func(t *testing.T, schema, document string) {
		var object map[string]any
		if json.Unmarshal([]byte(document), &object) != nil || object == nil {
			return
		}
		// As it is in the registry.
		var stored, problem *string
		if conn.QueryRow(t.Context(), `select s::text, tidemark.schema_problem(s) from (select $1::text::jsonb as s offset 0) x
			where jsonb_typeof(s) = 'object'`, schema).Scan(&stored, &problem) != nil {
			return
		}
		checker, err := payload.Compile(json.RawMessage(*stored))
		if problem != nil && err == nil {
			t.Errorf("SQL refuses the schema %s: %s", *stored, *problem)
		}
		if err != nil || problem != nil {
			return
		}
		misfit := checker.Check(json.RawMessage(document))
		var bySQL *string
		var whole bool
		if err := conn.QueryRow(t.Context(), `select tidemark.payload_error($1::text::jsonb, $2::text::jsonb), tidemark.schema_unchecked($2::text::jsonb) = '{}'`,
			document, *stored).Scan(&bySQL, &whole); err != nil {
			if misfit == nil {
				t.Errorf("%s fits, and jsonb cannot hold it: %v", document, err)
			}
			return
		}
		switch {
		case bySQL != nil && misfit == nil:
			t.Errorf("%s of %s: SQL says %s, Go nothing", document, *stored, *bySQL)
		case bySQL == nil && misfit != nil && whole && !strings.HasPrefix(misfit.Error(), "payload has") && !strings.HasPrefix(misfit.Error(), "payload holds"):
			t.Errorf("%s of %s: Go says %v, and SQL, which checks all of it, nothing", document, *stored, misfit)
		}
	})
}
