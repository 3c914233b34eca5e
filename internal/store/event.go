package store

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// StoredEvent is an event of the log as a command prints it: without its payload, which not every role may read.
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

// rawEvent are the columns that readEvent reads, in binary.
const rawEvent = `seq, event_id, created_at, occurred_at, lane::text, severity::text, domain, type, stream, key, subject_table,
	subject_ref, idempotency_key, trace, actor, payload`

// readEvent reads an event by hand: at full speed this is most of what a worker does.
func readEvent(raw [][]byte, payload bool) (tidemark.Event, error) {
	if len(raw[0]) != 8 || len(raw[1]) != 16 || payload && len(raw[15]) < 1 {
		return tidemark.Event{}, fmt.Errorf("event %x: not as tidemark.pass_read tells it", raw[0])
	}
	e := tidemark.Event{
		Seq: int64(binary.BigEndian.Uint64(raw[0])), ID: uuid(raw[1]), //nolint:gosec // it was signed
		CreatedAt: timestamp(raw[2]), OccurredAt: timestamp(raw[3]),
		Lane: tidemark.Lane(raw[4]), Severity: tidemark.Severity(raw[5]), Domain: string(raw[6]), Type: string(raw[7]),
		Stream: string(raw[8]), Key: string(raw[9]), SubjectTable: string(raw[10]), SubjectRef: string(raw[11]),
		IdempotencyKey: string(raw[12]), Trace: string(raw[13]), Actor: string(raw[14]),
	}
	if payload {
		e.Payload = slices.Clone(raw[15][1:]) // behind the version of the format
	}
	return e, nil
}

