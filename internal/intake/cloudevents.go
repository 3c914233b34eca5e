package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// ErrAttribute is wrapped by the error for an attribute that an event has no field for.
var ErrAttribute = errors.New("has no place in an event and would be lost")

// CloudEvents reads CloudEvents 1.0 in their JSON form. The zero value is the
// strictest.
type CloudEvents struct {
	// Domain is the domain of events without the extension attribute tidemarkdomain.
	// Default: none, such an event is refused.
	Domain string
	// IgnoreAttributes drops attributes that an event has no field for, such as
	// dataschema or tracestate. Default: false, an event with such an attribute is
	// refused.
	IgnoreAttributes bool
}

var (
	extensionName = regexp.MustCompile(`^[a-z0-9]+$`)
	blank         = regexp.MustCompile(`[\s[:cntrl:]]`)
)

// Parse reads one event. The attributes go to these fields:
//
//	tidemarkdomain   domain; an extension attribute of Tidemark. Default: Domain
//	type             type
//	source, id       idempotency_key, with a space between: an id is unique
//	                 only within its source
//	source           actor
//	subject          subject_ref
//	time             occurred_at
//	partitionkey     key
//	traceparent      trace
//	data             payload, a JSON object
func (c CloudEvents) Parse(document []byte) (tidemark.Event, error) {
	fields, err := object(document)
	if err != nil {
		return tidemark.Event{}, err
	}
	if err := c.known(fields); err != nil {
		return tidemark.Event{}, err
	}
	if err := CheckCloudEvent(fields); err != nil {
		return tidemark.Event{}, err
	}

	event := tidemark.Event{Domain: c.Domain}
	var id string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		switch name {
		case "tidemarkdomain":
			event.Domain, err = text(name, value)
		case "type":
			event.Type, err = text(name, value)
		case "id":
			id, err = text(name, value)
		case "source":
			event.Actor, err = text(name, value)
		case "subject":
			event.SubjectRef, err = text(name, value)
		case "time":
			event.OccurredAt, err = instant(name, value)
		case "partitionkey":
			event.Key, err = text(name, value)
		case "traceparent":
			event.Trace, err = trace(name, value)
		case "data":
			event.Payload, err = payload(name, value)
		}
		if err != nil {
			return tidemark.Event{}, err
		}
	}
	switch {
	case event.Domain == "":
		return tidemark.Event{}, errors.New("has no domain: the attribute tidemarkdomain is missing, and no default domain is set")
	case blank.MatchString(event.Actor):
		return tidemark.Event{}, fmt.Errorf("source is %s, must be a URI reference", strict.Short(event.Actor))
	}
	event.IdempotencyKey = event.Actor + " " + id
	return event, nil
}

// mapped are the attributes that Parse keeps or checks.
var mapped = []string{
	"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data", "data_base64",
	"partitionkey", "traceparent", "tidemarkdomain",
}

func (c CloudEvents) known(fields map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case slices.Contains(mapped, name):
		case !extensionName.MatchString(name):
			return fmt.Errorf("has the attribute %s; names of attributes must consist of a-z and 0-9", strict.Short(name))
		case !c.IgnoreAttributes:
			return fmt.Errorf("attribute %s %w", strict.Short(name), ErrAttribute)
		}
	}
	return nil
}

// CheckCloudEvent checks the required attributes, the version and the content type.
func CheckCloudEvent(fields map[string]json.RawMessage) error {
	for _, name := range []string{"specversion", "id", "source", "type"} {
		if fields[name] == nil {
			return fmt.Errorf("%s is missing", name)
		}
	}
	version, err := text("specversion", fields["specversion"])
	if err != nil {
		return err
	}
	if version != "1.0" {
		return fmt.Errorf("specversion is %s, must be 1.0", strict.Short(version))
	}
	if fields["data_base64"] != nil {
		return errors.New("data_base64: binary data cannot be a payload, which is a JSON object")
	}
	if fields["datacontenttype"] == nil {
		return nil
	}
	contentType, err := text("datacontenttype", fields["datacontenttype"])
	if err != nil {
		return err
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" && media != "text/json" && !strings.HasSuffix(media, "+json") {
		return fmt.Errorf("datacontenttype is %s, must be application/json", strict.Short(contentType))
	}
	return nil
}
