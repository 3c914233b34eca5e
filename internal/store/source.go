package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Source is a table of others that workers read.
type Source struct {
	Source          string     `db:"source" json:"source"`
	Table           string     `db:"table" json:"table"` // quoted where needed
	IDColumn        string     `db:"id_column" json:"id_column"`
	TimestampColumn *string    `db:"timestamp_column" json:"timestamp_column"`
	Safety          string     `db:"safety" json:"safety"`
	SweepWindow     *string    `db:"sweep_window" json:"sweep_window"` // interval
	Workers         []string   `db:"workers" json:"workers"`
	Lag             *string    `db:"lag" json:"lag"` // interval, of the slowest
	VerifiedThrough *time.Time `db:"verified_through" json:"verified_through"`
	Pending         int64      `db:"pending" json:"pending"`
	OpenDeadLetters int64      `db:"open_dead_letters" json:"open_dead_letters"`
	Description     string     `db:"description" json:"description"`
}

const source = `select s.source, s."table", s.id_column, s.timestamp_column, s.safety, s.sweep_window::text, s.workers,
	date_trunc('second', s.lag)::text as lag, s.verified_through, s.pending, s.open_dead_letters, s.description from tidemark.sources s `

// Sources returns a part of the sources.
func (db *DB) Sources(ctx context.Context, p Part) ([]Source, error) {
	return list[Source](ctx, db, source+`where $1 = '' or s.source > $1 order by s.source limit nullif($2::integer, 0)`, p.After, p.Limit)
}

// Source returns one source, or tidemark.ErrNotFound.
func (db *DB) Source(ctx context.Context, name string) (Source, error) {
	got, err := one[Source](ctx, db, source+`where s.source = $1`, name)
	return known(got, err, `source "`+name+`"`, "Sources: tidemark source list")
}

// SourceSet calls tidemark.source_set.
func (db *DB) SourceSet(ctx context.Context, source string, changes Changes, reason string) error {
	_, err := db.querier.Exec(ctx, `select from tidemark.source_set($1, $2::jsonb, nullif($3, ''))`, source, changes, reason)
	return tidemark.AsError(err)
}

