package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// Route is where events go. The columns of tidemark.outbound_route say what each
// field means.
type Route struct {
	ID            int32           `db:"-" json:"id,omitempty"` // workers alone get it
	RouteCode     string          `db:"route_code" json:"route_code"`
	Worker        string          `db:"worker" json:"worker"`
	Domain        string          `db:"domain" json:"domain"`
	Type          string          `db:"type" json:"type"`
	Stream        *string         `db:"stream" json:"stream"`
	KeyFilter     *string         `db:"key_filter" json:"key_filter"`
	PayloadFilter json.RawMessage `db:"payload_filter" json:"payload_filter"`
	TargetKind    string          `db:"target_kind" json:"target_kind"`
	TargetRef     string          `db:"target_ref" json:"target_ref"`
	TargetTakes   *string         `db:"target_takes" json:"target_takes,omitempty"` // event or batch; nil: no SQL function
	Exclusive     bool            `db:"exclusive" json:"exclusive"`
	Enabled       bool            `db:"enabled" json:"enabled"`
	DryRun        bool            `db:"dry_run" json:"dry_run"`
	FailClosed    bool            `db:"fail_closed" json:"fail_closed"`
	Ordering      string          `db:"ordering" json:"ordering"`
	RetryPolicy   json.RawMessage `db:"retry_policy" json:"retry_policy"`
	Timeout       string          `db:"timeout" json:"timeout"`             // interval
	Seconds       float64         `db:"-" json:"timeout_seconds,omitempty"` // the timeout; workers alone get it
	Concurrency   int             `db:"concurrency" json:"concurrency"`
	Options       json.RawMessage `db:"options" json:"options"`
	Transform     *string         `db:"transform" json:"transform"`
	Columns       []string        `db:"columns" json:"columns"` // null: all
	Description   string          `db:"description" json:"description"`
	PausedAt      *time.Time      `db:"paused_at" json:"paused_at"` // null: it is not paused
}

// TimeLimit is how long one delivery of a worker's route may take.
func (r Route) TimeLimit() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

const route = `select r.route_code, r.worker, r.domain, r.type, r.stream, r.key_filter, r.payload_filter, r.target_kind, r.target_ref,
	case when r.target_kind = 'sql' then (tidemark.sql_target(r.target_ref)).takes end as target_takes,
	r.exclusive, r.enabled, r.dry_run, r.fail_closed, r.ordering, r.retry_policy, r.timeout::text, r.concurrency, r.options,
	r.transform, r.columns, r.description, r.paused_at
from `

// RouteFilter chooses routes. Zero values: all.
type RouteFilter struct {
	Part
	Worker string
	Text   string // that the code, the event or the target has
}

// Part is a part of a list by name: at most Limit after a name. Zero: all.
type Part struct {
	After string
	Limit int
}

// Routes returns the routes of a filter.
func (db *DB) Routes(ctx context.Context, f RouteFilter) ([]Route, error) {
	return list[Route](ctx, db, route+`tidemark.outbound_route r where ($1 = '' or r.worker = $1)
		and ($2 = '' or strpos(concat_ws(' ', r.route_code, r.domain || '/' || r.type, r.target_kind, r.target_ref), $2) > 0)
		and ($3 = '' or r.route_code > $3) order by r.route_code limit nullif($4::integer, 0)`, f.Worker, f.Text, f.After, f.Limit)
}

// Route returns one route, or tidemark.ErrNotFound.
func (db *DB) Route(ctx context.Context, code string) (Route, error) {
	r, err := one[Route](ctx, db, route+`tidemark.outbound_route r where r.route_code = $1`, code)
	return known(r, err, `route "`+code+`"`, "Routes: tidemark route list")
}

// RouteSet calls tidemark.route_set. Without mayCreate an unknown route is
// tidemark.ErrNotFound.
func (db *DB) RouteSet(ctx context.Context, code string, changes Changes, reason string, mayCreate bool) (Route, error) {
	return one[Route](ctx, db, route+`tidemark.route_set($1, coalesce($2::jsonb, '{}'), nullif($3, ''), $4) r`, code, changes, reason, mayCreate)
}

// RoutePause calls tidemark.route_pause or route_resume, and reports whether that changed anything.
func (db *DB) RoutePause(ctx context.Context, code string, pause bool, reason string) (changed bool, err error) {
	return value[bool](ctx, db, `select case when $2 then tidemark.route_pause($1, nullif($3, '')) else tidemark.route_resume($1, nullif($3, '')) end`,
		code, pause, reason)
}

