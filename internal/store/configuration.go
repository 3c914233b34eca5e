package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Thing is a part of the configuration: a domain, a type, a route.
type Thing struct {
	Kind       string          `db:"kind" json:"kind"`
	Name       string          `db:"name" json:"name"`
	Definition json.RawMessage `db:"definition" json:"definition"`
	File       *string         `db:"file" json:"file,omitempty"` // whose it is; null: no file's
}

// Configuration calls tidemark.configuration, in the order in which things are made.
func (db *DB) Configuration(ctx context.Context) ([]Thing, error) {
	return list[Thing](ctx, db, `select c.kind, c.name, c.definition, c.file from tidemark.configuration() c order by c.place, c.name`)
}

// Applied is a change that a file made.
type Applied struct {
	Change  string          `db:"change" json:"change"` // create, set, adopt, take, delete, release; left: none, but --delete would; ignored
	Kind    string          `db:"kind" json:"kind"`
	Name    string          `db:"name" json:"name"`
	Field   *string         `db:"field" json:"field"` // of set
	Was     json.RawMessage `db:"was" json:"was"`
	Becomes json.RawMessage `db:"becomes" json:"becomes"`
}

// ConfigurationApply calls tidemark.configuration_apply.
func (db *DB) ConfigurationApply(ctx context.Context, file string, things []Thing, reason string, prune, take bool) ([]Applied, error) {
	return list[Applied](ctx, db, `select a.change, a.kind, a.name, a.field, a.was, a.becomes
		from tidemark.configuration_apply($1, coalesce(nullif($2::jsonb, 'null'), '[]'), $3, $4, $5) a`, file, things, reason, prune, take)
}

// ConfigurationPlan does the same, for a transaction that is rolled back. It waits for no lock longer than wait: then the error has the
// code 55P03.
func (db *DB) ConfigurationPlan(ctx context.Context, wait time.Duration, file string, things []Thing, reason string, prune, take bool) ([]Applied, error) {
	if _, err := value[string](ctx, db, `select set_config('lock_timeout', $1 || 'ms', true)`, strconv.FormatInt(wait.Milliseconds(), 10)); err != nil {
		return nil, err
	}
	return list[Applied](ctx, db, `select a.change, a.kind, a.name, a.field, a.was, a.becomes
		from tidemark.configuration_change($1, coalesce(nullif($2::jsonb, 'null'), '[]'), $3, $4, $5) a`, file, things, reason, prune, take)
}

// Applying names the session of a tidemark.configuration_apply that is under way, which holds the lock of
// tidemark.configuration_lock and has read the table: VACUUM and CREATE INDEX CONCURRENTLY have the first lock alone. Empty: none is.
func (db *DB) Applying(ctx context.Context) (string, error) {
	return value[string](ctx, db, `select coalesce((
		select format('pid %s, application "%s", user %s', a.pid, a.application_name, a.usename)
		from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.relation = 'tidemark.owned'::regclass and l.database = (select d.oid from pg_database d where d.datname = current_database())
			and l.mode = 'ShareUpdateExclusiveLock' and l.granted and a.usename is not null
			and exists (select from pg_locks r where r.pid = l.pid and r.relation = l.relation and r.database = l.database
				and r.mode = 'AccessShareLock' and r.granted) limit 1), '')`)
}
