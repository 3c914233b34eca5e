package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Heartbeat is how an executor is, from tidemark.heartbeat_health.
type Heartbeat struct {
	ExecutorID       string          `db:"executor_id" json:"executor_id"`
	Kind             string          `db:"kind" json:"kind"`
	DomainScope      []string        `db:"domain_scope" json:"domain_scope"` // empty: all
	State            string          `db:"state" json:"state"`               // alive, silent or quiet
	Excuse           *string         `db:"excuse" json:"excuse"`             // why its silence is no alarm
	AgeSeconds       int64           `db:"age_seconds" json:"age_seconds"`
	CadenceSeconds   int             `db:"expected_cadence_seconds" json:"expected_cadence_seconds"`
	ThresholdSeconds int             `db:"stale_threshold_seconds" json:"stale_threshold_seconds"`
	LastStatus       string          `db:"last_status" json:"last_status"`
	LastBeatAt       *time.Time      `db:"last_beat_at" json:"last_beat_at"`
	TicksTotal       int64           `db:"ticks_total" json:"ticks_total"`
	RegisteredAt     time.Time       `db:"registered_at" json:"registered_at"`
	RegisteredBy     string          `db:"registered_by" json:"registered_by"`
	Payload          json.RawMessage `db:"payload" json:"payload"`
	Worker           *string         `db:"worker" json:"worker"`                 // whose cursor it is; null: of none
	CurrentJobID     *string         `db:"current_job_id" json:"current_job_id"` // null: it works on none
}

const heartbeat = `select h.executor_id, h.kind, h.domain_scope, h.state, h.excuse, h.age_seconds, h.expected_cadence_seconds,
	h.stale_threshold_seconds, h.last_status, h.last_beat_at, h.ticks_total, h.registered_at, h.registered_by, h.payload, h.worker, h.current_job_id
from tidemark.heartbeat_health h `

// Heartbeats returns how a part of the executors are.
func (db *DB) Heartbeats(ctx context.Context, p Part) ([]Heartbeat, error) {
	return list[Heartbeat](ctx, db, heartbeat+`where $1 = '' or h.executor_id > $1 order by h.executor_id limit nullif($2::integer, 0)`, p.After, p.Limit)
}

// Registration is what tidemark.heartbeat_register takes.
type Registration struct {
	ExecutorID  string
	Kind        string        // empty: as it is, and external_worker for a new one
	DomainScope []string      // empty: all
	Cadence     time.Duration // whole seconds
	Threshold   time.Duration // 0: three times the cadence
	Payload     string        // empty: {}
	Reason      string
}

// HeartbeatRegister calls tidemark.heartbeat_register.
func (db *DB) HeartbeatRegister(ctx context.Context, r Registration) (Heartbeat, error) {
	_, err := value[string](ctx, db, `select r.executor_id from tidemark.heartbeat_register($1, nullif($2, ''), coalesce($3::text[], '{}'),
		make_interval(secs => $4), make_interval(secs => nullif($5::float8, 0)), coalesce(nullif($6, '')::jsonb, '{}'), nullif($7, '')) r`,
		r.ExecutorID, r.Kind, r.DomainScope, r.Cadence.Seconds(), r.Threshold.Seconds(), r.Payload, r.Reason)
	if err != nil {
		return Heartbeat{}, err
	}
	return one[Heartbeat](ctx, db, heartbeat+`where h.executor_id = $1`, r.ExecutorID)
}

// HeartbeatDeregister calls tidemark.heartbeat_deregister.
func (db *DB) HeartbeatDeregister(ctx context.Context, executor, reason string) error {
	_, err := value[string](ctx, db, `select r.executor_id from tidemark.heartbeat_deregister($1, nullif($2, '')) r`, executor, reason)
	return err
}

// HeartbeatWrite calls tidemark.heartbeat_write and returns the time of the beat. job is empty where the executor works on none.
func (db *DB) HeartbeatWrite(ctx context.Context, executor, status, payload, job string) (time.Time, error) {
	return value[time.Time](ctx, db, `select tidemark.heartbeat_write($1, $2, coalesce(nullif($3, '')::jsonb, '{}'), nullif($4, ''))`, executor, status, payload, job)
}

// HeartbeatDaemon calls tidemark.heartbeat_daemon.
func (db *DB) HeartbeatDaemon(ctx context.Context, name, status string, payload map[string]any) error {
	_, err := value[time.Time](ctx, db, `select tidemark.heartbeat_daemon($1, $2, $3)`, name, status, payload)
	return err
}

