package consumer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// A call is what tidemark.command_passes takes: a record, the command that it holds, and who was found to have sent it.
type call struct {
	EventID     string          `json:"event_id,omitempty"`
	Service     string          `json:"service,omitempty"`
	Command     string          `json:"command,omitempty"`
	Version     int             `json:"command_version,omitempty"`
	Schema      int             `json:"schema_version,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Key         string          `json:"idempotency_key,omitempty"`
	OccurredAt  *time.Time      `json:"occurred_at,omitempty"`
	TraceID     string          `json:"trace_id,omitempty"`
	Producer    string          `json:"producer,omitempty"`
	Tenant      string          `json:"tenant,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	Via         string          `json:"via,omitempty"`
	KID         string          `json:"kid,omitempty"` // of the key that has signed it
	Fingerprint string          `json:"fingerprint,omitempty"`
	Trace       string          `json:"trace,omitempty"` // of the record's header
	Lane        string          `json:"key,omitempty"`   // the ordering key

	Topic     string            `json:"topic"`
	TopicID   string            `json:"topic_id"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	RecordAt  time.Time         `json:"record_at"`
	Raw       raw               `json:"raw"`
	Refused   *refused          `json:"refused,omitempty"`
	Judged    *string           `json:"judged,omitempty"` // digest of the schema by which the payload was judged; nil: it was not
	Misfit    *payload.Violated `json:"misfit,omitempty"`
}

type raw struct {
	Key     []byte       `json:"key"`
	Value   []byte       `json:"value"`
	Headers [][2]*string `json:"headers"` // name, value in base64 or null
}

type refused struct {
	Code    command.Reason `json:"code"`
	Message string         `json:"message"`
}

// A reader makes calls of the records of a topic.
type reader struct {
	topic, topicID string
	service        string // whose topic it is; empty: a shared topic
	cluster        string
}

// serviceOf is the service whose topic it is, by the names and prefixes of commands.topics; empty: the topic is shared.
func serviceOf(topic string, topics []string) string {
	for _, t := range topics {
		if prefix, open := strings.CutSuffix(t, "*"); open && strings.HasPrefix(topic, prefix) {
			return strings.TrimPrefix(topic, prefix)
		}
	}
	return ""
}

// read judges a record by a policy. value is that of the record without its frame, and problem what is wrong with that. The reason is
// that of a refusal.
func (d reader) read(r *kgo.Record, value []byte, problem string, policy policy) (_ store.Call, reason command.Reason) {
	c := call{
		Service: d.service, Lane: lane(r.Key), Topic: d.topic, TopicID: d.topicID, Partition: r.Partition, Offset: r.Offset, RecordAt: r.Timestamp,
		Raw: raw{Key: r.Key, Value: r.Value, Headers: make([][2]*string, len(r.Headers))},
	}
	for i, h := range r.Headers {
		c.Raw.Headers[i][0] = new(storable(h.Key))
		if h.Value != nil {
			c.Raw.Headers[i][1] = new(base64.StdEncoding.EncodeToString(h.Value))
		}
	}
	headers := headersOf(r)
	c.Trace = command.Trace(headers)
	got := store.Call{Offset: r.Offset, At: r.Timestamp}
	e, err := d.parse(headers, value, policy)
	if problem != "" {
		err = &command.Refusal{Reason: command.EnvelopeInvalid, Problems: []string{problem}}
	}
	if err == nil {
		c.Via, c.KID, err = d.identify(r, e, policy)
	}
	var fingerprint [sha256.Size]byte
	if err == nil {
		fingerprint, err = e.Fingerprint()
	}
	if err != nil {
		c.refuse(value, err)
		reason = c.Refused.Code
	} else {
		c.EventID, c.Service, c.Command, c.Version, c.Schema = e.EventID, e.Service, e.Command, e.CommandVersion, e.SchemaVersion
		c.Payload, c.Key, c.OccurredAt, c.TraceID = e.Payload, e.IdempotencyKey, &e.OccurredAt, e.TraceID
		c.Producer, c.Tenant, c.Context, c.Fingerprint = e.Producer, e.Tenant, e.Context, hex.EncodeToString(fingerprint[:])
		got.Name = store.CommandName{Service: e.Service, Command: e.Command, Version: e.CommandVersion}
		by, misfit := policy.schemas.judge(got.Name, e.Payload)
		c.Judged, c.Misfit = &by, misfit
	}
	got.About = store.About{EventID: c.EventID, Service: c.Service, Command: c.Command, TraceID: c.TraceID}
	got.JSON = c.json()
	if c.Refused != nil {
		got.Bare = c.bare
	}
	return got, reason
}

func (c call) json() json.RawMessage {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // payload and context were parsed
	}
	return text
}

// bare is a refused call without what its producer says of it: only a dead letter comes of it.
func (c call) bare() json.RawMessage {
	c.EventID, c.Command, c.Key, c.TraceID, c.Trace, c.Lane = "", "", "", "", "", ""
	return c.json()
}

func headersOf(r *kgo.Record) []command.Header {
	all := make([]command.Header, len(r.Headers))
	for i, h := range r.Headers {
		all[i] = command.Header{Name: h.Key, Value: h.Value}
	}
	return all
}

// parse reads the envelope. Attributes of a CloudEvent in headers count only where no signature is required: none covers them.
func (d reader) parse(headers []command.Header, value []byte, policy policy) (command.Envelope, error) {
	switch {
	case !command.IsBinary(headers):
		return command.Parse(value)
	case d.service != "" || policy.SharedTopic == "claimed":
		return command.ParseBinary(headers, value)
	}
	e, err := command.Parse(value)
	if err != nil {
		err = &command.Refusal{Reason: command.EnvelopeInvalid, Problems: []string{
			"a CloudEvent in binary form is not taken where records are signed, since no signature covers its headers: send it in structured form",
		}}
	}
	return e, err
}

// refuse keeps of a bad record what tells its producer which one it is, as tidemark.command_envelope does: no more than an event can
// have. The service is that of the topic: the record's may be a stranger's.
func (c *call) refuse(value []byte, why error) {
	c.Refused = &refused{command.EnvelopeInvalid, why.Error()}
	var refusal *command.Refusal
	if errors.As(why, &refusal) {
		c.Refused = &refused{refusal.Reason, strings.TrimPrefix(refusal.Error(), string(refusal.Reason)+": ")}
	}
	c.Refused.Message = storable(c.Refused.Message)
	var ids map[string]json.RawMessage
	if json.Unmarshal(value, &ids) != nil {
		return
	}
	text := func(name string) (s string) {
		if json.Unmarshal(ids[name], &s) != nil {
			return ""
		}
		return storable(s)
	}
	c.EventID, c.TraceID = command.EventID(text("event_id")), command.TraceID(text("trace_id"))
	c.Key, c.Command = left(text("idempotency_key"), command.MaxKey), left(text("command"), command.MaxCommand)
	if c.Key == "" || c.Service == "" {
		c.EventID = "" // no result can be addressed
	}
}

// identify tells how the producer was verified, and by which key.
func (d reader) identify(r *kgo.Record, e command.Envelope, policy policy) (via, kid string, err error) {
	refuse := func(reason command.Reason, problem string) (string, string, error) {
		return "", "", &command.Refusal{Reason: reason, Problems: []string{problem}}
	}
	switch {
	case d.service == e.Service:
		return "acl", "", nil
	case d.service != "":
		return refuse(command.IdentityTopicMismatch, "service is not the service of the topic: send to the topic of the service")
	case policy.SharedTopic == "claimed":
		return "claimed", "", nil
	case policy.SharedTopic != "signed":
		return refuse(command.IdentityTopicMismatch, "shared topics are refused: send to the topic of the service")
	}
	header, n := "", 0
	for _, h := range r.Headers {
		if h.Key == command.SignatureHeader {
			header, n = string(h.Value), n+1
		}
	}
	switch {
	case n > 1:
		return refuse(command.IdentitySignatureInvalid, "the record has several signatures, must have one")
	case n == 0 && strings.HasSuffix(d.topic, "."+e.Service):
		return refuse(command.IdentitySignatureMissing, fmt.Sprintf("the record has no header %s: sign it; commands.topics names %s in full, and so as a topic that services share: %s.* makes it the service's own",
			command.SignatureHeader, d.topic, strings.TrimSuffix(d.topic, "."+e.Service)))
	}
	key, err := command.Verify(header, command.Record{Cluster: d.cluster, Topic: d.topic, Key: r.Key, Value: r.Value}, func(name string) (command.Key, bool) {
		for _, k := range policy.Keys {
			if k.KID == name {
				kid = name
				return keyOf(k)
			}
		}
		return command.Key{}, false
	})
	if err != nil {
		return "", "", err
	}
	return "jws", kid, key.Allows(e, r.Timestamp)
}

// keyOf reads a registered key; false: it is none.
func keyOf(k store.ProducerKey) (command.Key, bool) {
	var jwk struct{ X string }
	if json.Unmarshal(k.PublicKey, &jwk) != nil {
		return command.Key{}, false
	}
	public, err := base64.RawURLEncoding.DecodeString(jwk.X)
	key := command.Key{
		Public: public, Producer: k.Producer, Service: k.Service, Tenants: k.Tenants, Commands: k.Commands, ValidFrom: k.ValidFrom, Revoked: k.RevokedAt != nil,
	}
	if k.ValidUntil != nil {
		key.ValidUntil = *k.ValidUntil
	}
	return key, err == nil && len(public) == ed25519.PublicKeySize
}

// mostLane is the longest ordering key that is kept as it is.
const mostLane = 200

// lane is the ordering key of a record: its key as text, or a name for it. Empty: the idempotency key orders.
func lane(key []byte) string {
	if len(key) <= mostLane && utf8.Valid(key) && !bytes.ContainsFunc(key, func(r rune) bool { return r < ' ' }) {
		return string(key)
	}
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// left is the first characters of a text, at most so many.
func left(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

// storable is a text as PostgreSQL can store it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
