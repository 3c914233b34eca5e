package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/emit"
)

// emitArguments are those of tidemark.emit.
func emitArguments(e tidemark.Event) []any {
	var payload *string
	if e.Payload != nil {
		text := string(e.Payload)
		payload = &text
	}
	var occurred *time.Time
	if !e.OccurredAt.IsZero() {
		occurred = &e.OccurredAt
	}
	return []any{
		e.Domain, e.Type, payload, e.Key, e.Stream, string(e.Lane), string(e.Severity), e.SubjectTable, e.SubjectRef,
		e.IdempotencyKey, e.Trace, e.Actor, occurred,
	}
}

// Emit calls tidemark.emit. Null: the type is not registered or not enabled, and nothing was stored. Here and below a payload
// is checked against the whole schema of its type, as by tidemark.Emit.
func (db *DB) Emit(ctx context.Context, e tidemark.Event) (eventID *string, err error) {
	return db.emit(ctx, false, e)
}

// EmitStrict calls tidemark.emit_strict: a type that is not registered or not enabled
// is tidemark.ErrUnknownType.
func (db *DB) EmitStrict(ctx context.Context, e tidemark.Event) (eventID *string, err error) {
	return db.emit(ctx, true, e)
}

// EmitMany calls tidemark.emit_many. The ids stand in the order of the events, null as
// with Emit.
func (db *DB) EmitMany(ctx context.Context, events []tidemark.Event) (eventIDs []*string, err error) {
	return db.emitMany(ctx, false, events)
}

// EmitManyStrict calls tidemark.emit_many_strict: a type that is not registered or not enabled is
// tidemark.ErrUnknownType, and nothing is stored.
func (db *DB) EmitManyStrict(ctx context.Context, events []tidemark.Event) (eventIDs []*string, err error) {
	return db.emitMany(ctx, true, events)
}

func (db *DB) emit(ctx context.Context, strict bool, e tidemark.Event) (*string, error) {
	id, err := emit.One(ctx, db.row, strict, emit.Event{Domain: e.Domain, Type: e.Type, Payload: e.Payload}, emitArguments(e))
	return id, tidemark.AsError(err)
}

func (db *DB) emitMany(ctx context.Context, strict bool, events []tidemark.Event) ([]*string, error) {
	document, err := json.Marshal(events)
	if err != nil {
		return nil, err
	}
	checked := make([]emit.Event, len(events))
	for i, e := range events {
		checked[i] = emit.Event{Domain: e.Domain, Type: e.Type, Payload: e.Payload}
	}
	ids, err := emit.Many(ctx, db.row, strict, checked, string(document))
	return ids, tidemark.AsError(err)
}

func (db *DB) row(ctx context.Context, sql string, args ...any) emit.Row {
	return db.querier.QueryRow(ctx, sql, args...)
}

// StoredEvent is an event of the log without its payload, which not every role may read.
type StoredEvent struct {
	Seq            int64     `db:"seq" json:"seq"`
	EventID        string    `db:"event_id" json:"event_id"`
	CreatedAt      time.Time `db:"created_at" json:"created_at"`
	OccurredAt     time.Time `db:"occurred_at" json:"occurred_at"`
	Lane           string    `db:"lane" json:"lane"`
	Severity       string    `db:"severity" json:"severity"`
	Domain         string    `db:"domain" json:"domain"`
	Type           string    `db:"type" json:"type"`
	Stream         *string   `db:"stream" json:"stream"`
	Key            *string   `db:"key" json:"key"`
	SubjectTable   *string   `db:"subject_table" json:"subject_table"`
	SubjectRef     *string   `db:"subject_ref" json:"subject_ref"`
	IdempotencyKey *string   `db:"idempotency_key" json:"idempotency_key"`
	Trace          *string   `db:"trace" json:"trace"`
	Actor          string    `db:"actor" json:"actor"`
	EmittedBy      string    `db:"emitted_by" json:"emitted_by"` // the role that logged in, whatever Actor claims
}

const storedEvent = `select o.seq, o.event_id::text, o.created_at, o.occurred_at, o.lane::text, o.severity::text, o.domain, o.type,
	o.stream, o.key, o.subject_table, o.subject_ref, o.idempotency_key, o.trace, o.actor, coalesce(o.emitted_by, o.actor) as emitted_by
from tidemark.outbox o `

// EventFilter chooses events of the log. The zero value of a field chooses all.
type EventFilter struct {
	Domain, Type, Stream, Key string
	Since, Until              time.Time // created_at in [Since, Until)
	BeforeSeq                 int64     // numbers below this one
	Limit                     int       // at most so many; 0: all
}

// Events returns events of the log, newest first.
func (db *DB) Events(ctx context.Context, f EventFilter) ([]StoredEvent, error) {
	return list[StoredEvent](ctx, db, storedEvent+`
		where ($1 = '' or o.domain = $1) and ($2 = '' or o.type = $2) and ($3 = '' or o.stream = $3) and ($4 = '' or o.key = $4)
		  and ($5::timestamptz is null or o.created_at >= $5) and ($6::timestamptz is null or o.created_at < $6)
		  and ($7::bigint = 0 or o.seq < $7)
		order by o.seq desc limit nullif($8::integer, 0)`,
		f.Domain, f.Type, f.Stream, f.Key, instant(f.Since), instant(f.Until), f.BeforeSeq, f.Limit)
}

// instant is null for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Event returns the event with the number, or tidemark.ErrNotFound.
func (db *DB) Event(ctx context.Context, seq int64) (StoredEvent, error) {
	e, err := one[StoredEvent](ctx, db, storedEvent+`where o.seq = $1`, seq)
	return known(e, err, "event "+strconv.FormatInt(seq, 10),
		"It was never emitted, was rolled back, or has left the log by retention.")
}

// EventSeq calls tidemark.event_seq. Null: the event is not in the log.
func (db *DB) EventSeq(ctx context.Context, eventID string) (seq *int64, err error) {
	return value[*int64](ctx, db, `select tidemark.event_seq($1::text::uuid)`, eventID)
}

// EventPayload returns the payload of the event with the number. Null: the role that
// logged in may not read payloads.
func (db *DB) EventPayload(ctx context.Context, seq int64) (json.RawMessage, error) {
	may, err := value[bool](ctx, db, `select has_column_privilege('tidemark.outbox', 'payload', 'select')`)
	if err != nil || !may {
		return nil, err
	}
	return value[json.RawMessage](ctx, db, `select o.payload from tidemark.outbox o where o.seq = $1`, seq)
}

// Attempt is a piece of evidence: what a worker decided for an event on a route, and
// what came of it.
type Attempt struct {
	Worker         string    `db:"worker" json:"worker"`
	RouteCode      *string   `db:"route_code" json:"route_code"` // null: no route claimed the event
	AttemptNo      int       `db:"attempt_no" json:"attempt_no"`
	Outcome        string    `db:"outcome" json:"outcome"`
	Reason         *string   `db:"reason" json:"reason"`
	Detail         *string   `db:"detail" json:"detail"`
	DecidedAt      time.Time `db:"decided_at" json:"decided_at"`
	IdempotencyKey *string   `db:"idempotency_key" json:"idempotency_key"`
}

// Evidence calls tidemark.event_evidence.
func (db *DB) Evidence(ctx context.Context, seq int64) ([]Attempt, error) {
	return list[Attempt](ctx, db, `select e.worker, e.route_code, e.attempt_no, e.outcome::text, e.reason, e.detail, e.decided_at,
		e.idempotency_key from tidemark.event_evidence($1) e`, seq)
}
