package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed tables.sql
var tables string

const (
	masterGate  = "routes.enabled"
	tableWorker = "tables"
)

// Row is a row of a table that a worker reads, as it is in the end.
type Row struct {
	Source string
	ID     string
	Write  int64
	Poison bool
	Gone   bool // deleted by an operator
}

// Note is what the worker's handler wrote down of a row.
type Note struct {
	At     time.Time
	Source string
	ID     string
	Write  int64
}

// RowLetter is a dead letter of a row. Ids may be given out again, the number of the write is not.
type RowLetter struct {
	Source string
	Write  int64
}

// append writes a row to each table, under the number of a write. What it says of the time lies up to 40 s back; the
// sweep has 2 minutes for that and for the transaction to end.
func (d *draft) append(id int64) {
	random := d.p.random
	taken := any(time.Now().Add(-between(random, 0, 40*time.Second)))
	switch random.IntN(50) {
	case 0:
		taken = nil
	case 1:
		taken = "infinity"
	case 2:
		taken = "-infinity"
	}
	d.exec(`select app.append($1, $2, $3, $4::text::timestamptz)`, id, random.IntN(400) == 0, fmt.Sprintf("%016x-%d", random.Uint64(), id), text(taken))
}

// text is how a time goes to the server that may also be no time.
func text(taken any) any {
	if t, ok := taken.(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return taken
}

// installTables gives the daemons tables to read.
func (h *harness) installTables(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, tables+remake); err != nil {
		return fmt.Errorf("tables.sql: %w", err)
	}
	_, err := conn.Exec(ctx, `select tidemark.gate_set($1, true)`, "worker."+tableWorker+".enabled")
	return err
}

// lagging says what the worker of the tables has still to do, for writers whose transactions are all below xid: a
// sweep that has begun after them has to come to its end.
func (h *harness) lagging(ctx context.Context, xid string) (string, error) {
	if !h.withTables() {
		return "", nil
	}
	rows, _, err := ask(ctx, h, pgx.RowTo[string], `
		select c.source || ' is ' || coalesce(c.last_run_summary ->> 'status', 'untouched') || coalesce(': ' || (c.last_run_summary ->> 'detail'), '')
		  from tidemark.worker_cursor c
		 where c.worker = $1 and case c.source
		       when 'ledger' then c.watermark_id::bigint < (select max(id) from app.ledger) or not isempty(c.holes + c.fenced)
		       when 'parcel' then c.watermark_id::bigint < (select max(seq) from tidemark.outbox) or not isempty(c.holes + c.fenced)
		       when 'receipt' then coalesce(c.watermark_ts < (select max(created_at) from app.receipt), true)
		       else coalesce((c.sweep ->> 'xmin')::xid8 < $2::xid8, true)
		            or coalesce(c.watermark_ts < (select max(taken_at) from app.reading where taken_at < 'infinity'), true) end
		 union all
		select count(*) || ' rows are pending (' || max(last_error) || ')' from tidemark.pending_row having count(*) > 0`, tableWorker, xid)
	return strings.Join(rows, ", "), err
}

// gatherTables reads what the checker needs of the tables.
func (h *harness) gatherTables(ctx context.Context, e *evidence) (err error) {
	if !h.withTables() {
		return nil
	}
	if e.Rows, _, err = ask(ctx, h, pgx.RowToStructByPos[Row], `
		select 'ledger', id::text, write_id, poison, false from app.ledger
		 union all select 'receipt', id::text, write_id, poison, false from app.receipt
		 union all select 'reading', id, write_id, poison, false from app.reading
		 union all select s, id::text, write_id, poison, false from app.parcel, unnest('{parcel,parcel-event}'::text[]) s
		 union all select source, row_id, write_id, poison, true from app.bygone`); err != nil {
		return err
	}
	if e.Notes, _, err = ask(ctx, h, pgx.RowToStructByPos[Note], `select at, source, row_id, write_id from app.noted order by n`); err != nil {
		return err
	}
	e.RowLetters, _, err = ask(ctx, h, pgx.RowToStructByPos[RowLetter], `
		select source, (event_snapshot ->> 'write_id')::bigint from tidemark.dead_letter where source not in ('outbox', 'commands')
		 union all
		select 'parcel-event', (l.event_snapshot -> 'payload' -> 'columns' ->> 'write_id')::bigint
		  from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'parcels'`)
	return err
}
