package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Timeout is PostgreSQL's answer to a statement that took longer than it may.
const Timeout = "57014"

// Pool is a *pgxpool.Pool.
type Pool interface {
	Querier
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
	Config() *pgxpool.Config
}

// Paging is what a worker's pages of tables have, as its operator sets it.
type Paging struct {
	PageSize    int     `json:"page_size"`    // rows at most
	PageTimeout float64 `json:"page_timeout"` // seconds that a pass may take
}

// Table is a worker's cursor of one shard of a source that is a table, under a lease from
// Claim to Release.
type Table struct {
	lease
	pool Pool
}

// NewTable returns the cursor, not claimed yet.
func NewTable(db Pool, worker, source string, shard int, owner string, lasts time.Duration) *Table {
	return &Table{lease: lease{db: db, worker: worker, source: source, shard: shard, owner: owner, lasts: lasts}, pool: db}
}

// Pass calls tidemark.source_pass, as one round trip and one transaction. A page that takes longer than the timeout is
// cut off: the next has fewer rows, down to the one that is at fault.
func (t *Table) Pass(ctx context.Context, timeout time.Duration) (Pass, error) {
	var summary []byte
	err := within(ctx, t.db, timeout, &summary,
		`select tidemark.source_pass($1, $2, $3, $4, lease => $5::float8 * interval '1 second')`,
		t.worker, t.source, t.shard, t.epoch, t.lasts.Seconds())
	if err != nil {
		return Pass{}, err
	}
	return readPass(summary, nil)
}

// within is a statement with a result of one value that the server ends when it takes longer than timeout.
func within(ctx context.Context, db Querier, timeout time.Duration, into any, sql string, args ...any) error {
	return rowWithin(ctx, db, timeout, []any{into}, sql, args...)
}

// rowWithin is within for a result of several columns. What follows in a transaction of the caller has the time that it had before: the
// commit may wait for a standby.
func rowWithin(ctx context.Context, db Querier, timeout time.Duration, into []any, sql string, args ...any) error {
	// What is sent at once is one transaction, so the settings end with it. A function that catches the timeout and goes on ends soon
	// after ctx, when the connection is closed; servers on Windows cannot look whether it is.
	var batch pgx.Batch
	_, shared := db.(pgx.Tx)
	if shared {
		batch.Queue(`select set_config('tidemark.statement_timeout', current_setting('statement_timeout'), true)`)
	}
	batch.Queue(`select set_config('statement_timeout', $1, true),
		case when version() ~* 'linux|darwin|bsd' then set_config('client_connection_check_interval', '1s', true) end`, milliseconds(timeout))
	before := batch.Len()
	batch.Queue(sql, args...)
	if shared {
		batch.Queue(`select set_config('statement_timeout', current_setting('tidemark.statement_timeout'), true)`)
	}
	results := db.SendBatch(ctx, &batch)
	for range before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close()
			return err
		}
	}
	err := results.QueryRow().Scan(into...)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// Row is a row of a table.
type Row struct {
	ID   string
	Time *time.Time
	Row  json.RawMessage
}

// FailedRow is a row that was refused.
type FailedRow struct {
	Row
	Message   string
	Permanent bool
	Delay     *time.Duration // nil: as the worker's retry_policy says
}

// Handle takes the rows of a page in tx and returns those that failed, and how often it
// had to try.
type Handle func(ctx context.Context, tx pgx.Tx, rows []Row) (failed []FailedRow, splits int, err error)

// Apply is a pass whose rows go to a function of this program: what that writes in the
// transaction commits with the cursor. Reading and handling end with the timeout: that a read was cut off is recorded. What is
// recorded then may last until ctx ends, but not the count of rows: the server ends it when the time is up, and the rest is
// recorded without it.
func (t *Table) Apply(ctx context.Context, timeout time.Duration, rows int, handle Handle) (pass Pass, err error) {
	err = pgx.BeginTxFunc(ctx, t.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		began := time.Now()
		closing := ctx
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var plan, read, refused, detail *string
		var ids, items []string
		var times []*time.Time
		splits := 0
		// An array of rows: what nests deeper than this program can decode is for the handler to refuse, not for the page.
		err := rowWithin(closing, tx, timeout, []any{&pass.Status, &detail, &plan, &read, &ids, &times, &items, &refused, &splits},
			`select status, detail, plan, read, ids, times, items, to_jsonb(refused)::text, splits
			from tidemark.source_open($1, $2, $3, $4, $5, $6::float8 * interval '1 second')`,
			t.worker, t.source, t.shard, t.epoch, orNull(rows), t.lasts.Seconds())
		if err != nil {
			return err
		}
		if pass.Status != "go" {
			if detail != nil {
				pass.Detail = *detail
			}
			return nil
		}
		page := make([]Row, len(ids))
		for i, id := range ids {
			page[i] = Row{ID: id, Time: times[i], Row: json.RawMessage(items[i])}
		}
		var failed []FailedRow
		if len(page) > 0 {
			tries := 0
			if failed, tries, err = handle(ctx, tx, page); err != nil {
				return err
			}
			splits += tries
		}
		if err = ctx.Err(); err != nil {
			return err
		}
		pass, err = t.close(closing, tx, timeout-time.Since(began), *plan, *read, *refused, failed, splits, began)
		return err
	})
	return pass, err
}

func (t *Table) close(ctx context.Context, tx pgx.Tx, timeout time.Duration, plan, read, refused string, failed []FailedRow, splits int,
	began time.Time,
) (pass Pass, err error) {
	type column = []string
	ids, rows, messages := make(column, len(failed)), make(column, len(failed)), make(column, len(failed))
	times, permanent, delays := make([]*time.Time, len(failed)), make([]bool, len(failed)), make([]*float64, len(failed))
	for i, f := range failed {
		ids[i], rows[i], messages[i], times[i], permanent[i] = f.ID, string(f.Row.Row), f.Message, f.Time, f.Permanent
		if f.Delay != nil {
			seconds := f.Delay.Seconds()
			delays[i] = &seconds
		}
	}
	var summary []byte
	err = within(ctx, tx, timeout, &summary, `select tidemark.source_close($1, $2::text::tidemark.source_plan, $3::text::tidemark.source_page, array(
		select f from jsonb_populate_recordset(null::tidemark.failed_row, $12::text::jsonb) f) || array(
		select row(f.id, f.ts, f.row::jsonb, 'handler', f.message, f.permanent, f.delay)::tidemark.failed_row
		from unnest($4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::boolean[], $9::float8[]) f (id, ts, row, message, permanent, delay)), $10, $11)`,
		t.epoch, plan, read, ids, times, rows, messages, permanent, delays, splits, began, refused)
	if err != nil {
		return Pass{}, err
	}
	return readPass(summary, nil)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

func orNull(rows int) *int {
	if rows == 0 {
		return nil
	}
	return &rows
}
