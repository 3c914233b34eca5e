package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cursor is a worker's cursor of the log, or of one shard of it, under a lease from Claim to Release.
type Cursor struct {
	lease
	pool    Pool
	binary  []any  // options of a query whose answer is read as bytes; nil before the first
	settles int64  // by this cursor and its earlier owners
	settled string // place of the page that was settled last
	lowest  int64  // of that page; 0: not known
}

// NewCursor returns the cursor of a worker's shard, not claimed yet; the first shard, often the only one, is 0. owner is a name
// for one instance of one process.
func NewCursor(db Pool, worker string, shard int, owner string, lasts time.Duration) *Cursor {
	return &Cursor{lease: lease{db: db, worker: worker, source: "outbox", shard: shard, owner: owner, lasts: lasts}, pool: db}
}

// Claim calls tidemark.claim.
func (c *Cursor) Claim(ctx context.Context) (Claim, error) {
	got, err := c.lease.Claim(ctx)
	if got.Status == "claimed" {
		c.settles, c.settled, c.lowest = got.settles, "", 0
	}
	return got, err
}

// Beat calls tidemark.beat: it renews the lease. gate is the one that is closed, empty
// for none; live are the routes that may deliver, shut the domains whose gate is closed.
func (c *Cursor) Beat(ctx context.Context) (gate string, live []int32, shut []string, err error) {
	var closed *string
	err = c.db.QueryRow(ctx, `select gate, live_routes, closed_domains from tidemark.beat($1, $2, $3::float8 * interval '1 second', $4)`,
		c.worker, c.epoch, c.lasts.Seconds(), c.shard).Scan(&closed, &live, &shut)
	if closed != nil {
		gate = *closed
	}
	return gate, live, shut, err
}

// Conflict reports, by tidemark.worker_finding, that this instance was fenced.
func (c *Cursor) Conflict(ctx context.Context) error {
	return c.finding(ctx, nil, "cursor_lease_conflict", CursorName(c.worker, c.source, c.shard), "an instance was fenced: two own the cursor, or one was paused past its lease", "")
}

// Failing reports, by tidemark.worker_finding, what fails again and again, and what the error said; empty: nothing does.
// An instance that holds the lease reports only until it is fenced.
func (c *Cursor) Failing(ctx context.Context, detail, message string) error {
	var epoch *int64
	if c.held {
		epoch = &c.epoch
	}
	return c.finding(ctx, epoch, "worker_failing", CursorName(c.worker, c.source, c.shard), detail, message)
}

// ExecutorID names a cursor as tidemark.executor_id does.
func ExecutorID(worker, source string, shard int) string {
	return fmt.Sprintf("%s/%s/%d", worker, source, shard)
}

// CursorName is ExecutorID, or the worker alone for the first shard of the log, which is often the only one. Findings about cursors of
// the log have it as subject (tidemark.cursor_name).
func CursorName(worker, source string, shard int) string {
	if source == "outbox" && shard == 0 {
		return worker
	}
	return ExecutorID(worker, source, shard)
}

// HeldFinding calls tidemark.worker_finding for what only the holder of the lease knows. An empty detail closes the finding.
// message is what an error said: it may quote a payload, and readers do not see it. The error is ErrFenced if another instance
// has the lease by now.
func (c *Cursor) HeldFinding(ctx context.Context, kind, subject, detail, message string) error {
	return c.finding(ctx, &c.epoch, kind, subject, detail, message)
}

func (c *Cursor) finding(ctx context.Context, epoch *int64, kind, subject, detail, message string) error {
	_, err := c.db.Exec(ctx, `select tidemark.worker_finding($1, $2, $3, nullif($4, ''), $5, nullif($6, ''), $7)`,
		c.worker, kind, subject, detail, epoch, message, c.shard)
	return err
}

// RouteGone calls tidemark.route_gone.
func (c *Cursor) RouteGone(ctx context.Context, route int32, detail string) error {
	_, err := c.db.Exec(ctx, `select tidemark.route_gone($1, $2, $3, $4, $5)`, c.worker, c.epoch, route, detail, c.shard)
	return err
}

// MaxKeys is how many waiting keys a worker knows one by one. It takes every key of a route
// that has more for one that waits.
const MaxKeys = 100_000

// Waiting is how many events of an ordering key are pending on a route, replays aside.
type Waiting struct {
	Route     int32
	Key       string
	Uncounted bool // the route has too many keys to name; Key is empty
	Events    int
}

// Waiting calls tidemark.pending_keys.
func (c *Cursor) Waiting(ctx context.Context) ([]Waiting, error) {
	rows, _ := c.db.Query(ctx, `select route_id, coalesce(key, ''), key is null, events from tidemark.pending_keys($1, $2, $3)`,
		c.worker, MaxKeys, c.shard)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Waiting])
}
