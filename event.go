package tidemark

import (
	"encoding/json"
	"time"
)

// Lane says how soon an event wants to be handled.
type Lane string

// The lanes that there are.
const (
	LaneImmediate Lane = "immediate"
	LaneBatch     Lane = "batch"
)

// Severity says how bad an event is, mildest first.
type Severity string

// The severities that there are.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityHigh     Severity = "high"
	SeverityCritical Severity = "critical"
)

// Event is an event, to be emitted or out of the log. Its fields are the parameters of
// the SQL function tidemark.emit_strict, and its JSON is an element of what
// tidemark.emit_many_strict takes. The zero value of a field leaves it out, so that the database puts in its default. All
// texts are UTF-8; Emit refuses others.
type Event struct {
	// ID, Seq and CreatedAt are set by the database: the event's identity everywhere
	// (a uuid), its number in the log, and when it was emitted. Emit takes no notice
	// of them. Seq is not for recognising an event: after a failover of the database
	// another one may have the number.
	ID        string    `json:"-"`
	Seq       int64     `json:"-"`
	CreatedAt time.Time `json:"-"`

	// Domain and Type name an event type. Required. Emit refuses a type that is not
	// registered or not enabled; EmitIfRegistered stores nothing then.
	Domain string `json:"domain"`
	Type   string `json:"type"`

	// Payload is a JSON object. Default: {}. Its text has at most as many bytes as the
	// setting emit.payload_limit says (1,000,000 by default); every other text of an event
	// has at most 1,024.
	Payload json.RawMessage `json:"payload,omitempty"`

	// Key is the ordering key. Default: none, no order is asked for. Order per key
	// holds for writers that lock the key's own row before they emit.
	Key string `json:"key,omitempty"`

	// Stream is a free grouping inside a type. Default: none.
	Stream string `json:"stream,omitempty"`

	// Lane defaults to LaneImmediate, Severity to SeverityInfo.
	Lane     Lane     `json:"lane,omitempty"`
	Severity Severity `json:"severity,omitempty"`

	// SubjectTable and SubjectRef are the table and the primary key, as text, of the
	// row that the event is about. Default: none.
	SubjectTable string `json:"subject_table,omitempty"`
	SubjectRef   string `json:"subject_ref,omitempty"`

	// IdempotencyKey makes a second emit in the same domain store nothing and return
	// the id of the first event. Default: none, every emit stores an event. Keys that
	// begin with "tidemark:" are Tidemark's own, and refused.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	// Trace is a W3C traceparent. Default: the OpenTelemetry span of the context that Emit gets, if there is one.
	Trace string `json:"trace,omitempty"`

	// Actor says who did it. Default: the role that logged in.
	Actor string `json:"actor,omitempty"`

	// OccurredAt says when it happened, in the years 1 to 9999. Default: now, by the clock
	// of the database.
	OccurredAt time.Time `json:"occurred_at,omitzero"`
}

// Decode decodes the payload into v, a pointer to a struct with json tags or to a map, as json.Unmarshal does. An event
// without a payload leaves v as it is.
func (e Event) Decode(v any) error {
	if e.Payload == nil {
		return nil
	}
	return json.Unmarshal(e.Payload, v)
}
