package sink

// Format is the envelope that an event travels in.
type Format string

// The formats that there are.
const (
	// CloudEvents is CloudEvents 1.0 in structured mode: one JSON document. The default.
	CloudEvents Format = "cloudevents"
	// CloudEventsBinary is CloudEvents 1.0 in binary mode: attributes as headers, the
	// payload as the body.
	CloudEventsBinary Format = "cloudevents-binary"
	// JSON is a plain JSON document with the columns of the log.
	JSON Format = "json"
)

// Header is a header of an encoded event. Names are lower case.
type Header struct{ Name, Value string }

// Encoded is an event in its envelope.
type Encoded struct {
	ContentType string
	Headers     []Header // CloudEventsBinary: the attributes, without prefix ("id", "type", …). All: "traceparent", if there is one
	Body        []byte
}
