package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Pass is what a pass of a worker did. A worker of the log fills the fields before
// TablePass, a worker of tables those in it and Worker, Status, Detail, Late and BlockedBy.
type Pass struct {
	Worker    string         `json:"worker"`
	Status    string         `json:"status"` // ran, closed, held or busy; of tables also cut, throttled, waiting
	Gate      string         `json:"gate"`
	Detail    string         `json:"detail"` // busy: who has the cursor; of tables why it did not run
	Events    int            `json:"events"`
	Late      int            `json:"late"`
	Decided   map[string]int `json:"decided"` // outcome: pieces of evidence
	Watermark int64          `json:"watermark"`
	Fallbacks int            `json:"fallbacks"`
	BlockedBy string         `json:"blocked_by"`
	Staged    int            `json:"staged"` // events of replays that the pass staged

	TablePass
	Runs []Pass `json:"runs"` // of a worker with several cursors: each of them

	Summary json.RawMessage `json:"-"` // all of this, as the database told it
}

// TablePass is what a pass over a source did.
type TablePass struct {
	Source      string          `json:"source"`
	Shard       int             `json:"shard"`
	Step        string          `json:"step"` // forward, sweep or retry
	Rows        int             `json:"rows"` // examined
	Taken       int             `json:"taken"`
	Failed      int             `json:"failed"`
	Coalesced   int             `json:"coalesced"`
	Phase       string          `json:"phase"`
	WatermarkTS *Instant        `json:"watermark_ts"`
	WatermarkID *string         `json:"watermark_id"`
	More        bool            `json:"more"`
	HeldBackBy  string          `json:"held_back_by"` // what newer rows wait for
	Result      json.RawMessage `json:"result"`       // what the handler returned
}

// RouteWorkerRun calls tidemark.route_worker_run, which wants a READ COMMITTED
// transaction of its own.
func (db *DB) RouteWorkerRun(ctx context.Context, worker string, batchLimit int) (Pass, error) {
	return readPass(value[json.RawMessage](ctx, db, `select tidemark.route_worker_run($1, $2)`, worker, batchLimit))
}

// RunFilter chooses cursors of a worker. The zero value of a field chooses all.
type RunFilter struct {
	Source string
	Shard  *int
	Page   *int // events or rows at most; null: 5000, of tables the worker's page_size
}

// WorkerRun calls tidemark.worker_run, which wants a READ COMMITTED transaction of its own. It sets statement_timeout
// where the session has none: nothing else ends a target that hangs.
func (db *DB) WorkerRun(ctx context.Context, worker string, f RunFilter) (Pass, error) {
	_, err := db.querier.Exec(ctx, `select set_config('statement_timeout', ceil((20 + 2 * extract(epoch from max(r.timeout))) * 1000)::text, true)
		from tidemark.outbound_route r
		where r.worker = $1 and r.enabled and not r.dry_run and tidemark.target_is_inside(r.target_kind)
		having count(*) > 0 and current_setting('statement_timeout') = '0'`, worker)
	if err != nil {
		return Pass{}, tidemark.AsError(err)
	}
	return readPass(value[json.RawMessage](ctx, db, `select tidemark.worker_run($1, nullif($2, ''), $3, $4)`,
		worker, f.Source, f.Shard, f.Page))
}

// readPass reads the summary that the functions of passes return.
func readPass(summary json.RawMessage, err error) (Pass, error) {
	if err != nil {
		return Pass{}, err
	}
	p := Pass{Summary: summary}
	return p, json.Unmarshal(summary, &p)
}

// Health is how a worker is doing, from tidemark.worker_health.
type Health struct {
	Worker          string          `db:"worker" json:"worker"`
	Source          string          `db:"source" json:"source"`
	Shard           int             `db:"shard" json:"shard"`
	Status          string          `db:"status" json:"status"` // closed, behind, idle, held, blocked, never ran, not read, unknown or no source
	Gate            *string         `db:"gate" json:"gate"`
	Watermark       *int64          `db:"watermark" json:"watermark"` // with LastSeq and Behind null for a table
	LastSeq         *int64          `db:"last_seq" json:"last_seq"`
	Behind          *int64          `db:"behind" json:"behind"`
	BehindSeconds   *int64          `db:"behind_seconds" json:"behind_seconds"` // age of the oldest that is not read; null: it cannot be told
	Holes           int64           `db:"holes" json:"holes"`
	LastRunAt       *time.Time      `db:"last_run_at" json:"last_run_at"`
	LastRunSummary  json.RawMessage `db:"last_run_summary" json:"last_run_summary"`
	EventsSeen      int64           `db:"events_seen" json:"events_seen"`
	AttemptsWritten int64           `db:"attempts_written" json:"attempts_written"`
	DeadLettered    int64           `db:"dead_lettered" json:"dead_lettered"`
	OpenDeadLetters int64           `db:"open_dead_letters" json:"open_dead_letters"`
	Pending         int64           `db:"pending" json:"pending"`
}

