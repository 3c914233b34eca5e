package sink

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is the envelope that an event travels in.
type Format string

// The formats of the envelope.
const (
	// CloudEvents is CloudEvents 1.0 in structured mode: one JSON document. The default.
	CloudEvents Format = "cloudevents"
	// CloudEventsBinary is CloudEvents 1.0 in binary mode: attributes as headers, the
	// payload as the body.
	CloudEventsBinary Format = "cloudevents-binary"
	// JSON is a plain JSON document with the columns of the log.
	JSON Format = "json"
)

// ParseFormat reads a format as a route names it. Default: [CloudEvents].
func ParseFormat(text string) (Format, error) {
	switch f := Format(text); f {
	case "":
		return CloudEvents, nil
	case CloudEvents, CloudEventsBinary, JSON:
		return f, nil
	}
	return "", fmt.Errorf("format is %q, must be %s, %s or %s", text, CloudEvents, CloudEventsBinary, JSON)
}

// Header is a header of an encoded event. Names are lower case.
type Header struct{ Name, Value string }

// Encoded is an event in its envelope.
type Encoded struct {
	ContentType string
	// With CloudEventsBinary, Headers holds the attributes, without prefix ("id", "type", …).
	// With any format it holds "traceparent" if the event has one; with CloudEventsBinary the
	// sink sends it twice, as an attribute and as the header of that name. No value holds a
	// control character. The sink encodes other Unicode as its protocol requires.
	Headers []Header
	Body    []byte
}

const (
	structuredType = "application/cloudevents+json"
	jsonType       = "application/json"
)

// Encode puts an event into its envelope. Body and headers depend only on the event, Replay
// and Test, so that each attempt sends the same bytes. On an error a retry cannot help: the
// event lacks a field that every event of the log has, or the format is unknown.
//
// The attributes of a CloudEvent are
//
//	id               the event's id
//	source           /tidemark/<domain>
//	type             type
//	subject          subject_table/subject_ref, or the one of them that is set; else the key
//	time             occurred_at, with microseconds, in UTC
//	partitionkey     key
//	sequence         number in the log, with zeros in front: it sorts as text
//	domain, stream, lane, severity, actor, subjecttable, subjectref
//	traceparent      trace, if it is a W3C traceparent
//	replay           true, for a replay
//	test             true, for a test of the target, whose event is not in the log
//
// without those that have no value. U+FFFD replaces control characters and noncharacters in
// attributes, which CloudEvents does not allow there. The payload is as PostgreSQL wrote it,
// digit for digit.
//
// JSON has the columns of the log by name, as tidemark.event_json does, but emitted_by and
// inbound_id. A column without a value is null.
func Encode(format Format, d Delivery) (Encoded, error) {
	_, e, err := Append(nil, format, &d)
	return e, err
}

// Append is [Encode] for a sender that keeps the bodies of a batch in one buffer. Body is
// either the payload itself or the end of the returned buffer.
func Append(buffer []byte, format Format, d *Delivery) ([]byte, Encoded, error) {
	if err := complete(d); err != nil {
		return buffer, Encoded{}, err
	}
	start := len(buffer)
	if buffer == nil {
		buffer = make([]byte, 0, 640+len(d.Event.Payload))
	}
	switch format {
	case "", CloudEvents:
		buffer = appendStructured(buffer, d)
		return buffer, Encoded{structuredType, traceHeader(d), buffer[start:len(buffer):len(buffer)]}, nil
	case CloudEventsBinary:
		return buffer, Encoded{jsonType, attributes(make([]Header, 0, maxAttributes), d), payload(d)}, nil
	case JSON:
		buffer = appendColumns(buffer, d)
		return buffer, Encoded{jsonType, traceHeader(d), buffer[start:len(buffer):len(buffer)]}, nil
	}
	_, err := ParseFormat(string(format))
	return buffer, Encoded{}, err
}

// Bare is an event without an envelope: its payload, and the header "traceparent" if it has one. It fails as [Append] does.
func Bare(d *Delivery) (Encoded, error) {
	if err := complete(d); err != nil {
		return Encoded{}, err
	}
	return Encoded{jsonType, traceHeader(d), payload(d)}, nil
}

func complete(d *Delivery) error {
	switch {
	case d.Event.ID == "":
		return errors.New("event has no id")
	case d.Event.Domain == "" || d.Event.Type == "":
		return errors.New("event has no domain or no type")
	}
	return nil
}

func traceHeader(d *Delivery) []Header {
	if !isTraceparent(d.Event.Trace) {
		return nil
	}
	return []Header{{"traceparent", d.Event.Trace}}
}

func payload(d *Delivery) []byte {
	if len(d.Event.Payload) == 0 {
		return []byte("{}")
	}
	return d.Event.Payload
}

const maxAttributes = 18

