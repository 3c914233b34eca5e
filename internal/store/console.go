package store

import (
	"context"
	"encoding/json"
	"time"
)

// Patience is how long a statement may take, and how long of that it may wait for a lock; 0: without end.
type Patience struct{ Statement, Lock time.Duration }

// ActFor makes the transaction one of a person: tidemark.audit names him beside the login, and statements have patience. A reader may
// do what tidemark_reader may, by its name in this database.
func (db *DB) ActFor(ctx context.Context, person string, reader bool, p Patience) error {
	_, err := value[string](ctx, db, `select set_config('tidemark.person', $1, true) || set_config('statement_timeout', $2::bigint::text, true) || set_config('lock_timeout', $3::bigint::text, true)
			|| set_config('jit', 'off', true)
			|| case when $4 then set_config('role', regexp_replace(pg_get_userbyid(n.nspowner)::text, 'owner$', 'reader'), true) else '' end
		from pg_namespace n where n.nspname = 'tidemark'`, person, p.Statement.Milliseconds(), p.Lock.Milliseconds(), reader)
	return err
}

// GiveReason makes reason that of the changes of this transaction which have none of their own.
func (db *DB) GiveReason(ctx context.Context, reason string) error {
	_, err := value[string](ctx, db, `select set_config('tidemark.reason', $1, true)`, reason)
	return err
}

// AnswerBegin calls tidemark.api_begin. Null: the request is new.
func (db *DB) AnswerBegin(ctx context.Context, person, key string, request []byte) (answer json.RawMessage, err error) {
	return value[json.RawMessage](ctx, db, `select tidemark.api_begin($1, $2, $3)`, person, key, request)
}

// AnswerEnd calls tidemark.api_end.
func (db *DB) AnswerEnd(ctx context.Context, person, key string, answer []byte) error {
	_, err := db.querier.Exec(ctx, `select tidemark.api_end($1, $2, $3::text::jsonb)`, person, key, string(answer))
	return err
}

// SignInNote calls tidemark.sign_in_note.
func (db *DB) SignInNote(ctx context.Context, person, outcome, detail string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.sign_in_note($1, $2, $3)`, person, outcome, detail)
	return err
}