const health = `select h.worker, h.source, h.shard, h.status, h.gate, h.watermark, h.last_seq, h.behind, h.behind_seconds, h.holes, h.last_run_at,
	h.last_run_summary, h.events_seen, h.attempts_written, h.dead_lettered, h.open_dead_letters, h.pending
from tidemark.worker_health h `

// WorkerHealth returns how all workers are doing.
func (db *DB) WorkerHealth(ctx context.Context) ([]Health, error) {
	return list[Health](ctx, db, health+`order by h.worker, h.source, h.shard`)
}

// WorkerHealthOf returns how one worker is doing, of several cursors the first, or
// tidemark.ErrNotFound. A worker of tables that reads none has the status "no source".
func (db *DB) WorkerHealthOf(ctx context.Context, worker string) (Health, error) {
	all, err := list[Health](ctx, db, health+`where h.worker = $1 order by h.source, h.shard limit 1`, worker)
	if err != nil {
		return Health{}, err
	}
	if len(all) == 0 {
		w, err := db.Worker(ctx, worker)
		return Health{Worker: w.Worker, Source: w.Source, Status: "no source"}, err
	}
	return all[0], nil
}

// Worker is the configuration of a worker. The columns of tidemark.worker say what each
// field means; those from Shards on are for workers of tables.
type Worker struct {
	Worker              string          `db:"worker" json:"worker"`
	Source              string          `db:"source" json:"source"`
	Handler             string          `db:"handler" json:"handler"`
	HandlerRef          *string         `db:"handler_ref" json:"handler_ref"`
	PayloadColumns      []string        `db:"payload_columns" json:"payload_columns"`
	Domains             []string        `db:"domains" json:"domains"` // null: all
	ReadOrder           string          `db:"read_order" json:"read_order"`
	HoleLimit           int             `db:"hole_limit" json:"hole_limit"`
	Shards              int             `db:"shards" json:"shards"`
	PageSize            int             `db:"page_size" json:"page_size"`
	PageTimeout         string          `db:"page_timeout" json:"page_timeout"` // interval
	RetryPolicy         json.RawMessage `db:"retry_policy" json:"retry_policy"`
	CoalesceWindow      *string         `db:"coalesce_window" json:"coalesce_window"` // interval
	StormFraction       *float64        `db:"storm_fraction" json:"storm_fraction"`
	OffPeak             *string         `db:"off_peak" json:"off_peak"`
	PeakPause           string          `db:"peak_pause" json:"peak_pause"` // interval
	LockWaitLimit       *int            `db:"lock_wait_limit" json:"lock_wait_limit"`
	ReplicationLagLimit *string         `db:"replication_lag_limit" json:"replication_lag_limit"` // interval
	Description         string          `db:"description" json:"description"`
}

const worker = `select w.worker, w.source, w.handler, w.handler_ref, w.payload_columns, w.domains, w.read_order, w.hole_limit, w.shards,
	w.page_size, w.page_timeout::text, w.retry_policy, w.coalesce_window::text, w.storm_fraction, w.off_peak, w.peak_pause::text,
	w.lock_wait_limit, w.replication_lag_limit::text, w.description from `

// WorkerSet calls tidemark.worker_set. starts is where a new worker of the log begins; empty: now.
func (db *DB) WorkerSet(ctx context.Context, name string, changes Changes, reason, starts string) (Worker, error) {
	return one[Worker](ctx, db, worker+`tidemark.worker_set($1, coalesce($2::jsonb, '{}'), nullif($3, ''), nullif($4, '')) w`, name, changes, reason, starts)
}

// Worker returns the configuration of a worker, or tidemark.ErrNotFound.
func (db *DB) Worker(ctx context.Context, name string) (Worker, error) {
	w, err := one[Worker](ctx, db, worker+`tidemark.worker w where w.worker = $1`, name)
	return known(w, err, `worker "`+name+`"`, "Workers: tidemark worker list")
}

// Workers returns the configuration of all workers.
func (db *DB) Workers(ctx context.Context) ([]Worker, error) {
	return list[Worker](ctx, db, worker+`tidemark.worker w order by w.worker`)
}

