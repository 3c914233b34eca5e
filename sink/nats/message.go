package nats

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/tidemarkhq/tidemark/sink"
)

// plain returns an error if text is not the name of a single subject.
func plain(text string) error {
	switch {
	case text == "" || len(text) > 255:
		return fmt.Errorf("%q must have 1 to 255 bytes", text)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return fmt.Errorf("%q must have no spaces and no control characters", text)
	case strings.ContainsAny(text, "*>"):
		return fmt.Errorf(`%q must have no wildcards, "*" and ">"`, text)
	case strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") || strings.Contains(text, ".."):
		return fmt.Errorf("%q must have something before and after each dot", text)
	case strings.HasPrefix(text, "$"):
		return fmt.Errorf(`%q must not begin with "$", by which servers are managed`, text)
	}
	return nil
}

// message returns the message for a delivery. Its headers are those of the CloudEvents binding for
// NATS, Nats-Msg-Id, by which a stream recognizes a duplicate, and Tidemark's.
func (s *Sink) message(d *sink.Delivery) (*nats.Msg, error) {
	encoded, err := sink.Encode(s.format, *d)
	if err != nil {
		return nil, err
	}
	h := make(nats.Header, len(encoded.Headers)+8)
	for _, attribute := range encoded.Headers {
		if s.format == sink.CloudEventsBinary {
			h.Set("ce-"+attribute.Name, percent(attribute.Value))
		}
		if attribute.Name == "traceparent" {
			h.Set(attribute.Name, attribute.Value)
		}
	}
	if s.format == sink.CloudEventsBinary {
		h.Set("ce-datacontenttype", encoded.ContentType)
	}
	h.Set("content-type", encoded.ContentType)
	h.Set(nats.MsgIdHdr, messageID(d))
	h.Set("tidemark-event-id", d.Event.ID)
	h.Set("tidemark-route", d.Route)
	h.Set("tidemark-epoch", strconv.FormatInt(d.Epoch, 10))
	h.Set("tidemark-attempt", strconv.Itoa(d.Attempt))
	if d.Replay {
		h.Set("tidemark-replay", "true")
	}
	if d.Test {
		h.Set("tidemark-test", "true")
	}
	return &nats.Msg{Subject: s.subject, Header: h, Data: encoded.Body}, nil
}

// messageID is by what a stream recognizes the same delivery. A stream looks for duplicates by it alone, whatever the subject, and keeps
// none: of the event alone it would be that of another route to the stream, or of what a replay sends again, too.
func messageID(d *sink.Delivery) string {
	id := d.Event.ID + "/" + d.Route
	if d.Replay {
		id += "/" + strconv.Itoa(cmp.Or(d.First, d.Attempt))
	}
	return id
}

// percent encodes a value as the CloudEvents binding for HTTP requires, which that for NATS refers to.
func percent(s string) string {
	keep := func(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }
	i := 0
	for i < len(s) && keep(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	b := []byte(s[:i])
	for ; i < len(s); i++ {
		if c := s[i]; keep(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return string(b)
}