// Silence is an executor that tidemark.stale_check found silent, or whose finding it closed.
type Silence struct {
	ExecutorID       string  `db:"executor_id" json:"executor_id"`
	State            string  `db:"state" json:"state"` // silent, returned, quiet or gone
	Severity         string  `db:"severity" json:"severity"`
	AgeSeconds       *int64  `db:"age_seconds" json:"age_seconds"` // null: it is gone
	CadenceSeconds   *int    `db:"expected_cadence_seconds" json:"expected_cadence_seconds"`
	ThresholdSeconds *int    `db:"stale_threshold_seconds" json:"stale_threshold_seconds"`
	LastStatus       *string `db:"last_status" json:"last_status"`
	EventID          *string `db:"event_id" json:"event_id"` // null: it was told before
}

// StaleCheck calls tidemark.stale_check, which wants READ COMMITTED.
func (db *DB) StaleCheck(ctx context.Context) ([]Silence, error) {
	return list[Silence](ctx, db, `select s.executor_id, s.state, s.severity::text, s.age_seconds, s.expected_cadence_seconds,
		s.stale_threshold_seconds, s.last_status, s.event_id::text from tidemark.stale_check() s`)
}

// QueueHealth is a row of tidemark.queue_health.
type QueueHealth struct {
	Kind       string          `db:"kind" json:"kind"`
	Name       string          `db:"name" json:"name"`
	Status     string          `db:"status" json:"status"` // ok, warn, bad or unknown
	AgeSeconds *int64          `db:"age_seconds" json:"age_seconds"`
	Count      *int64          `db:"count" json:"count"`
	Numbers    json.RawMessage `db:"numbers" json:"numbers"`
	Note       string          `db:"note" json:"note"`
	Domain     *string         `db:"domain" json:"domain"` // several with commas; null: all, or none
	LastSeenAt *time.Time      `db:"last_seen_at" json:"last_seen_at"`
	StatusHint *string         `db:"status_hint" json:"status_hint"` // stale, fresh, quiet or open; mostly null
}

// QueueHealth returns how everything is.
func (db *DB) QueueHealth(ctx context.Context) ([]QueueHealth, error) {
	return list[QueueHealth](ctx, db, `select q.kind, q.name, q.status, q.age_seconds, q.count, q.numbers, q.note, q.domain, q.last_seen_at, q.status_hint
		from tidemark.queue_health q order by q.kind, q.name`)
}

// Cause is something that is wrong, from tidemark.cause.
type Cause struct {
	Status   string     `db:"status" json:"status"` // bad, unknown or warn
	Cause    string     `db:"cause" json:"cause"`   // a word of tidemark.cause_kind
	Subject  string     `db:"subject" json:"subject"`
	Since    *time.Time `db:"since" json:"since"` // null: it cannot be told
	Found    string     `db:"found" json:"found"`
	Waiting  *int64     `db:"waiting" json:"waiting"`   // events, rows or commands; null: none
	Symptoms []string   `db:"symptoms" json:"symptoms"` // rows of tidemark.queue_health: kind and name
	Means    string     `db:"means" json:"means"`
	Todo     string     `db:"todo" json:"do"`
	SQL      []string   `db:"sql" json:"sql"` // statements that mend it
	CLI      []string   `db:"cli" json:"cli"` // commands that mend it
	Finding  *int64     `db:"finding" json:"finding"`
}

// Causes returns what is wrong, worst first.
func (db *DB) Causes(ctx context.Context) ([]Cause, error) {
	return list[Cause](ctx, db, `select c.status, c.cause, c.subject, c.since, c.found, c.waiting, c.symptoms, c.means, c.todo, c.sql, c.cli, c.finding
		from tidemark.cause c`)
}

// Explanation is what tidemark.cause_kind says of the causes of a kind.
type Explanation struct {
	Means string   `db:"means" json:"means"`
	Todo  string   `db:"todo" json:"do"`
	CLI   []string `db:"cli" json:"cli"`
}

// Explain explains a finding.
func (db *DB) Explain(ctx context.Context, kind, subject string) (e Explanation, err error) {
	all, err := list[Explanation](ctx, db, `select k.means, k.todo, tidemark.cause_commands(k.cli, $2, true) as cli
		from tidemark.cause_kind k where k.cause = tidemark.finding_cause($1)`, kind, subject)
	if len(all) > 0 {
		e = all[0]
	}
	return e, err
}

