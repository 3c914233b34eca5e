package command

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/intake"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// attributes are the members of an envelope, by the attribute of a CloudEvent that holds each.
var attributes = map[string]string{
	"id": "event_id", "commandversion": "command_version", "schemaversion": "schema_version", "data": "payload",
	"idempotencykey": "idempotency_key", "time": "occurred_at", "traceparent": "trace_id",
}

// cloudEvent turns a CloudEvent 1.0 in structured JSON form into the members of an envelope. type is the command's full name,
// source the producer, tenant an extension attribute. Attributes are texts and numbers, so there is no context. partitionkey
// repeats the record's key, and is not needed here.
func cloudEvent(given map[string]json.RawMessage) (map[string]json.RawMessage, *Refusal) {
	if version := given["specversion"]; string(version) != `"1.0"` {
		found := strict.Article(strict.Kind(version))
		if strict.Kind(version) == "string" {
			found = strict.Short(strings.Trim(string(version), `"`))
		}
		return nil, &Refusal{EnvelopeUnsupportedVersion, []string{"specversion is " + found + ", must be 1.0"}}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if strict.Kind(given[name]) == "null" {
			return nil, invalid(name + " is null; leave it out")
		}
	}
	if err := intake.CheckCloudEvent(given); err != nil {
		return nil, invalid(err.Error())
	}
	members, metadata := map[string]json.RawMessage{}, map[string]json.RawMessage{"producer": given["source"]}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		member, known := attributes[name]
		switch {
		case known:
			members[member] = given[name]
		case name == "tenant":
			metadata["tenant"] = given[name]
		case !slices.Contains([]string{"specversion", "type", "source", "datacontenttype", "partitionkey"}, name):
			return nil, invalid("the CloudEvent has the attribute " + strict.Short(name) + ", which a command has no place for")
		}
	}
	var name string
	if err := json.Unmarshal(given["type"], &name); err != nil {
		return nil, invalid("type is " + strict.Article(strict.Kind(given["type"])) + ", must be a string")
	}
	service, command, dotted := strings.Cut(name, ".")
	if !dotted {
		return nil, invalid("type is " + strict.Short(name) + ", must be a service and its command, such as billing.charge.capture")
	}
	for member, value := range map[string]any{"service": service, "command": command, "metadata": metadata} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, invalid(err.Error())
		}
		members[member] = text
	}
	return members, nil
}

func invalid(problem string) *Refusal { return &Refusal{EnvelopeInvalid, []string{problem}} }

// Header is a header of a record.
type Header struct {
	Name  string
	Value []byte
}

const (
	attributePrefix = "ce_"
	traceHeader     = "traceparent"
)

var wholeNumber = regexp.MustCompile(`^[0-9]{1,10}$`)

// IsBinary tells whether a record is a CloudEvent in binary form: its attributes are headers, and its value is the data.
func IsBinary(headers []Header) (is bool) {
	for _, h := range headers {
		switch h.Name {
		case attributePrefix + "specversion":
			is = true
		case "content-type":
			if strings.HasPrefix(string(h.Value), "application/cloudevents") {
				return false // structured, whatever else there is
			}
		}
	}
	return is
}

// ParseBinary reads a CloudEvent in binary form, as Parse reads one in structured form.
func ParseBinary(headers []Header, value []byte) (Envelope, error) {
	if _, refusal := object(value); refusal != nil {
		return Envelope{}, refusal
	}
	given := map[string]json.RawMessage{"data": value}
	trace := ""
	for _, h := range headers {
		name, is := strings.CutPrefix(h.Name, attributePrefix)
		if h.Name == "content-type" {
			name, is = "datacontenttype", true
		}
		switch {
		case h.Name == traceHeader:
			trace = string(h.Value)
		case !is:
		case given[name] != nil:
			return Envelope{}, invalid("the header " + strict.Short(h.Name) + " is there twice")
		case !utf8.Valid(h.Value):
			return Envelope{}, invalid("the header " + strict.Short(h.Name) + " is not UTF-8")
		case strings.HasSuffix(name, "version") && name != "specversion" && wholeNumber.Match(h.Value):
			given[name] = h.Value
		default:
			given[name] = quoted(string(h.Value))
		}
	}
	if given[traceHeader] == nil && trace != "" {
		given[traceHeader] = quoted(trace)
	}
	members, refusal := cloudEvent(given)
	if refusal != nil {
		return Envelope{}, refusal
	}
	return read(members)
}

func quoted(s string) json.RawMessage {
	text, _ := json.Marshal(s) // a string always can
	return text
}

// Trace is the traceparent that the headers of a record have; empty: none, or no valid one.
func Trace(headers []Header) string {
	for _, h := range headers {
		if h.Name == traceHeader && parentForm.Match(h.Value) {
			return string(h.Value)
		}
	}
	return ""
}
