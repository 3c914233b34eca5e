package store

import (
	"context"

	"github.com/tidemarkhq/tidemark"
)

// InboundRoute makes changes of a table events. The columns of tidemark.inbound_route
// say what each field means.
type InboundRoute struct {
	RouteCode         string   `db:"route_code" json:"route_code"`
	SourceObjectKind  string   `db:"source_object_kind" json:"source_object_kind"`
	SourceSchema      string   `db:"source_schema" json:"source_schema"`
	SourceTable       string   `db:"source_table" json:"source_table"`
	SQLEvent          string   `db:"sql_event" json:"sql_event"`
	Domain            string   `db:"domain" json:"domain"`
	Type              string   `db:"type" json:"type"`
	Stream            *string  `db:"stream" json:"stream"`
	Enabled           bool     `db:"enabled" json:"enabled"`
	DryRun            bool     `db:"dry_run" json:"dry_run"`
	FailClosed        bool     `db:"fail_closed" json:"fail_closed"`
	IdempotencyPolicy string   `db:"idempotency_policy" json:"idempotency_policy"`
	PayloadColumns    []string `db:"payload_columns" json:"payload_columns"`
	Description       string   `db:"description" json:"description"`
}

// InboundRouteSet calls tidemark.inbound_route_set.
func (db *DB) InboundRouteSet(ctx context.Context, code string, changes Changes, reason string) (InboundRoute, error) {
	return one[InboundRoute](ctx, db, `select r.route_code, r.source_object_kind, r.source_schema, r.source_table, r.sql_event, r.domain, r.type, r.stream,
		r.enabled, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns, r.description
		from tidemark.inbound_route_set($1, coalesce($2::jsonb, '{}'), nullif($3, '')) r`, code, changes, reason)
}

// InboundRouteDelete calls tidemark.inbound_route_delete.
func (db *DB) InboundRouteDelete(ctx context.Context, code, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.inbound_route_delete($1, $2)`, code, reason)
	return tidemark.AsError(err)
}

// CaptureStatement is a statement of CaptureAttach or CaptureDetach.
type CaptureStatement struct {
	Operation string `db:"operation" json:"operation"`
	Statement string `db:"statement" json:"statement"`
}

// CaptureAttach calls tidemark.capture_attach. In a dry run it returns the statements only.
func (db *DB) CaptureAttach(ctx context.Context, table, reason string, dryRun, always bool) ([]CaptureStatement, error) {
	return list[CaptureStatement](ctx, db, `select a.operation, a.statement from tidemark.capture_attach($1::text::regclass, $2, $3, $4) a`, table, reason, dryRun, always)
}

// CaptureDetach calls tidemark.capture_detach.
func (db *DB) CaptureDetach(ctx context.Context, table, reason string, dryRun bool) ([]CaptureStatement, error) {
	return list[CaptureStatement](ctx, db, `select d.operation, d.statement from tidemark.capture_detach($1::text::regclass, $2, $3) d`, table, reason, dryRun)
}

// InboundRoutesOn are the enabled inbound routes of the table.
func (db *DB) InboundRoutesOn(ctx context.Context, table string) ([]string, error) {
	return value[[]string](ctx, db, `select array(select i.route_code from tidemark.inbound_route i
		join pg_catalog.pg_namespace n on n.nspname = i.source_schema
		join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = i.source_table
		where i.source_object_kind = 'table' and i.enabled and c.oid = $1::text::regclass order by 1)`, table)
}

// LockBlame calls tidemark.lock_blame: which session keeps triggers from being put on the table. Empty: none.
func (db *DB) LockBlame(ctx context.Context, table string) (string, error) {
	return value[string](ctx, db, `select coalesce(tidemark.lock_blame($1::text::regclass), '')`, table)
}

// Captured is an operation of a table that has an inbound route or a trigger.
type Captured struct {
	SchemaName     string   `db:"schema_name" json:"schema_name"`
	TableName      string   `db:"table_name" json:"table_name"`
	Operation      string   `db:"operation" json:"operation"`
	RouteCode      *string  `db:"route_code" json:"route_code"`
	Domain         *string  `db:"domain" json:"domain"`
	Type           *string  `db:"type" json:"type"`
	State          string   `db:"state" json:"state"`
	Trigger        string   `db:"trigger" json:"trigger"`
	PayloadColumns []string `db:"payload_columns" json:"payload_columns"`
}

// CaptureList reads tidemark.capture_list.
func (db *DB) CaptureList(ctx context.Context) ([]Captured, error) {
	return list[Captured](ctx, db, `select l.schema_name, l.table_name, l.operation, l.route_code, l.domain, l.type, l.state, l.trigger, l.payload_columns
		from tidemark.capture_list l order by l.schema_name, l.table_name, l.operation`)
}

// CaptureCheck calls tidemark.capture_check.
func (db *DB) CaptureCheck(ctx context.Context) ([]Check, error) {
	return list[Check](ctx, db, `select c.object as "check", c.status, c.problem as detail, c.hint from tidemark.capture_check() c`)
}

// Reconciled is what tidemark.capture_reconcile says of a table.
type Reconciled struct {
	Relation    string   `db:"relation" json:"relation"`
	Status      string   `db:"status" json:"status"`
	Changes     *int64   `db:"changes" json:"changes"`
	Events      *int64   `db:"events" json:"events"`
	Captured    *int64   `db:"captured" json:"captured"`
	MissingKeys []string `db:"missing_keys" json:"missing_keys"`
	Gap         *int64   `db:"gap" json:"gap"` // number of the table's open gap; null: there is none
	Detail      string   `db:"detail" json:"detail"`
}

// CaptureReconcile calls tidemark.capture_reconcile.
func (db *DB) CaptureReconcile(ctx context.Context, sample int) ([]Reconciled, error) {
	return list[Reconciled](ctx, db, `select r.relation, r.status, r.changes, r.events, r.captured, r.missing_keys, r.gap, r.detail from tidemark.capture_reconcile($1) r`, sample)
}

// Gap is a row of tidemark.capture_gap.
type Gap struct {
	ID      int64  `db:"id" json:"id"`
	Name    string `db:"name" json:"name"`
	Rows    int64  `db:"rows" json:"rows"`
	Others  int64  `db:"others" json:"others"`
	Sampled bool   `db:"sampled" json:"sampled"`
	Emitted int64  `db:"emitted" json:"emitted"`

	Unreadable []string `db:"unreadable" json:"unreadable"` // keys of rows that jsonb cannot hold, with SQLSTATEs
}

// OpenGaps returns the gaps that are open, of all tables or of the one with that quoted name.
func (db *DB) OpenGaps(ctx context.Context, table string) ([]Gap, error) {
	return list[Gap](ctx, db, `select g.id, g.name, g.rows, g.others, g.sampled, g.emitted, g.unreadable from tidemark.capture_gap g
		where g.resolved_at is null and ($1 = '' or g.name = $1) order by g.name`, table)
}

// CaptureGapEmit calls tidemark.capture_gap_emit until there is no row left, each call a transaction of its own.
func (db *DB) CaptureGapEmit(ctx context.Context, id int64, reason string) (emitted int64, err error) {
	type page struct {
		Emitted  int64 `db:"emitted"`
		Complete bool  `db:"complete"`
	}
	for {
		p, err := one[page](ctx, db, `select e.emitted, e.complete from tidemark.capture_gap_emit($1, $2) e`, id, reason)
		emitted += p.Emitted
		if err != nil || p.Complete {
			return emitted, err
		}
	}
}

// CaptureGapAccept calls tidemark.capture_gap_accept.
func (db *DB) CaptureGapAccept(ctx context.Context, id int64, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.capture_gap_accept($1, $2)`, id, reason)
	return tidemark.AsError(err)
}