// WorkerSummary is how a cursor is doing, from tidemark.worker_summary.
type WorkerSummary struct {
	Worker               string     `db:"worker" json:"worker"`
	Source               string     `db:"source" json:"source"`
	Shard                int        `db:"shard" json:"shard"`
	Status               string     `db:"status" json:"status"` // closed, never ran, blocked, not read, behind, idle or unknown
	Gate                 *string    `db:"gate" json:"gate"`
	Events               *int64     `db:"events" json:"events"`   // behind; null: not the log
	Seconds              *int64     `db:"seconds" json:"seconds"` // behind: age of the oldest that is not read; null: it cannot be told
	Rate                 *float64   `db:"rate" json:"rate"`       // events a second; null: not known
	Holes                int64      `db:"holes" json:"holes"`
	Pending              int64      `db:"pending" json:"pending"`
	OldestPendingSeconds *int64     `db:"oldest_pending_seconds" json:"oldest_pending_seconds"`
	OpenDeadLetters      int64      `db:"open_dead_letters" json:"open_dead_letters"`
	LastRunAt            *time.Time `db:"last_run_at" json:"last_run_at"`
	WatermarkTS          *time.Time `db:"watermark_ts" json:"watermark_ts" doc:"Up to where it has read a table; null: it goes by number."`
	VerifiedThrough      *time.Time `db:"verified_through" json:"verified_through" doc:"Up to where the rows of a table were counted, and none was missed; null: not yet."`
}

// Which cursors are wanted is found first: what waits for the others, and their dead letters, are not counted.
const workerSummary = `select w.worker, w.source, w.shard, w.status, w.gate, w.events, w.seconds, w.rate, w.holes, w.pending,
	w.oldest_pending_seconds, w.open_dead_letters, w.last_run_at, k.watermark_ts, k.verified_through
	from tidemark.worker_summary w join tidemark.worker_cursor k on k.worker = w.worker and k.source = w.source and k.shard = w.shard
	where (w.worker, w.source, w.shard) in `

// WorkerSummaries returns how cursors are doing, by name.
func (db *DB) WorkerSummaries(ctx context.Context, p Part) ([]WorkerSummary, error) {
	return list[WorkerSummary](ctx, db, workerSummary+`(select c.worker, c.source, c.shard from tidemark.worker_cursor c
			where $1 = '' or (c.worker, c.source, c.shard) > (split_part($1, '/', 1), split_part($1, '/', 2), nullif(split_part($1, '/', 3), '')::integer)
			order by c.worker, c.source, c.shard limit nullif($2::integer, 0))
		order by w.worker, w.source, w.shard`, p.After, p.Limit)
}

// workersBehind returns how at most so many cursors are doing, by how far they are behind; those that are closed come last.
func (db *DB) workersBehind(ctx context.Context, most int) ([]WorkerSummary, error) {
	return list[WorkerSummary](ctx, db, workerSummary+`(select l.worker, l.source, l.shard from tidemark.cursor_lag l
			order by l.gate is null desc, l.seconds desc nulls last, l.worker, l.source, l.shard limit $1)
		order by w.gate is null desc, w.seconds desc nulls last, w.worker, w.source, w.shard`, most)
}

// RouteSummary is how a route is doing, from tidemark.route_summary.
type RouteSummary struct {
	RouteCode            string     `db:"route_code" json:"route_code"`
	Worker               string     `db:"worker" json:"worker"`
	TargetKind           string     `db:"target_kind" json:"target_kind"`
	State                string     `db:"state" json:"state"` // off, dry run, paused or live
	Sent                 int64      `db:"sent" json:"sent"`   // in the last hour, as the next two
	Retried              int64      `db:"retried" json:"retried"`
	Dead                 int64      `db:"dead" json:"dead"`
	Pending              int64      `db:"pending" json:"pending"`
	Retrying             int64      `db:"retrying" json:"retrying"` // of the pending ones
	OldestPendingSeconds *int64     `db:"oldest_pending_seconds" json:"oldest_pending_seconds"`
	OpenDeadLetters      int64      `db:"open_dead_letters" json:"open_dead_letters"`
	Breaker              *string    `db:"breaker" json:"breaker"`     // open or misconfigured
	PausedAt             *time.Time `db:"paused_at" json:"paused_at"` // also of a route that is off or in dry run; null: it is not paused
}

