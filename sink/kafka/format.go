package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/sink"
)

// The formats that only Kafka has.
const (
	// Payload is the event's payload alone. The headers are those that every record of a route has.
	Payload sink.Format = "payload"
	// Raw is a record whose bytes the event's payload names: {"key": …, "value": …, "headers": [{"name": …, "value": …}]},
	// key and values in base64, or null. The record gets no other header, and its key does not depend on the event's.
	// So a record that came out of Kafka goes back byte for byte, which JSON could not hold. A test delivery names no
	// record, and goes as Payload.
	Raw sink.Format = "raw"
)

func parseFormat(format sink.Format) (sink.Format, error) {
	if format == Payload || format == Raw {
		return format, nil
	}
	known, err := sink.ParseFormat(string(format))
	if err != nil {
		return "", fmt.Errorf("format is %q, must be %s, %s, %s, %s or %s", format,
			sink.CloudEvents, sink.CloudEventsBinary, sink.JSON, Payload, Raw)
	}
	return known, nil
}

// rawRecord is the payload of an event that is delivered as [Raw].
type rawRecord struct {
	Key     []byte      `json:"key"` // encoding/json reads base64
	Value   []byte      `json:"value"`
	Headers []rawHeader `json:"headers"`
}

type rawHeader struct {
	Name  *string `json:"name"`
	Value []byte  `json:"value"`
}

func raw(payload []byte) (kgo.Record, error) {
	var r rawRecord
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return kgo.Record{}, fmt.Errorf("the payload does not name a record's key, value and headers: %w", err)
	}
	record := kgo.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		if h.Name == nil {
			return kgo.Record{}, errors.New("the payload has a header without a name")
		}
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: *h.Name, Value: h.Value})
	}
	return record, nil
}
