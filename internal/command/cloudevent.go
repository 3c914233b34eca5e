package command

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