// RouteSummaries returns how all routes are doing.
func (db *DB) RouteSummaries(ctx context.Context, codes ...string) ([]RouteSummary, error) {
	return list[RouteSummary](ctx, db, `select r.route_code, r.worker, r.target_kind, r.state, r.sent, r.retried, r.dead, r.pending, r.retrying,
		r.oldest_pending_seconds, r.open_dead_letters, r.breaker, r.paused_at from tidemark.route_summary r
		where $1::text[] is null or r.route_code = any ($1) order by r.route_code`, codes)
}

// Finding is something that needs an operator.
type Finding struct {
	ID         int64      `db:"id" json:"id"`
	Kind       string     `db:"kind" json:"kind"`
	Subject    string     `db:"subject" json:"subject"`
	Severity   string     `db:"severity" json:"severity"`
	Detail     string     `db:"detail" json:"detail"`
	OpenedAt   time.Time  `db:"opened_at" json:"opened_at"`
	LastSeenAt time.Time  `db:"last_seen_at" json:"last_seen_at"`
	ClosedAt   *time.Time `db:"closed_at" json:"closed_at"`
	Count      int64      `db:"count" json:"count"`
	AckedAt    *time.Time `db:"acked_at" json:"acked_at"`
	AckedBy    *string    `db:"acked_by" json:"acked_by"`
	AckNote    *string    `db:"ack_note" json:"ack_note"`
}

const finding = `select f.id, f.kind, f.subject, f.severity::text, d.detail, f.opened_at, f.last_seen_at, f.closed_at, f.count,
	f.acked_at, f.acked_by, f.ack_note from tidemark.finding_detail d join `

// OpenPlace is the place of a finding in the list of the open ones. The finding itself may have changed or be over since.
type OpenPlace struct {
	Severity string    `json:"s"`
	Opened   time.Time `json:"o"`
	ID       int64     `json:"i"`
}

// OpenPlace is where the finding is in the list of the open ones.
func (f Finding) OpenPlace() OpenPlace { return OpenPlace{f.Severity, f.OpenedAt, f.ID} }

// OpenFindings returns the findings that are not over, worst first: those after a place; nil: from the beginning. limit 0: all.
func (db *DB) OpenFindings(ctx context.Context, after *OpenPlace, limit int) ([]Finding, error) {
	first := after == nil
	if first {
		after = &OpenPlace{Severity: "info"}
	}
	return list[Finding](ctx, db, finding+`tidemark.finding f using (id)
		where f.closed_at is null and ($1 or f.severity < $2::text::tidemark.severity or f.severity = $2::text::tidemark.severity and (f.opened_at, f.id) > ($3, $4))
		order by f.severity desc, f.opened_at, f.id limit nullif($5::integer, 0)`, first, after.Severity, after.Opened, after.ID, limit)
}

// ClosedPlace is the place of a finding in the list of those that are over. The finding itself may be gone since.
type ClosedPlace struct {
	Closed time.Time `json:"c"`
	ID     int64     `json:"i"`
}

// ClosedPlace is where the finding, which is over, is in the list of those.
func (f Finding) ClosedPlace() ClosedPlace { return ClosedPlace{*f.ClosedAt, f.ID} }

// ClosedFindings returns those that are over, newest first, as OpenFindings does.
func (db *DB) ClosedFindings(ctx context.Context, after *ClosedPlace, limit int) ([]Finding, error) {
	first := after == nil
	if first {
		after = &ClosedPlace{}
	}
	return list[Finding](ctx, db, finding+`tidemark.finding f using (id)
		where f.closed_at is not null and ($1 or (f.closed_at, f.id) < ($2, $3))
		order by f.closed_at desc, f.id desc limit nullif($4::integer, 0)`, first, after.Closed, after.ID, limit)
}

// Finding returns one finding, or tidemark.ErrNotFound.
func (db *DB) Finding(ctx context.Context, id int64) (Finding, error) {
	f, err := one[Finding](ctx, db, finding+`tidemark.finding f using (id) where f.id = $1`, id)
	return known(f, err, "finding "+strconv.FormatInt(id, 10), "Findings: tidemark finding list")
}

// FindingAck calls tidemark.finding_ack.
func (db *DB) FindingAck(ctx context.Context, id int64, note string) (Finding, error) {
	return one[Finding](ctx, db, finding+`tidemark.finding_ack($1, $2) f using (id)`, id, note)
}
