package store

import (
	"context"
	"time"
)

// BacktestGroup is a row of tidemark.route_backtest: what a route would have done with
// past events of a type; with all types of the outcome, where Type is null.
type BacktestGroup struct {
	Outcome        *string    `db:"outcome" json:"outcome"` // null: the route does not claim them
	Reason         *string    `db:"reason" json:"reason"`
	Detail         *string    `db:"detail" json:"detail"`
	TargetKind     string     `db:"target_kind" json:"target_kind"`
	TargetRef      string     `db:"target_ref" json:"target_ref"`
	Domain         *string    `db:"domain" json:"domain"`
	Type           *string    `db:"type" json:"type"`
	Events         int64      `db:"events" json:"events"`
	FirstAt        time.Time  `db:"first_at" json:"first_at"`
	LastAt         time.Time  `db:"last_at" json:"last_at"`
	Keys           *int64     `db:"keys" json:"keys"`
	WithoutKey     *int64     `db:"without_key" json:"without_key"`
	PayloadBytes   *int64     `db:"payload_bytes" json:"payload_bytes"`
	LargestPayload *int64     `db:"largest_payload" json:"largest_payload"`
	BusiestMinute  *time.Time `db:"busiest_minute" json:"busiest_minute"`
	BusiestEvents  *int64     `db:"busiest_events" json:"busiest_events"`
	Newest         []int64    `db:"newest" json:"newest"` // numbers
}

// RouteBacktest calls tidemark.route_backtest. The zero Until is now.
func (db *DB) RouteBacktest(ctx context.Context, code string, since, until time.Time, samples int) ([]BacktestGroup, error) {
	return list[BacktestGroup](ctx, db, `select b.outcome::text, b.reason, b.detail, b.target_kind, b.target_ref, b.domain, b.type, b.events,
		b.first_at, b.last_at, b.keys, b.without_key, b.payload_bytes, b.largest_payload, b.busiest_minute, b.busiest_events, b.newest
		from tidemark.route_backtest($1, $2, $3, $4) b`, code, since, instant(until), samples)
}

// LogReach is what a worker can see of the past.
type LogReach struct {
	Begins  *time.Time `db:"begins"`  // when the oldest event was emitted; null: there is none
	Domains []string   `db:"domains"` // that the worker reads; null: all
}

// LogReach returns what the worker can see of the past.
func (db *DB) LogReach(ctx context.Context, worker string) (LogReach, error) {
	return one[LogReach](ctx, db, `select (select o.created_at from tidemark.outbox o order by o.seq limit 1) as begins, w.domains
		from tidemark.worker w where w.worker = $1`, worker)
}
