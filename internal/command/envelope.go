// Package command holds what a command is before it reaches the database: its envelope, the fingerprint of what it asks for,
// and the signature of its producer.
package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Limits of an envelope.
const (
	MaxBytes        = 1 << 20
	MaxDepth        = 64
	MaxContextBytes = 8 << 10
	MaxKey          = 200 // characters of an idempotency key, a producer and a tenant
	MaxCommand      = 100 // of the name of a service's command
)

// Envelope is a command as its producer wrote it, after all checks of its form.
type Envelope struct {
	EventID        string // a UUID in lower case
	Service        string
	Command        string // without the service: charge.capture
	CommandVersion int
	SchemaVersion  int
	Payload        json.RawMessage // an object, byte for byte
	IdempotencyKey string
	OccurredAt     time.Time
	TraceID        string // a traceparent, or 32 hexadecimal digits
	Producer       string // claimed, not proved
	Tenant         string // empty: none
	Context        json.RawMessage
}

var required = []string{
	"event_id", "service", "command", "command_version", "schema_version", "payload", "idempotency_key", "occurred_at", "trace_id",
	"metadata",
}

var (
	uuidForm    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	serviceForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)
	commandForm = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$`)
	timeForm    = regexp.MustCompile(`^[^,]*(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9])$`) // package time takes a comma; PostgreSQL takes no offset from 16:00 on
	parentForm  = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	traceForm   = regexp.MustCompile(`^([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|[0-9a-f]{32})$`)
)

const (
	aboutService = "a lower-case name such as billing, at most 40 of a-z, 0-9, _ and -"
	aboutCommand = "lower-case names with dots between them, such as charge.capture, at most 100 characters"
)

// CheckService says what is wrong with the name of a service, or "".
func CheckService(name string) string {
	if serviceForm.MatchString(name) {
		return ""
	}
	return "is " + strict.Short(name) + ", must be " + aboutService
}

// CheckCommand says what is wrong with the name of a service's command, or "".
func CheckCommand(service, name string) string {
	if rest, doubled := strings.CutPrefix(name, service+"."); doubled && service != "" {
		return fmt.Sprintf("is %s, must be %s: the service's name stands in service alone", strict.Short(name), strict.Short(rest))
	}
	if commandForm.MatchString(name) && len(name) <= MaxCommand {
		return ""
	}
	return "is " + strict.Short(name) + ", must be " + aboutCommand
}

// Parse reads an envelope, or a CloudEvent that stands for one (see cloudEvent). It refuses what is not exactly that: unknown,
// missing, doubled and null members, wrong types, text that PostgreSQL cannot store. The error is a [*Refusal] with all
// problems.
func Parse(text []byte) (Envelope, error) {
	members, refusal := object(text)
	if refusal != nil {
		return Envelope{}, refusal
	}
	if members["specversion"] != nil {
		if members, refusal = cloudEvent(members); refusal != nil {
			return Envelope{}, refusal
		}
	}
	return read(members)
}

// read reads the members of an envelope.
func read(members map[string]json.RawMessage) (Envelope, error) {
	r := reader{}
	e := r.envelope(members)
	switch {
	case len(r.problems) > 0:
		return Envelope{}, &Refusal{EnvelopeInvalid, r.problems}
	case len(e.Context) > MaxContextBytes:
		return Envelope{}, &Refusal{EnvelopeTooLarge, []string{
			fmt.Sprintf("metadata.context has %d bytes, must have at most %d", len(e.Context), MaxContextBytes),
		}}
	}
	return e, nil
}

// object reads the members of the only value in text.
func object(text []byte) (map[string]json.RawMessage, *Refusal) {
	problem := ""
	switch {
	case len(text) > MaxBytes:
		return nil, &Refusal{EnvelopeTooLarge, []string{fmt.Sprintf("the envelope has %d bytes, must have at most %d", len(text), MaxBytes)}}
	case len(text) == 0:
		problem = "the envelope is empty, must be a JSON object"
	case text[0] <= 1:
		problem = "the envelope begins with the byte " + strconv.Itoa(int(text[0])) +
			", as a schema registry's serializer writes it; it must be a JSON object: use a plain JSON serializer, or name the registry in commands.registry"
	}
	if problem == "" {
		if err := strict.CheckDepth(text, MaxDepth); err != nil {
			problem = "the envelope " + err.Error()
		} else if number := beyond(text); number != "" {
			problem = "the envelope holds a number that a double cannot hold: " + strict.Short(number)
		} else if kind := strict.Kind(text); kind != "object" {
			problem = "the envelope is " + strict.Article(kind) + ", must be an object"
		}
	}
	var members map[string]json.RawMessage
	if problem == "" {
		if err := json.Unmarshal(text, &members); err != nil {
			problem = "the envelope is not JSON: " + err.Error()
		}
	}
	if problem != "" {
		return nil, &Refusal{EnvelopeInvalid, []string{problem}}
	}
	return members, nil
}

// beyond is a number of valid JSON that a double cannot hold in magnitude, or "". PostgreSQL writes a jsonb without exponents:
// 1e131000 would take 131 KB. The SQL function tidemark.command_beyond has the same rule.
func beyond(text []byte) string {
	for token := range strict.Tokens(text) {
		if !strict.IsNumber(token) {
			continue
		}
		double, err := strconv.ParseFloat(string(token), 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(string(token)), "e")
		if err != nil || double == 0 && strings.ContainsAny(mantissa, "123456789") {
			return string(token)
		}
	}
	return ""
}

// reader collects the problems of an envelope's members.
type reader struct{ problems []string }

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *reader) envelope(members map[string]json.RawMessage) (e Envelope) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(required, name) {
			r.problem("the envelope has the unknown member %s, must have exactly %s", strict.Short(name), strings.Join(required, ", "))
		}
	}
	e.EventID = strings.ToLower(r.text(members, "event_id", "a UUID such as 0199a3c5-7a01-7cc0-9b7e-2f1c5d3a9e10", uuidForm.MatchString))
	e.Service = r.text(members, "service", aboutService, serviceForm.MatchString)
	e.Command = r.command(members, e.Service)
	e.CommandVersion = r.version(members, "command_version")
	e.SchemaVersion = r.version(members, "schema_version")
	e.Payload = r.member(members, "payload", "object")
	e.IdempotencyKey = r.short(members, "idempotency_key")
	e.OccurredAt = r.instant(members, "occurred_at")
	e.TraceID = r.text(members, "trace_id", "a traceparent (00-<32 hex>-<16 hex>-<2 hex>) or 32 hexadecimal digits in lower case", traceForm.MatchString)
	r.metadata(&e, r.member(members, "metadata", "object"))
	return e
}

// member is a required member of one kind, or nil.
func (r *reader) member(members map[string]json.RawMessage, name, kind string) json.RawMessage {
	value, given := members[name]
	switch found := strict.Kind(value); {
	case !given:
		r.problem("%s is missing, must be %s", name, strict.Article(kind))
	case found != kind:
		r.problem("%s is %s, must be %s", name, strict.Article(found), strict.Article(kind))
	default:
		return value
	}
	return nil
}

// text is a string of a form that want describes. Without a form, every string will do.
func (r *reader) text(members map[string]json.RawMessage, name, want string, form func(string) bool) string {
	value := r.member(members, name, "string")
	if value == nil {
		return ""
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		r.problem("%s is not JSON: %v", name, err)
		return ""
	}
	if form != nil && !form(s) {
		r.problem("%s is %s, must be %s", name, strict.Short(s), want)
		return ""
	}
	return s
}

func (r *reader) command(members map[string]json.RawMessage, service string) string {
	name := r.text(members, "command", "", nil)
	if problem := CheckCommand(service, name); problem != "" && members["command"] != nil && strict.Kind(members["command"]) == "string" {
		r.problem("command %s", problem)
		return ""
	}
	return name
}

// short is a string of 1 to MaxKey characters. The problem does not repeat it: it may name a person.
func (r *reader) short(members map[string]json.RawMessage, name string) string {
	s := r.text(members, name, "", nil)
	if n := utf8.RuneCountInString(s); members[name] != nil && strict.Kind(members[name]) == "string" && (n < 1 || n > MaxKey) {
		r.problem("%s has %d characters, must have 1 to %d", name, n, MaxKey)
		return ""
	}
	return s
}

// version is a whole number from 1 that fits PostgreSQL's integer; 1.0 and 1e0 are 1.
func (r *reader) version(members map[string]json.RawMessage, name string) int {
	value := r.member(members, name, "number")
	if value == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(appendNumber(nil, string(value))), 10, 32)
	if err != nil || n < 1 {
		r.problem("%s is %s, must be a whole number from 1 to 2147483647", name, strict.Short(string(value)))
	}
	return int(n)
}

func (r *reader) instant(members map[string]json.RawMessage, name string) (t time.Time) {
	r.text(members, name, "a time such as 2026-01-31T12:00:00Z (RFC 3339)", func(s string) bool {
		s = strings.ToUpper(s) // t and z are as good
		return timeForm.MatchString(s) && t.UnmarshalText([]byte(s)) == nil && t.Year() > 0
	})
	return t
}

func (r *reader) metadata(e *Envelope, text json.RawMessage) {
	if text == nil {
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		r.problem("metadata is not JSON: %v", err)
		return
	}
	all := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "producer" && name != "tenant" && name != "context" {
			r.problem("metadata has the unknown member %s, must have producer, and may have tenant and context", strict.Short(name))
		}
		all["metadata."+name] = members[name]
	}
	e.Producer = r.short(all, "metadata.producer")
	if members["tenant"] != nil {
		e.Tenant = r.short(all, "metadata.tenant")
	}
	if members["context"] != nil {
		e.Context = r.member(all, "metadata.context", "object")
	}
}

// EventID is the id in lower case, or "" if it is none.
func EventID(id string) string {
	if !uuidForm.MatchString(id) {
		return ""
	}
	return strings.ToLower(id)
}

// TraceID is the id, or "" if it is none.
func TraceID(id string) string {
	if !traceForm.MatchString(id) {
		return ""
	}
	return id
}
