package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// ActFor makes the transaction one of a person: tidemark.audit names him beside the login, and a statement takes limit at
// most. A reader may do what tidemark_reader may, by its name in this database.
func (db *DB) ActFor(ctx context.Context, person string, reader bool, limit time.Duration) error {
	_, err := value[string](ctx, db, `select set_config('tidemark.person', $1, true) || set_config('statement_timeout', $2, true)
			|| case when $3 then set_config('role', regexp_replace(pg_get_userbyid(n.nspowner)::text, 'owner$', 'reader'), true) else '' end
		from pg_namespace n where n.nspname = 'tidemark'`, person, strconv.FormatInt(limit.Milliseconds(), 10), reader)
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

// Why is why a route delivered an event or did not.
type Why struct {
	State    string  `db:"state" json:"state"` // of tidemark.why
	Sentence string  `db:"sentence" json:"sentence"`
	Command  *string `db:"command" json:"command"` // null: nothing has to be done
}

// Why calls tidemark.why.
func (db *DB) Why(ctx context.Context, eventID, route string) (Why, error) {
	return one[Why](ctx, db, `select * from tidemark.why($1::text::uuid, $2)`, eventID, route)
}

// AuditEntry is a change that someone made.
type AuditEntry struct {
	ID     int64           `db:"id" json:"id"`
	At     time.Time       `db:"at" json:"at"`
	Actor  string          `db:"actor" json:"actor"`   // the role that logged in
	Person *string         `db:"person" json:"person"` // for whom it acted, as the console claims
	Action string          `db:"action" json:"action"`
	Object string          `db:"object" json:"object"`
	Reason *string         `db:"reason" json:"reason"`
	Before json.RawMessage `db:"before" json:"before"`
	After  json.RawMessage `db:"after" json:"after"`
}

// AuditFilter chooses entries. The zero value of a field chooses all.
type AuditFilter struct {
	Who          string // actor or person
	Object       string // table, or table and key
	Since, Until time.Time
	Before       int64 // ids below this one
	Limit        int
}

// Audit returns what was changed, the latest first.
func (db *DB) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return list[AuditEntry](ctx, db, `select a.id, a.at, a.actor, a.person, a.action, a.object, a.reason, a.before, a.after from tidemark.audit a
		where ($1 = '' or a.actor = $1 or a.person = $1) and ($2 = '' or a.object = $2 or starts_with(a.object, $2 || ' '))
		  and ($3::timestamptz is null or a.at >= $3) and ($4::timestamptz is null or a.at < $4) and ($5::bigint = 0 or a.id < $5)
		order by a.id desc limit nullif($6::integer, 0)`, f.Who, f.Object, instant(f.Since), instant(f.Until), f.Before, f.Limit)
}

// Setting is a setting of the installation, gates included.
type Setting struct {
	Key         string `db:"key" json:"key"`
	Value       string `db:"value" json:"value"`
	Description string `db:"description" json:"description"`
}

// Settings returns all settings.
func (db *DB) Settings(ctx context.Context) ([]Setting, error) {
	return list[Setting](ctx, db, `select s.key, s.value, s.description from tidemark.setting s order by s.key`)
}

// LetterGroup is a number of open dead letters with the same route or source and the same error.
type LetterGroup struct {
	Route     *string   `db:"route_code" json:"route_code"` // null: rows of Source
	Source    string    `db:"source" json:"source"`
	ErrorCode string    `db:"error_code" json:"error_code"`
	Letters   int64     `db:"letters" json:"letters"`
	First     time.Time `db:"first_failed_at" json:"first_failed_at"`
	Last      time.Time `db:"last_failed_at" json:"last_failed_at"`
	Newest    int64     `db:"newest" json:"newest"` // the id of one of them
	Complete  bool      `db:"complete" json:"complete"`
}

// LetterGroups groups the newest 10000 open dead letters; Complete tells whether these are all.
func (db *DB) LetterGroups(ctx context.Context) ([]LetterGroup, error) {
	return list[LetterGroup](ctx, db, `with open as materialized (
			select l.id, l.route_id, l.source, l.error_code, l.first_failed_at, l.last_failed_at
			from tidemark.dead_letter l where l.resolved_at is null order by l.id desc limit 10001)
		select r.route_code, l.source, l.error_code, count(*) as letters, min(l.first_failed_at) as first_failed_at,
			max(l.last_failed_at) as last_failed_at, max(l.id) as newest, (select count(*) <= 10000 from open) as complete
		from open l left join tidemark.outbound_route r on r.id = l.route_id
		group by 1, 2, 3 order by letters desc, 1, 2, 3`)
}
