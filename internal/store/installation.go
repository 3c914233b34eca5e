package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Check is a check of the installation, by tidemark.verify.
type Check struct {
	Check  string `db:"check" json:"check"`
	Status string `db:"status" json:"status"` // ok, warn or fail
	Detail string `db:"detail" json:"detail"`
	Hint   string `db:"hint" json:"hint"`
}

// Verify calls tidemark.verify, which changes nothing.
func (db *DB) Verify(ctx context.Context) ([]Check, error) {
	return list[Check](ctx, db, `select v."check", v.status, v.detail, v.hint from tidemark.verify() v`)
}

// VerifyNote calls tidemark.verify_note; result null: it begins.
func (db *DB) VerifyNote(ctx context.Context, reason string, result json.RawMessage) error {
	_, err := db.querier.Exec(ctx, `select tidemark.verify_note($1, $2)`, reason, result)
	return tidemark.AsError(err)
}

// Upkeep is something that tidemark.maintain did, or did not do and why.
type Upkeep struct {
	Action string `db:"action" json:"action"`
	Object string `db:"object" json:"object"`
	Detail string `db:"detail" json:"detail"`
}

// Maintain calls tidemark.maintain.
func (db *DB) Maintain(ctx context.Context) ([]Upkeep, error) {
	return list[Upkeep](ctx, db, `select m.action, m.object, m.detail from tidemark.maintain() m`)
}

// MaintainNote calls tidemark.maintain_note.
func (db *DB) MaintainNote(ctx context.Context, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.maintain_note($1)`, reason)
	return tidemark.AsError(err)
}

// Server is where the session is.
type Server struct {
	Database  string `db:"database" json:"database"`
	Role      string `db:"role" json:"role"` // that logged in
	Version   string `db:"version" json:"server_version"`
	InStandby bool   `db:"in_standby" json:"in_standby"`
}

// Server tells where the session is.
func (db *DB) Server(ctx context.Context) (Server, error) {
	return one[Server](ctx, db, `select current_database()::text as database, session_user::text as role,
		current_setting('server_version') as version, pg_is_in_recovery() as in_standby`)
}

// MostCounted is how far pending deliveries and dead letters are counted: a target that is down for long has millions.
const MostCounted = 10_000

// Counts are the figures of the whole installation.
type Counts struct {
	LastSeq         int64      `db:"last_seq" json:"last_seq"`               // last number that was taken
	NewestEventAt   *time.Time `db:"newest_event_at" json:"newest_event_at"` // null: the log is empty
	EventTypes      int64      `db:"event_types" json:"event_types"`         // enabled ones
	Cursors         int64      `db:"cursors" json:"cursors"`                 // of workers
	Routes          int64      `db:"routes" json:"routes"`
	RoutesEnabled   int64      `db:"routes_enabled" json:"routes_enabled"`
	RoutesLive      int64      `db:"routes_live" json:"routes_live"` // enabled, not in dry run
	OpenDeadLetters int64      `db:"open_dead_letters" json:"open_dead_letters" doc:"Counted up to 10000."`
	Pending         int64      `db:"pending" json:"pending" doc:"Counted up to 10000."`
	OpenFindings    int64      `db:"open_findings" json:"open_findings"`
}

const figures = `select
		coalesce((select max(o.seq) from tidemark.outbox o), 0) as last_seq,
		(select o.created_at from tidemark.outbox o order by o.seq desc limit 1) as newest_event_at,
		(select count(*) from tidemark.event_type t where t.enabled) as event_types,
		(select count(*) from tidemark.worker_cursor) as cursors, r.routes, r.routes_enabled, r.routes_live,
		(select count(*) from (select from tidemark.dead_letter l where l.resolved_at is null order by l.last_failed_at limit 10000) l) as open_dead_letters,
		(select count(*) from (select from tidemark.pending limit 10000) p) as pending,
		(select count(*) from tidemark.finding f where f.closed_at is null) as open_findings
	from (select count(*) as routes, count(*) filter (where r.enabled) as routes_enabled,
	             count(*) filter (where r.enabled and not r.dry_run) as routes_live from tidemark.outbound_route r) r`

// UnregisteredEmits are emits of one type by one role that stored nothing, since the type
// is not registered or not enabled. The type "*" of the domain "*" stands for those past
// the thousandth.
type UnregisteredEmits struct {
	Domain  string    `db:"domain" json:"domain"` // its first 63 characters
	Type    string    `db:"type" json:"type"`     // its first 128 characters
	Role    string    `db:"role" json:"role"`     // that logged in
	Emits   int64     `db:"emits" json:"emits"`
	FirstAt time.Time `db:"first_at" json:"first_at"`
	LastAt  time.Time `db:"last_at" json:"last_at"`
}

// Those with an emit in the last day, the latest first.
const unregisteredEmits = `select u.domain, u.type, u.role, u.emits, u.first_at, u.last_at
		from tidemark.unregistered_emits u order by u.last_at desc, u.domain, u.type, u.role`

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
	by := func(who string) string {
		return `(select a.id, a.at, a.actor, a.person, a.action, a.object, a.reason, a.before, a.after from tidemark.audit a
		where ` + who + ` and ($2 = '' or a.object = $2 or starts_with(a.object, $2 || ' '))
		  and ($3::timestamptz is null or a.at >= $3) and ($4::timestamptz is null or a.at < $4) and ($5::bigint = 0 or a.id < $5)
		order by a.id desc limit nullif($6::integer, 0))`
	}
	sql := by("$1 = ''")
	if f.Who != "" { // a part for each index
		sql = by("a.actor = $1") + " union " + by("a.person = $1") + " order by id desc limit nullif($6::integer, 0)"
	}
	return list[AuditEntry](ctx, db, sql, f.Who, f.Object, instant(f.Since), instant(f.Until), f.Before, f.Limit)
}

// Setting is a setting of the installation, gates included.
type Setting struct {
	Key         string `db:"key" json:"key"`
	Value       string `db:"value" json:"value"`
	Description string `db:"description" json:"description"`
}

// SettingSet calls tidemark.setting_set.
func (db *DB) SettingSet(ctx context.Context, key, to, reason string) (Setting, error) {
	return one[Setting](ctx, db, `select s.key, s.value, s.description from tidemark.setting_set($1, $2, nullif($3, '')) s`, key, to, reason)
}

// Settings returns all settings.
func (db *DB) Settings(ctx context.Context) ([]Setting, error) {
	return list[Setting](ctx, db, `select s.key, s.value, s.description from tidemark.setting s order by s.key`)
}
