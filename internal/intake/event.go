package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// ParseEvent reads an event in Tidemark's own form: a JSON object whose fields are the
// parameters of the SQL function tidemark.emit. A null field counts as absent. ParseEvent
// refuses unknown fields, wrong types and empty texts.
func ParseEvent(text []byte) (tidemark.Event, error) {
	fields, err := object(text)
	if err != nil {
		return tidemark.Event{}, err
	}
	var event tidemark.Event
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := setField(&event, name, fields[name]); err != nil {
			return tidemark.Event{}, err
		}
	}
	switch {
	case event.Domain == "":
		return tidemark.Event{}, errors.New("domain is missing")
	case event.Type == "":
		return tidemark.Event{}, errors.New("type is missing")
	}
	return event, nil
}

func setField(e *tidemark.Event, name string, value json.RawMessage) (err error) {
	switch name {
	case "domain":
		e.Domain, err = text(name, value)
	case "type":
		e.Type, err = text(name, value)
	case "payload":
		e.Payload, err = payload(name, value)
	case "key":
		e.Key, err = text(name, value)
	case "stream":
		e.Stream, err = text(name, value)
	case "lane":
		e.Lane, err = lane(name, value)
	case "severity":
		e.Severity, err = severity(name, value)
	case "subject_table":
		e.SubjectTable, err = text(name, value)
	case "subject_ref":
		e.SubjectRef, err = text(name, value)
	case "idempotency_key":
		e.IdempotencyKey, err = text(name, value)
	case "trace":
		e.Trace, err = trace(name, value)
	case "actor":
		e.Actor, err = text(name, value)
	case "occurred_at":
		e.OccurredAt, err = instant(name, value)
	default:
		return fmt.Errorf("has the unknown field %s", strict.Short(name))
	}
	return err
}

func text(name string, value json.RawMessage) (string, error) {
	if k := strict.Kind(value); k != "string" {
		return "", fmt.Errorf("%s is %s, must be a string", name, strict.Article(k))
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", err
	}
	if s == "" {
		return "", fmt.Errorf("%s is empty; leave it out", name)
	}
	return s, nil
}

func payload(name string, value json.RawMessage) (json.RawMessage, error) {
	if k := strict.Kind(value); k != "object" {
		return nil, fmt.Errorf("%s is %s, must be an object", name, strict.Article(k))
	}
	return value, nil
}

var lanes = []tidemark.Lane{tidemark.LaneImmediate, tidemark.LaneBatch}

func lane(name string, value json.RawMessage) (tidemark.Lane, error) {
	s, err := text(name, value)
	if err == nil && !slices.Contains(lanes, tidemark.Lane(s)) {
		err = notOneOf(name, s, lanes)
	}
	return tidemark.Lane(s), err
}

var severities = []tidemark.Severity{
	tidemark.SeverityInfo, tidemark.SeverityWarning, tidemark.SeverityHigh, tidemark.SeverityCritical,
}

func severity(name string, value json.RawMessage) (tidemark.Severity, error) {
	s, err := text(name, value)
	if err == nil && !slices.Contains(severities, tidemark.Severity(s)) {
		err = notOneOf(name, s, severities)
	}
	return tidemark.Severity(s), err
}

func notOneOf[T ~string](name, got string, allowed []T) error {
	var names []string
	for _, a := range allowed {
		names = append(names, string(a))
	}
	return fmt.Errorf("%s is %s, must be one of %s", name, strict.Short(got), strings.Join(names, ", "))
}

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func trace(name string, value json.RawMessage) (string, error) {
	s, err := text(name, value)
	if err == nil && !traceparent.MatchString(s) {
		err = fmt.Errorf("%s is %s, must be a W3C traceparent (00-<32 hex>-<16 hex>-<2 hex>)", name, strict.Short(s))
	}
	return s, err
}

func instant(name string, value json.RawMessage) (time.Time, error) {
	s, err := text(name, value)
	if err != nil {
		return time.Time{}, err
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil || t.IsZero() {
		return time.Time{}, fmt.Errorf("%s is %s, must be a time such as 2026-01-31T12:00:00Z (RFC 3339)", name, strict.Short(s))
	}
	return t, nil
}
