package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Transforms reports whether the route changes the payloads that it delivers.
func (r Route) Transforms() bool { return r.Transform != nil || r.Columns != nil }

const transformed = `select tidemark.transformed($1, $2::text[], $3::text[]::jsonb[], tidemark.default_search_path())::text[]`

// Transform calls tidemark.transformed, in the transaction of a handler, for the payloads of events that the route delivers. In
// the result nil stands for an event that is dropped. Of an error TransformFailed tells whose fault it is.
func Transform(ctx context.Context, tx Querier, route Route, payloads ...json.RawMessage) ([]json.RawMessage, error) {
	var results []*string
	err := tx.QueryRow(ctx, transformed, route.Transform, route.Columns, texts(payloads)).Scan(&results)
	return made(route, results, err)
}

// answerTime is how much longer than the server may take an answer is waited for: a connection that the network has forgotten
// gives none.
const answerTime = 5 * time.Second

// TransformAlone is Transform outside of any transaction: the server ends it after the route's timeout.
func TransformAlone(ctx context.Context, db Querier, route Route, payloads []json.RawMessage) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, route.TimeLimit()+answerTime)
	defer cancel()
	var results []*string
	err := within(ctx, db, route.TimeLimit(), &results, transformed, route.Transform, route.Columns, texts(payloads))
	return made(route, results, err)
}

// DryRunTransform calls tidemark.dry_run_transform for at most so many events; the server ends it after limit. late: it was a single
// event, which took longer than that, and is recorded: as failed, or as untried where the route's timeout is longer. Of several
// TimedOut tells.
func (db *DB) DryRunTransform(ctx context.Context, route string, most int, limit time.Duration) (events int, late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+answerTime)
	defer cancel()
	var came []int
	err = within(ctx, db.querier, limit, &came, `select array[t.events, t.late::integer] from tidemark.dry_run_transform($1, $2) t`, route, most)
	if err != nil {
		return 0, false, err
	}
	return came[0], came[1] == 1, nil
}

func texts(payloads []json.RawMessage) []string {
	texts := make([]string, len(payloads))
	for i, payload := range payloads {
		texts[i] = string(payload)
	}
	return texts
}

func made(route Route, results []*string, err error) ([]json.RawMessage, error) {
	if err != nil {
		return nil, transformError{route, err}
	}
	payloads := make([]json.RawMessage, len(results))
	for i, text := range results {
		if text != nil {
			payloads[i] = json.RawMessage(*text)
		}
	}
	return payloads, nil
}

// A transformError says what failed, as tidemark.target_call does.
type transformError struct {
	route Route
	error
}

func (e transformError) Unwrap() error { return e.error }

func (e transformError) Error() string {
	name := "columns"
	if e.route.Transform != nil {
		name = *e.route.Transform
	}
	var refused *pgconn.PgError
	if errors.As(e.error, &refused) {
		return fmt.Sprintf("%s: %s (%s)", name, refused.Message, refused.Code)
	}
	return fmt.Sprintf("%s: %s", name, e.error)
}

// TransformFailed reports whether the transform is at fault for an error of Transform, and not the server or the way to it.
func TransformFailed(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	// Class 25 is what a transform gets that writes: the transaction is read-only for it alone.
	return !transientCode(refused.Code) || strings.HasPrefix(refused.Code, "25") || TimedOut(err)
}
