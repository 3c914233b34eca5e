package postgres

import (
	"context"
	"encoding/json"
	"time"
)

// Pass is what a pass of a worker did.
type Pass struct {
	Worker    string         `json:"worker"`
	Status    string         `json:"status"` // ran, closed or busy
	Gate      string         `json:"gate"`
	Detail    string         `json:"detail"` // busy: who has the cursor
	Events    int            `json:"events"`
	Late      int            `json:"late"`
	Decided   map[string]int `json:"decided"` // outcome: pieces of evidence
	Watermark int64          `json:"watermark"`
	Fallbacks int            `json:"fallbacks"`
	BlockedBy string         `json:"blocked_by"`

	Summary json.RawMessage `json:"-"` // all of this, as the database told it
}

// RouteWorkerRun calls tidemark.route_worker_run, which wants a READ COMMITTED
// transaction of its own.
func (db *DB) RouteWorkerRun(ctx context.Context, worker string, batchLimit int) (Pass, error) {
	summary, err := value[json.RawMessage](ctx, db, `select tidemark.route_worker_run($1, $2)`, worker, batchLimit)
	if err != nil {
		return Pass{}, err
	}
	pass := Pass{Summary: summary}
	return pass, json.Unmarshal(summary, &pass)
}

// Health is how a worker is doing, from tidemark.worker_health.
type Health struct {
	Worker          string          `db:"worker" json:"worker"`
	Source          string          `db:"source" json:"source"`
	Shard           int             `db:"shard" json:"shard"`
	Status          string          `db:"status" json:"status"` // closed, behind, idle, blocked or never ran
	Gate            *string         `db:"gate" json:"gate"`
	Watermark       int64           `db:"watermark" json:"watermark"`
	LastSeq         int64           `db:"last_seq" json:"last_seq"`
	Behind          int64           `db:"behind" json:"behind"`
	Holes           int64           `db:"holes" json:"holes"`
	LastRunAt       *time.Time      `db:"last_run_at" json:"last_run_at"`
	LastRunSummary  json.RawMessage `db:"last_run_summary" json:"last_run_summary"`
	EventsSeen      int64           `db:"events_seen" json:"events_seen"`
	AttemptsWritten int64           `db:"attempts_written" json:"attempts_written"`
	DeadLettered    int64           `db:"dead_lettered" json:"dead_lettered"`
	OpenDeadLetters int64           `db:"open_dead_letters" json:"open_dead_letters"`
	Pending         int64           `db:"pending" json:"pending"`
}

const health = `select h.worker, h.source, h.shard, h.status, h.gate, coalesce(h.watermark, 0) as watermark, coalesce(h.last_seq, 0) as last_seq, coalesce(h.behind, 0) as behind, h.holes, h.last_run_at,
	h.last_run_summary, h.events_seen, h.attempts_written, h.dead_lettered, h.open_dead_letters, h.pending
from tidemark.worker_health h `

// WorkerHealth returns how all workers are doing.
func (db *DB) WorkerHealth(ctx context.Context) ([]Health, error) {
	return list[Health](ctx, db, health+`order by h.worker, h.source, h.shard`)
}

// WorkerHealthOf returns how one worker is doing, or tidemark.ErrNotFound.
func (db *DB) WorkerHealthOf(ctx context.Context, worker string) (Health, error) {
	h, err := one[Health](ctx, db, health+`where h.worker = $1 and h.source = 'outbox' and h.shard = 0`, worker)
	return known(h, err, `worker "`+worker+`"`, "Workers: tidemark worker list")
}

// Worker is the configuration of a worker.
type Worker struct {
	Worker      string   `db:"worker" json:"worker"`
	Source      string   `db:"source" json:"source"`
	Handler     string   `db:"handler" json:"handler"`
	Domains     []string `db:"domains" json:"domains"` // null: all
	ReadOrder   string   `db:"read_order" json:"read_order"`
	HoleLimit   int      `db:"hole_limit" json:"hole_limit"`
	Description string   `db:"description" json:"description"`
}

// WorkerSet calls tidemark.worker_set.
func (db *DB) WorkerSet(ctx context.Context, worker string, changes Changes, reason string) (Worker, error) {
	return one[Worker](ctx, db, `select w.worker, w.source, w.handler, w.domains, w.read_order, w.hole_limit, w.description
		from tidemark.worker_set($1, coalesce($2::jsonb, '{}'), nullif($3, '')) w`, worker, changes, reason)
}

// WorkerRewind calls tidemark.worker_rewind, and returns where the cursor was.
func (db *DB) WorkerRewind(ctx context.Context, worker string, toSeq int64, reason string) (was int64, err error) {
	return value[int64](ctx, db, `select tidemark.worker_rewind($1, $2, $3)`, worker, toSeq, reason)
}

// Workers returns the configuration of all workers.
func (db *DB) Workers(ctx context.Context) ([]Worker, error) {
	return list[Worker](ctx, db, `select w.worker, w.source, w.handler, w.domains, w.read_order, w.hole_limit, w.description
		from tidemark.worker w order by w.worker`)
}

// WorkerPause calls tidemark.worker_pause, and reports whether that changed anything.
func (db *DB) WorkerPause(ctx context.Context, worker string, pause bool, reason string) (changed bool, err error) {
	return value[bool](ctx, db, `select tidemark.worker_pause($1, $2, nullif($3, ''))`, worker, pause, reason)
}

// TableCursor is a cursor of a worker of tables whose handler is in the database.
type TableCursor struct {
	Worker      string  `db:"worker"`
	Source      string  `db:"source"`
	Shard       int     `db:"shard"`
	PageSize    int     `db:"page_size"`
	PageTimeout float64 `db:"page_timeout"` // seconds
}

// TableCursors returns the cursors that a daemon can work with.
func (db *DB) TableCursors(ctx context.Context) ([]TableCursor, error) {
	return list[TableCursor](ctx, db, `select c.worker, c.source, c.shard, w.page_size, extract(epoch from w.page_timeout)::float8 as page_timeout
		from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
		where w.source = 'table' and w.handler in ('sql', 'emit') order by 1, 2, 3`)
}
