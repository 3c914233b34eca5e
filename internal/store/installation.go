package store

import (
	"context"
	"time"
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

// Counts are the figures of the whole installation.
type Counts struct {
	LastSeq         int64      `db:"last_seq" json:"last_seq"`               // last number that was taken
	NewestEventAt   *time.Time `db:"newest_event_at" json:"newest_event_at"` // null: the log is empty
	EventTypes      int64      `db:"event_types" json:"event_types"`         // enabled ones
	Routes          int64      `db:"routes" json:"routes"`
	RoutesEnabled   int64      `db:"routes_enabled" json:"routes_enabled"`
	RoutesLive      int64      `db:"routes_live" json:"routes_live"` // enabled, not in dry run
	OpenDeadLetters int64      `db:"open_dead_letters" json:"open_dead_letters"`
	Pending         int64      `db:"pending" json:"pending"`
	OpenFindings    int64      `db:"open_findings" json:"open_findings"`
}

// Counts returns the figures of the installation.
func (db *DB) Counts(ctx context.Context) (Counts, error) {
	return one[Counts](ctx, db, `select
		coalesce((select max(o.seq) from tidemark.outbox o), 0) as last_seq,
		(select o.created_at from tidemark.outbox o order by o.seq desc limit 1) as newest_event_at,
		(select count(*) from tidemark.event_type t where t.enabled) as event_types,
		r.routes, r.routes_enabled, r.routes_live,
		(select count(*) from tidemark.dead_letter l where l.resolved_at is null) as open_dead_letters,
		(select count(*) from tidemark.pending) as pending,
		(select count(*) from tidemark.finding f where f.closed_at is null) as open_findings
	from (select count(*) as routes, count(*) filter (where r.enabled) as routes_enabled,
	             count(*) filter (where r.enabled and not r.dry_run) as routes_live from tidemark.outbound_route r) r`)
}

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

// UnregisteredEmits returns those of the last day, the latest first.
func (db *DB) UnregisteredEmits(ctx context.Context) ([]UnregisteredEmits, error) {
	return list[UnregisteredEmits](ctx, db, `select u.domain, u.type, u.role, u.emits, u.first_at, u.last_at
		from tidemark.unregistered_emits u order by u.last_at desc, u.domain, u.type, u.role`)
}