// RouteDelete calls tidemark.route_delete.
func (db *DB) RouteDelete(ctx context.Context, code, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.route_delete($1, $2)`, code, reason)
	return tidemark.AsError(err)
}

// RouteOptions returns the options of a route and locks the route until the end of the transaction. An unknown route has
// none.
func (db *DB) RouteOptions(ctx context.Context, code string) (map[string]json.RawMessage, error) {
	options, err := value[map[string]json.RawMessage](ctx, db, `select r.options from tidemark.outbound_route r where r.route_code = $1 for update`, code)
	if errors.Is(err, pgx.ErrNoRows) {
		return map[string]json.RawMessage{}, nil
	}
	return options, err
}

// Switch is a thing that must be open before a route delivers.
type Switch struct {
	Switch string `db:"switch" json:"switch"`
	Open   bool   `db:"is_open" json:"open"`
	State  string `db:"state" json:"state"`
	SQL    string `db:"sql" json:"sql"` // what opens it, as is the command
	CLI    string `db:"cli" json:"cli"`
}

// RouteSwitches calls tidemark.route_switches.
func (db *DB) RouteSwitches(ctx context.Context, code, reason string) ([]Switch, error) {
	return list[Switch](ctx, db, `select * from tidemark.route_switches($1, $2)`, code, reason)
}

// RouteGoLive calls tidemark.route_go_live.
func (db *DB) RouteGoLive(ctx context.Context, code, reason string) error {
	_, err := value[int64](ctx, db, `select count(*) from tidemark.route_go_live($1, $2)`, code, reason)
	return err
}

// RouteLatency is how long events of the last hour took from their emit until they were sent.
type RouteLatency struct {
	Events int64   `db:"events" json:"events" doc:"That were looked at, of the newest."`
	P50    float64 `db:"p50_seconds" json:"p50_seconds"`
	P99    float64 `db:"p99_seconds" json:"p99_seconds"`
}

// RouteLatency calls tidemark.route_latency for one route, by its largest sample. Nil: none was sent.
func (db *DB) RouteLatency(ctx context.Context, code string) (*RouteLatency, error) {
	all, err := db.RouteLatencies(ctx, 200, code)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0].RouteLatency, nil
}

// LatencyOfRoute is the latency of one of several routes.
type LatencyOfRoute struct {
	RouteCode string `db:"route_code" json:"route_code"`
	RouteLatency
}

// RouteLatencies calls tidemark.route_latency for routes, by samples of most batches and attempts each. Routes that sent nothing are
// left out.
func (db *DB) RouteLatencies(ctx context.Context, most int, codes ...string) ([]LatencyOfRoute, error) {
	return list[LatencyOfRoute](ctx, db, `select c.code as route_code, l.events, l.p50_seconds, l.p99_seconds
		from unnest($1::text[]) c (code) cross join lateral tidemark.route_latency(c.code, $2) l`, codes, most)
}

// Missed is how many events were recorded while a route was off or in dry run, and not replayed since.
type Missed struct {
	Outcome  string `db:"outcome" json:"outcome"` // disabled or dry_run
	Events   int64  `db:"events" json:"events"`
	FirstSeq int64  `db:"first_seq" json:"first_seq"`
	LastSeq  int64  `db:"last_seq" json:"last_seq"`
	Complete bool   `db:"complete" json:"complete"` // false: there may be earlier ones
}

// RouteMissed calls tidemark.route_missed.
func (db *DB) RouteMissed(ctx context.Context, code string) ([]Missed, error) {
	return list[Missed](ctx, db, `select outcome::text, events, first_seq, last_seq, complete from tidemark.route_missed($1)`, code)
}

// WhyNot is why a route delivers nothing, or what became of the latest event that it claims.
type WhyNot struct {
	Reason   string  `db:"reason" json:"reason"`
	Sentence string  `db:"sentence" json:"sentence"`
	Command  *string `db:"command" json:"command"`
}

// RouteWhyNot calls tidemark.route_why_not.
func (db *DB) RouteWhyNot(ctx context.Context, code string) ([]WhyNot, error) {
	return list[WhyNot](ctx, db, `select * from tidemark.route_why_not($1)`, code)
}

// TargetIsInside calls tidemark.target_is_inside: whether the database itself delivers to targets of the kind.
func (db *DB) TargetIsInside(ctx context.Context, kind string) (bool, error) {
	return value[bool](ctx, db, `select tidemark.target_is_inside($1)`, kind)
}

// RouteTest is the beginning of a test of a route's target.
type RouteTest struct {
	EventID   string          `db:"event_id"`
	Event     json.RawMessage `db:"event"`
	Route     json.RawMessage `db:"route"`
	Outcome   *string         `db:"outcome"` // of a target inside the database; null: it is to be sent
	ErrorCode *string         `db:"error_code"`
	Detail    *string         `db:"detail"`
}

// RouteTested is what came of a test of a route's target.
type RouteTested struct {
	EventID   string  `json:"event_id"`
	Outcome   string  `json:"outcome" enum:"delivered,accepted,failed,unknown" doc:"accepted: by a target inside the database, and undone."`
	ErrorCode string  `json:"error_code"`
	Detail    string  `json:"detail"`
	Seconds   float64 `json:"seconds"`
}

// Done is the end of the test of a target inside the database.
func (t RouteTest) Done(took time.Duration) RouteTested {
	done := RouteTested{EventID: t.EventID, Outcome: *t.Outcome, Seconds: took.Seconds()}
	if t.ErrorCode != nil {
		done.ErrorCode = *t.ErrorCode
	}
	if t.Detail != nil {
		done.Detail = *t.Detail
	}
	return done
}

// RouteTest calls tidemark.route_test.
func (db *DB) RouteTest(ctx context.Context, code, reason string) (RouteTest, error) {
	return one[RouteTest](ctx, db, `select t.event_id::text, t.event, t.route, t.outcome, t.error_code, t.detail from tidemark.route_test($1, nullif($2, '')) t`, code, reason)
}

// RouteTestNote calls tidemark.route_test_note.
func (db *DB) RouteTestNote(ctx context.Context, code string, t RouteTested, reason string) error {
	_, err := value[any](ctx, db, `select tidemark.route_test_note($1, $2::uuid, $3, nullif($4, ''), nullif($5, ''), $6, $7)::text`,
		code, t.EventID, t.Outcome, t.ErrorCode, t.Detail, t.Seconds, reason)
	return err
}