// attributes appends the attributes of the event, except datacontenttype, which is the
// content type in binary mode.
func attributes(list []Header, d *Delivery) []Header {
	e := &d.Event
	// All composed values share one string: one allocation.
	var scratch [256]byte
	b := append(scratch[:0], "/tidemark/"...)
	b = append(b, url.PathEscape(e.Domain)...)
	source := len(b)
	b = appendSubject(b, d)
	subject := len(b)
	b = appendTime(b, e.OccurredAt)
	occurred := len(b)
	b = appendSequence(b, e.Seq)
	parts := string(b)

	list = append(list, Header{"specversion", "1.0"})
	add := func(name, value string) {
		if value != "" {
			list = append(list, Header{name, value})
		}
	}
	add("id", clean(e.ID))
	add("source", parts[:source])
	add("type", clean(e.Type))
	// Readers refuse a blank subject.
	if text := parts[source:subject]; strings.TrimSpace(text) != "" {
		add("subject", text)
	}
	// RFC 3339 allows only these years; PostgreSQL allows more.
	if year := e.OccurredAt.UTC().Year(); !e.OccurredAt.IsZero() && year >= 0 && year <= 9999 {
		add("time", parts[subject:occurred])
	}
	add("partitionkey", clean(e.Key))
	add("sequence", parts[occurred:])
	add("domain", clean(e.Domain))
	add("stream", clean(e.Stream))
	add("lane", clean(string(e.Lane)))
	add("severity", clean(string(e.Severity)))
	add("actor", clean(e.Actor))
	add("subjecttable", clean(e.SubjectTable))
	add("subjectref", clean(e.SubjectRef))
	if isTraceparent(e.Trace) {
		add("traceparent", e.Trace)
	}
	if d.Replay {
		add("replay", "true")
	}
	if d.Test {
		add("test", "true")
	}
	return list
}

func appendSubject(b []byte, d *Delivery) []byte {
	table, ref := clean(d.Event.SubjectTable), clean(d.Event.SubjectRef)
	switch {
	case table != "" && ref != "":
		b = append(b, table...)
		b = append(b, '/')
		return append(b, ref...)
	case table != "" || ref != "":
		b = append(b, table...)
		return append(b, ref...)
	}
	return append(b, clean(d.Event.Key)...)
}

// appendSequence pads to the digits of the greatest bigint: the sequence extension is
// compared as text.
func appendSequence(b []byte, seq int64) []byte {
	for limit := int64(1e18); limit > max(seq, 1); limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, seq, 10)
}

// appendTime does what AppendFormat does with a fixed layout, at a third of its cost.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, t.Nanosecond()/1000, 6), 'Z')
}

func appendDigits(b []byte, n, width int) []byte {
	start := len(b)
	b = append(b, "000000"[:width]...)
	for i := start + width - 1; n > 0; i-- {
		b[i] = '0' + byte(n%10)
		n /= 10
	}
	return b
}

func appendStructured(b []byte, d *Delivery) []byte {
	var list [maxAttributes]Header
	b = append(b, '{')
	for _, a := range attributes(list[:0], d) {
		b = append(b, '"')
		b = append(b, a.Name...)
		b = append(b, `":`...)
		if a.Name == "replay" || a.Name == "test" {
			b = append(b, a.Value...) // a Boolean
		} else {
			b = appendText(b, a.Value)
		}
		b = append(b, ',')
	}
	b = append(b, `"datacontenttype":"application/json","data":`...)
	b = append(b, payload(d)...)
	return append(b, '}')
}

func appendColumns(b []byte, d *Delivery) []byte {
	e := &d.Event
	b = append(b, `{"event_id":`...)
	b = appendText(b, e.ID)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = appendInstant(b, `,"created_at":`, e.CreatedAt)
	b = appendInstant(b, `,"occurred_at":`, e.OccurredAt)
	for _, column := range [...]struct{ name, value string }{
		{`,"lane":`, string(e.Lane)},
		{`,"severity":`, string(e.Severity)},
		{`,"domain":`, e.Domain},
		{`,"type":`, e.Type},
		{`,"stream":`, e.Stream},
		{`,"key":`, e.Key},
		{`,"subject_table":`, e.SubjectTable},
		{`,"subject_ref":`, e.SubjectRef},
		{`,"idempotency_key":`, e.IdempotencyKey},
		{`,"trace":`, e.Trace},
		{`,"actor":`, e.Actor},
	} {
		b = append(b, column.name...)
		if column.value == "" {
			b = append(b, "null"...)
		} else {
			b = appendText(b, column.value)
		}
	}
	b = append(b, `,"payload":`...)
	b = append(b, payload(d)...)
	return append(b, '}')
}

func appendInstant(b []byte, name string, t time.Time) []byte {
	b = append(b, name...)
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = appendTime(b, t)
	return append(b, '"')
}

const hex = "0123456789abcdef"

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, `\ufffd`...)
				start = i + size
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// clean replaces characters that CloudEvents does not allow in an attribute by U+FFFD.
func clean(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return strings.Map(func(r rune) rune {
				noncharacter := r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
				if r < ' ' || r >= 0x7f && r <= 0x9f || noncharacter {
					return utf8.RuneError
				}
				return r
			}, s)
		}
	}
	return s
}

// isTraceparent reports whether s has the form of a traceparent of version 00. Later versions
// count if they have the same form and length.
func isTraceparent(s string) bool {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return false
	}
	trace, parent := s[3:35], s[36:52]
	return isHex(s[:2]) && isHex(trace) && isHex(parent) && isHex(s[53:]) &&
		strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func isHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}