// CaptureGuard calls tidemark.capture_guard.
func (db *DB) CaptureGuard(ctx context.Context, on bool, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.capture_guard($1, $2)`, on, reason)
	return tidemark.AsError(err)
}

// Backfill is a row of tidemark.capture_backfill.
type Backfill struct {
	ID      int64  `db:"id"`
	Name    string `db:"name"`
	Type    string `db:"type"`
	Rows    int64  `db:"rows"`
	LeftOut int64  `db:"left_out"`
}

// OpenBackfill returns the backfill of the table with that name that is under way, even one of a table that is gone or
// was recreated; nil: none is open. A table that is gone is named as in tidemark.capture_backfill.
func (db *DB) OpenBackfill(ctx context.Context, table string) (*Backfill, error) {
	open, err := list[Backfill](ctx, db, `select b.id, b.name, b.type, b.rows, b.left_out from tidemark.capture_backfill b
		where b.name = coalesce((select format('%I.%I', n.nspname, c.relname) from pg_class c
				join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1::text)), $1::text)
			and b.finished_at is null and b.cancelled_at is null`, table)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	return &open[0], nil
}

// CaptureBackfillBegin calls tidemark.capture_backfill_begin.
func (db *DB) CaptureBackfillBegin(ctx context.Context, table, eventType, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.capture_backfill_begin($1::text::regclass, $2, $3)`, table, eventType, reason)
	return tidemark.AsError(err)
}

// BackfillStep is what tidemark.capture_backfill_step did.
type BackfillStep struct {
	Emitted  int64 `db:"emitted"`
	LeftOut  int64 `db:"left_out"`
	Complete bool  `db:"complete"`
}

// CaptureBackfillStep calls tidemark.capture_backfill_step.
func (db *DB) CaptureBackfillStep(ctx context.Context, id int64, limit int) (BackfillStep, error) {
	return one[BackfillStep](ctx, db, `select s.emitted, s.left_out, s.complete from tidemark.capture_backfill_step($1, $2) s`, id, limit)
}

// CaptureBackfillCancel calls tidemark.capture_backfill_cancel.
func (db *DB) CaptureBackfillCancel(ctx context.Context, id int64, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.capture_backfill_cancel($1, $2)`, id, reason)
	return tidemark.AsError(err)
}