func uuid(raw []byte) string {
	var text [36]byte
	hex.Encode(text[0:8], raw[0:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:36], raw[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func timestamp(raw []byte) time.Time {
	micros := int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // it was signed
	// Infinity is the greatest number: the sum must not overflow.
	return finiteTime(time.UnixMicro(postgresEpoch + min(micros, math.MaxInt64-postgresEpoch)).UTC())
}

// EventFilter chooses events of the log. The zero value of a field chooses all.
type EventFilter struct {
	Domain, Type, Stream, Key string
	Subject                   string    // subject_ref
	Since, Until              time.Time // created_at in [Since, Until)
	BeforeSeq                 int64     // numbers below this one
	FromSeq                   int64     // numbers from this one on
	Limit                     int       // at most so many; 0: all
}

// Events returns events of the log, newest first.
func (db *DB) Events(ctx context.Context, f EventFilter) ([]StoredEvent, error) {
	return list[StoredEvent](ctx, db, storedEvent+`
		where ($1 = '' or o.domain = $1) and ($2 = '' or o.type = $2) and ($3 = '' or o.stream = $3) and ($4 = '' or o.key = $4)
		  and ($5::timestamptz is null or o.created_at >= $5) and ($6::timestamptz is null or o.created_at < $6)
		  and ($7::bigint = 0 or o.seq < $7) and o.seq >= $9 and ($10 = '' or o.subject_ref = $10)
		order by o.seq desc limit nullif($8::integer, 0)`,
		f.Domain, f.Type, f.Stream, f.Key, instant(f.Since), instant(f.Until), f.BeforeSeq, f.Limit, f.FromSeq, f.Subject)
}

// LogSpan returns the first number and the last one that the log has; 0 and 0: it is empty.
func (db *DB) LogSpan(ctx context.Context) (first, last int64, err error) {
	span, err := value[[]int64](ctx, db, `select array[coalesce(min(o.seq), 0), coalesce(max(o.seq), 0)] from tidemark.outbox o`)
	if err != nil {
		return 0, 0, err
	}
	return span[0], span[1], nil
}

// instant is null for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

const eventGone = "It was never emitted, was rolled back, or has left the log by retention."

// Event returns the event with the number, or tidemark.ErrNotFound.
func (db *DB) Event(ctx context.Context, seq int64) (StoredEvent, error) {
	e, err := one[StoredEvent](ctx, db, storedEvent+`where o.seq = $1`, seq)
	return known(e, err, "event "+strconv.FormatInt(seq, 10), eventGone)
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

// FullEvent is an event with its payload, and as targets inside the database get it.
type FullEvent struct {
	tidemark.Event
	Document json.RawMessage
}

// FullEvents returns the events with the numbers as the route delivers them. Null: the role that logged in may not
// read payloads.
func (db *DB) FullEvents(ctx context.Context, route Route, seqs []int64) ([]FullEvent, error) {
	may, err := value[bool](ctx, db, `select has_column_privilege('tidemark.outbox', 'payload', 'select')`)
	if err != nil || !may {
		return nil, err
	}
	return list[FullEvent](ctx, db, `select o.seq, o.event_id::text as id, o.created_at, o.occurred_at, o.lane::text, o.severity::text,
		o.domain, o.type, coalesce(o.stream, '') as stream, coalesce(o.key, '') as key, coalesce(o.subject_table, '') as subject_table,
		coalesce(o.subject_ref, '') as subject_ref, coalesce(o.idempotency_key, '') as idempotency_key, coalesce(o.trace, '') as trace,
		o.actor, d.payload, tidemark.event_json(o) || jsonb_build_object('payload', d.payload) as document
		from tidemark.outbox o cross join lateral (select case when $2::text is null and $3::text[] is null then o.payload
			else (tidemark.transformed($2, $3, array[o.payload], tidemark.default_search_path()))[1] end) d (payload)
		where o.seq = any ($1) order by o.seq desc`, seqs, route.Transform, route.Columns)
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

// Why is why a route delivered an event or did not.
type Why struct {
	State    string  `db:"state" json:"state"` // of tidemark.why
	Sentence string  `db:"sentence" json:"sentence"`
	Command  *string `db:"command" json:"command"` // null: nothing has to be done
}

// Why calls tidemark.why.
func (db *DB) Why(ctx context.Context, eventID, route string) (Why, error) {
	return one[Why](ctx, db, `select * from tidemark.why($1::text::uuid, $2)`, eventID, route)
}

// EventDetails is an event and what became of it.
type EventDetails struct {
	StoredEvent
	Payload  json.RawMessage `json:"payload" doc:"null: hidden from this role."`
	Evidence []Attempt       `json:"evidence"`
}

// EventDetails returns the event with the number, its payload and its evidence, or tidemark.ErrNotFound.
func (db *DB) EventDetails(ctx context.Context, seq int64) (d EventDetails, err error) {
	err = InTurn(
		func() error { d.StoredEvent, err = db.Event(ctx, seq); return err },
		func() error { d.Payload, err = db.EventPayload(ctx, seq); return err },
		func() error { d.Evidence, err = db.Evidence(ctx, seq); return err },
	)
	return d, err
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// ErrEventName: an event is named by its number or its id, a UUID.
var ErrEventName = errors.New("neither the id of an event (a uuid) nor its number")

// EventNumber returns the number of an event that is named by its number or id. The error is ErrEventName or tidemark.ErrNotFound.
func (db *DB) EventNumber(ctx context.Context, name string) (int64, error) {
	if seq, err := strconv.ParseInt(name, 10, 64); err == nil {
		return seq, nil
	}
	if !uuidForm.MatchString(name) {
		return 0, ErrEventName
	}
	seq, err := db.EventSeq(ctx, name)
	if err == nil && seq == nil {
		_, err = known(seq, pgx.ErrNoRows, "event "+name, eventGone)
	}
	if err != nil {
		return 0, err
	}
	return *seq, nil
}

// Erase chooses events whose payloads are erased. The zero value of a field chooses all.
type Erase struct {
	Domain, Subject, Key string
	Before               time.Time
	Reason               string
	DryRun               bool
}

// Erased is what an erasure came to.
type Erased struct {
	Events      int64 `db:"events" json:"events"`
	Waiting     int64 `db:"waiting" json:"waiting"` // still to be delivered, and not erased
	DeadLetters int64 `db:"dead_letters" json:"dead_letters"`
	LastSeq     int64 `db:"last_seq" json:"-"`
	Complete    bool  `db:"complete" json:"-"`
}

// EventsErasePart calls tidemark.events_erase for events after a number.
func (db *DB) EventsErasePart(ctx context.Context, e Erase, after int64) (Erased, error) {
	return one[Erased](ctx, db, `select e.events, e.waiting, e.dead_letters, e.last_seq, e.complete
		from tidemark.events_erase($1, $2, nullif($3, ''), nullif($4, ''), $5, $6, $7) e`,
		e.Domain, e.Reason, e.Subject, e.Key, instant(e.Before), e.DryRun, after)
}

// EventsErase calls tidemark.events_erase until it is complete, each call a transaction of its own.
func (db *DB) EventsErase(ctx context.Context, e Erase) (all Erased, err error) {
	for !all.Complete {
		part, err := db.EventsErasePart(ctx, e, all.LastSeq)
		if err != nil {
			return all, err
		}
		all = Erased{all.Events + part.Events, all.Waiting + part.Waiting, all.DeadLetters + part.DeadLetters, part.LastSeq, part.Complete}
	}
	return all, nil
}