// SourceDelete calls tidemark.source_delete.
func (db *DB) SourceDelete(ctx context.Context, source, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.source_delete($1, $2)`, source, reason)
	return tidemark.AsError(err)
}

// SourceChecks calls tidemark.source_check for a source, or returns tidemark.ErrNotFound.
func (db *DB) SourceChecks(ctx context.Context, source string) ([]Check, error) {
	return db.SourceChecksWith(ctx, source, Changes{})
}

// SourceChecksWith is SourceChecks for a source as it would be with other columns.
func (db *DB) SourceChecksWith(ctx context.Context, source string, changes Changes) ([]Check, error) {
	if _, err := db.Source(ctx, source); err != nil {
		return nil, err
	}
	return list[Check](ctx, db, `select c."check", c.status, c.detail, c.hint
		from tidemark.source s cross join lateral tidemark.source_check(jsonb_populate_record(s, $2)) c where s.source = $1`, source, changes)
}

// TableName splits the name of a table as SQL reads it: "Shop".Orders is Shop, orders.
func (db *DB) TableName(ctx context.Context, name string) ([]string, error) {
	return value[[]string](ctx, db, `select parse_ident($1)`, name)
}

// definition is a source that need not be stored: $1 its columns by name.
const definition = `(select tidemark.source_guess(jsonb_populate_record(null::tidemark.source, $1::jsonb)) as source) d`

// SourceGuess calls tidemark.source_guess: the id and timestamp columns, where changes
// does not name them. Empty: there is none that looks like one.
func (db *DB) SourceGuess(ctx context.Context, changes Changes) (id, timestamp string, err error) {
	err = db.querier.QueryRow(ctx, `select coalesce((d.source).id_column, ''), coalesce((d.source).timestamp_column, '')
		from `+definition, changes).Scan(&id, &timestamp)
	return id, timestamp, tidemark.AsError(err)
}

// SourceCheck calls tidemark.source_check for a source that need not be stored.
func (db *DB) SourceCheck(ctx context.Context, changes Changes) ([]Check, error) {
	return list[Check](ctx, db, `select c."check", c.status, c.detail, c.hint
		from `+definition+` cross join lateral tidemark.source_check(d.source) c`, changes)
}

// Advice is what tidemark.source_advise says of a safety.
type Advice struct {
	Safety string `db:"safety" json:"safety"`
	Status string `db:"status" json:"status"` // ok, warn or fail
	Detail string `db:"detail" json:"detail"`
	Hint   string `db:"hint" json:"hint"`
}

// SourceAdvise calls tidemark.source_advise.
func (db *DB) SourceAdvise(ctx context.Context, changes Changes) ([]Advice, error) {
	return list[Advice](ctx, db, `select a.safety, a.status, a.detail, a.hint
		from `+definition+` cross join lateral tidemark.source_advise(d.source) a`, changes)
}

// SourceCursor is how far a worker has come in a source, from tidemark.source_cursor.
type SourceCursor struct {
	Worker          string          `db:"worker" json:"worker"`
	Source          string          `db:"source" json:"source"`
	Shard           int             `db:"shard" json:"shard"`
	Phase           string          `db:"phase" json:"phase"`
	WatermarkTS     *time.Time      `db:"watermark_ts" json:"watermark_ts"`
	WatermarkID     *string         `db:"watermark_id" json:"watermark_id"`
	Lag             *string         `db:"lag" json:"lag"` // interval
	VerifiedThrough *time.Time      `db:"verified_through" json:"verified_through"`
	EventsSeen      int64           `db:"events_seen" json:"events_seen"`
	Pending         int64           `db:"pending" json:"pending"`
	OpenDeadLetters int64           `db:"open_dead_letters" json:"open_dead_letters"`
	DeadLettered    int64           `db:"dead_lettered" json:"dead_lettered"`
	LastRunAt       *time.Time      `db:"last_run_at" json:"last_run_at"`
	LastRunSummary  json.RawMessage `db:"last_run_summary" json:"last_run_summary"`
	PausedAt        *time.Time      `db:"paused_at" json:"paused_at"`
	SweepWindow     *string         `db:"sweep_window" json:"sweep_window" doc:"An interval: as old as this a row may be that appears late. Null: rows are not counted."`
	SweepEvery      string          `db:"sweep_every" json:"sweep_every" doc:"An interval."`
	SweptAt         *time.Time      `db:"swept_at" json:"swept_at" doc:"When the last sweep ended; null: none has."`
	Sweeping        bool            `db:"sweeping" json:"sweeping" doc:"A sweep has begun and not ended."`
}

// Last is what the cursor's last pass did. The zero value: there was none.
func (c SourceCursor) Last() (Pass, error) { return readPass(c.LastRunSummary, nil) }

// SourceCursors returns the cursors that a worker has of sources.
func (db *DB) SourceCursors(ctx context.Context, worker string) ([]SourceCursor, error) {
	return list[SourceCursor](ctx, db, `select c.worker, c.source, c.shard, c.phase, c.watermark_ts, c.watermark_id,
		date_trunc('second', c.lag)::text as lag, c.verified_through, c.events_seen, c.pending, c.open_dead_letters, c.dead_lettered,
		c.last_run_at, c.last_run_summary, c.paused_at, s.sweep_window::text, s.sweep_every::text,
		(k.sweep ->> 'done_at')::timestamptz as swept_at, k.sweep ? 'next_xmin' as sweeping
		from tidemark.source_cursor c join tidemark.source s on s.source = c.source
		join tidemark.worker_cursor k on k.worker = c.worker and k.source = c.source and k.shard = c.shard
		where c.worker = $1 order by c.source, c.shard`, worker)
}

// PendingItem is an event or a row that waits for another attempt.
type PendingItem struct {
	Worker        string     `db:"worker" json:"worker"`
	Source        string     `db:"source" json:"source"`         // outbox, or the row's
	RouteCode     *string    `db:"route_code" json:"route_code"` // null for a row
	Shard         int        `db:"shard" json:"shard"`
	Item          string     `db:"item" json:"item"` // number of the event, id of the row
	ErrorCount    int        `db:"error_count" json:"error_count"`
	LastError     *string    `db:"last_error" json:"last_error"`
	NextAttemptAt *time.Time `db:"next_attempt_at" json:"next_attempt_at"` // null: behind an earlier event of its key, or held
	Held          bool       `db:"held" json:"held"`                       // until the gate of its domain is open
	DeadLetterID  *int64     `db:"dead_letter_id" json:"dead_letter_id"`   // that this replays
	CreatedAt     time.Time  `db:"created_at" json:"created_at"`
	Key           *string    `db:"key" json:"key"`       // ordering key of the event
	Behind        *int64     `db:"behind" json:"behind"` // the first event of its key, which it waits for
}

// PendingFilter chooses what waits. The zero value of a field chooses all.
type PendingFilter struct {
	Worker, Source, Route string
	Limit                 int           // at most so many; 0: all
	After                 *PendingPlace // go on after this place; nil: from the first
}

// PendingPlace is the place of an item in the list of what waits. The item itself may have moved or gone since.
type PendingPlace struct {
	Next    *time.Time `json:"n"` // nil: infinity
	Created time.Time  `json:"c"`
	Item    string     `json:"i"`
	Worker  string     `json:"w"`
	Source  string     `json:"s"`
	Route   string     `json:"r"`
	Shard   int32      `json:"h"` // as the column: a greater number is no place
}

// Place is where the item is in the list.
func (p PendingItem) Place() PendingPlace {
	at := PendingPlace{p.NextAttemptAt, p.CreatedAt, p.Item, p.Worker, p.Source, "", int32(p.Shard)} //nolint:gosec // from an integer column
	if p.RouteCode != nil {
		at.Route = *p.RouteCode
	}
	return at
}

// Pending returns what waits for another attempt, what is due first first.
func (db *DB) Pending(ctx context.Context, f PendingFilter) ([]PendingItem, error) {
	var after PendingPlace
	if f.After != nil {
		after = *f.After
	}
	return list[PendingItem](ctx, db, `with part as materialized (
		select p.worker, p.source, p.route_code, p.shard, p.item, p.error_count, p.last_error, p.next_attempt_at, p.held, p.dead_letter_id, p.created_at
		from tidemark.waiting p
		where ($1 = '' or p.worker = $1) and ($2 = '' or p.source = $2) and ($3 = '' or p.route_code = $3)
		  and ($5 or (p.next_attempt_at, p.created_at, p.item, p.worker, p.source, coalesce(p.route_code, ''), p.shard)
				> (coalesce($6::timestamptz, 'infinity'), $7::timestamptz, $8, $9, $10, $11, $12))
		order by p.next_attempt_at, p.created_at, p.item, p.worker, p.source, coalesce(p.route_code, ''), p.shard
		limit nullif($4::integer, 0))
	select p.worker, p.source, p.route_code, p.shard, p.item, p.error_count, p.last_error, nullif(p.next_attempt_at, 'infinity') as next_attempt_at,
		p.held, p.dead_letter_id, p.created_at, k.key, k.behind
	from part p
	left join lateral (
		select e.key, (select min(f.seq) from tidemark.pending f
			where p.next_attempt_at = 'infinity' and not p.held and f.worker_id = e.worker_id and f.route_id = e.route_id and f.key = e.key
			  and not f.replay and f.seq < e.seq) as behind
		from tidemark.pending e, tidemark.worker w, tidemark.outbound_route r
		where p.source = 'outbox' and w.worker = p.worker and r.route_code = p.route_code
		  and e.worker_id = w.id and e.route_id = r.id and e.seq = case when p.source = 'outbox' then p.item::bigint end) k on true
	order by p.next_attempt_at, p.created_at, p.item, p.worker, p.source, coalesce(p.route_code, ''), p.shard`, f.Worker, f.Source, f.Route, f.Limit, f.After == nil,
		after.Next, after.Created, after.Item, after.Worker, after.Source, after.Route, after.Shard)
}