// WorkerDelete calls tidemark.worker_delete.
func (db *DB) WorkerDelete(ctx context.Context, name, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.worker_delete($1, $2)`, name, reason)
	return tidemark.AsError(err)
}

// WorkerSourceAdd calls tidemark.worker_source_add, and returns how many cursors it made.
func (db *DB) WorkerSourceAdd(ctx context.Context, worker, source, reason string) (made int, err error) {
	return value[int](ctx, db, `select tidemark.worker_source_add($1, $2, nullif($3, ''))`, worker, source, reason)
}

// SourceRows estimates how many rows the table of a source has, as the planner does; 0: few, or not known yet.
func (db *DB) SourceRows(ctx context.Context, source string) (rows int64, err error) {
	return value[int64](ctx, db, `select coalesce(sum(c.reltuples) filter (where c.reltuples > 0 and c.relkind <> 'p'), 0)::bigint
		from tidemark.source s
		join pg_class t on t.oid = to_regclass(format('%I.%I', s.schema_name, s.table_name))
		join pg_class c on c.oid = any (tidemark.relation_tree(t.oid))
		where s.source = $1 and s.safety <> 'capture'`, source)
}

// WorkerSourceRemove calls tidemark.worker_source_remove, and returns how many cursors are
// gone.
func (db *DB) WorkerSourceRemove(ctx context.Context, worker, source, reason string) (gone int, err error) {
	return value[int](ctx, db, `select tidemark.worker_source_remove($1, $2, $3)`, worker, source, reason)
}

// Rewound is a row of what a rewind of the log comes to.
type Rewound struct {
	Was       int64   `db:"was" json:"-"`
	RouteCode *string `db:"route_code" json:"route_code"` // null: no route claimed them
	Outcome   *string `db:"outcome" json:"outcome"`
	Events    int64   `db:"events" json:"events"`
	Decided   *bool   `db:"decided" json:"decided"` // null: all events of the log in between
	Complete  bool    `db:"complete" json:"-"`
}

// WorkerRewind calls tidemark.worker_rewind.
func (db *DB) WorkerRewind(ctx context.Context, worker string, toSeq int64, reason string, dryRun bool) ([]Rewound, error) {
	return list[Rewound](ctx, db, `select was, route_code, outcome::text, events, decided, complete
		from tidemark.worker_rewind($1, $2, $3, $4)`, worker, toSeq, reason, dryRun)
}

// Outlook is what a worker of the log is about to do with events that it has not read yet.
type Outlook struct {
	RouteCode *string `db:"route_code" json:"route_code"` // null: all events
	Becomes   *string `db:"becomes" json:"becomes"`       // pending, disabled or dry_run
	Events    int64   `db:"events" json:"events"`
	Waiting   int64   `db:"waiting" json:"waiting"` // deliveries that are pending already
	FirstSeq  *int64  `db:"first_seq" json:"first_seq"`
	LastSeq   *int64  `db:"last_seq" json:"last_seq"`
	Complete  bool    `db:"complete" json:"complete"` // false: there may be more
}

// WorkerOutlook calls tidemark.worker_outlook. It is empty for a worker of tables.
func (db *DB) WorkerOutlook(ctx context.Context, worker string) ([]Outlook, error) {
	return list[Outlook](ctx, db, `select route_code, becomes::text, events, waiting, first_seq, last_seq, complete
		from tidemark.worker_outlook($1)`, worker)
}

// OutlookOf is an Outlook of a worker.
type OutlookOf struct {
	Worker string `db:"worker"`
	Outlook
}

// Outlooks calls tidemark.worker_outlook of at most so many workers of the log: those that the gate governs, and of a domain's gate
// those of their routes that may claim its events. With an empty gate all.
func (db *DB) Outlooks(ctx context.Context, gate string, workers int) ([]OutlookOf, error) {
	return list[OutlookOf](ctx, db, `select w.worker, o.route_code, o.becomes::text, o.events, o.waiting, o.first_seq, o.last_seq, o.complete
		from (select w.worker, g.domain from tidemark.worker w
			cross join substring($1 from '^domain[.](.*)[.]enabled$') g (domain)
			where w.source = 'outbox' and ($1 in ('', 'routes.enabled', 'worker.' || w.worker || '.enabled')
				or g.domain is not null and (w.domains is null or g.domain = any (w.domains)))
			order by w.worker limit $2) w
		cross join lateral tidemark.worker_outlook(w.worker) o
		left join tidemark.outbound_route r on r.route_code = o.route_code
		where w.domain is null or r.route_code is null or r.domain in ('*', w.domain)
		order by w.worker, o.route_code nulls first`, gate, workers)
}

// SourceRewind calls tidemark.source_rewind, and returns how many cursors it moved. A zero
// time and an empty id accept the place where they are.
func (db *DB) SourceRewind(ctx context.Context, worker, source, reason string, toTime time.Time, toID string) (cursors int, err error) {
	return value[int](ctx, db, `select tidemark.source_rewind($1, $2, $3, $4, nullif($5, ''))`, worker, source, reason, instant(toTime), toID)
}

// RewindOutlook is what a rewind of a cursor of a source would come to.
type RewindOutlook struct {
	Shard       int        `db:"shard" json:"shard"`
	WatermarkTS *time.Time `db:"watermark_ts" json:"watermark_ts" doc:"Where it is now."`
	WatermarkID *string    `db:"watermark_id" json:"watermark_id"`
	Rows        *int64     `db:"rows" json:"rows" doc:"That would be read again; null: they cannot be counted."`
	Complete    bool       `db:"complete" json:"complete" doc:"false: only the first 10000 rows were looked at."`
	Problem     *string    `db:"problem" json:"problem" doc:"Why they cannot be counted."`
}

// SourceRewindOutlook calls tidemark.source_rewind_outlook.
func (db *DB) SourceRewindOutlook(ctx context.Context, worker, source string, toTime time.Time, toID string) ([]RewindOutlook, error) {
	return list[RewindOutlook](ctx, db, `select o.shard, o.watermark_ts, o.watermark_id, o.rows, o.complete, o.problem
		from tidemark.source_rewind_outlook($1, $2, $3, nullif($4, '')) o`, worker, source, instant(toTime), toID)
}

// WorkerPause calls tidemark.worker_pause, and reports whether that changed anything.
func (db *DB) WorkerPause(ctx context.Context, worker string, pause bool, reason string) (changed bool, err error) {
	return value[bool](ctx, db, `select tidemark.worker_pause($1, $2, nullif($3, ''))`, worker, pause, reason)
}

// WorkerDetails is a worker, and how far each of its cursors is.
type WorkerDetails struct {
	Worker
	Log     *Health        `json:"log" doc:"Of the first shard, often the only one; null for a worker of tables."`
	Logs    []Health       `json:"logs" doc:"Of a worker of the log, by shard."`
	Cursors []SourceCursor `json:"cursors" doc:"Of a worker of tables."`
	Leases  []Lease        `json:"leases" doc:"By source and shard."`
}

// Lease is who runs a cursor.
type Lease struct {
	Source string     `db:"source" json:"source"`
	Shard  int        `db:"shard" json:"shard"`
	Owner  *string    `db:"lease_owner" json:"lease_owner"` // null: no one
	Until  *time.Time `db:"lease_until" json:"lease_until"`
	Epoch  int64      `db:"lease_epoch" json:"lease_epoch"`
	Holes  int64      `db:"holes" json:"holes" doc:"Numbers below the watermark that have not shown up."`
	HeldBy *string    `db:"held_by" json:"held_by" doc:"The transactions that keep them open."`
	Paused *time.Time `db:"paused_at" json:"paused_at" doc:"Since when; null: it is not paused."`
	Offset *int64     `db:"next_offset" json:"next_offset" doc:"Of the next record of a partition of Kafka; null: it is none."`
}

// WorkerDetails returns the configuration of a worker and its cursors, or tidemark.ErrNotFound.
func (db *DB) WorkerDetails(ctx context.Context, name string) (d WorkerDetails, err error) {
	err = InTurn(
		func() error { d.Worker, err = db.Worker(ctx, name); return err },
		func() error {
			d.Leases, err = list[Lease](ctx, db, `select c.source, c.shard, h.lease_owner, h.lease_until, h.lease_epoch, c.holes, c.held_by, k.paused_at,
					case when c.source like 'kafka:%' then k.watermark_id::bigint end as next_offset
				from tidemark.cursor_held($1) c join tidemark.heartbeat h on h.executor_id = tidemark.executor_id($1, c.source, c.shard)
				join tidemark.worker_cursor k on k.worker = $1 and k.source = c.source and k.shard = c.shard
				order by c.source, c.shard limit 100`, name)
			return err
		},
	)
	if err != nil {
		return d, err
	}
	if d.Source != "outbox" {
		d.Cursors, err = db.SourceCursors(ctx, name)
		return d, err
	}
	if d.Logs, err = list[Health](ctx, db, health+`where h.worker = $1 order by h.shard`, name); err == nil && len(d.Logs) > 0 {
		d.Log = &d.Logs[0]
	}
	return d, err
}
