package webhook

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/tidemarkhq/tidemark/sink"
)

// NewResolving is New with a resolver of the test's.
func NewResolving(o Options, r *net.Resolver) (*Sink, error) { return newSink(o, r) }

// SetNow gives the sink a clock, before it is used.
func (s *Sink) SetNow(now func() time.Time) { s.now = now }

// NewResolvingTokens is NewTokens with a resolver of the test's.
func NewResolvingTokens(o TokenOptions, r *net.Resolver) (*Tokens, error) { return newTokens(o, r) }

// SetNow gives the tokens a clock, before they are used.
func (t *Tokens) SetNow(now func() time.Time) { t.now = now }

// Sign is what the header says.
func Sign(secrets []string, id, stamp string, body []byte) (string, error) {
	s, err := newSigner(secrets, false)
	if err != nil {
		return "", err
	}
	return s.sign(id, stamp, body), nil
}

// Failed is what an error of the transport comes to.
func Failed(err error, read bool) sink.Result {
	return new(Sink).failed(context.Background(), err, read, nil, nil)
}

// NewBody returns the readings of a body, and its end.
func NewBody(data []byte) (again func() (io.ReadCloser, error), end func()) {
	b := &body{data: data}
	return b.open, b.Close
}

// MayDial asks the guard of an https:// URL.
func MayDial(allow []netip.Prefix, address string) error {
	return newGuard(&Options{Allow: allow}, "https").control("", address, nil)
}

var HeaderValue = headerValue

// Written is the request for a delivery, as it goes out by HTTP/1.1.
func (s *Sink) Written(d *sink.Delivery) ([]byte, error) {
	_, encoded, err := sink.Append(nil, s.format, d)
	if err != nil {
		return nil, err
	}
	request := s.request.WithContext(context.Background())
	request.Header = s.header(&encoded, d)
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(encoded.Body)), int64(len(encoded.Body))
	var out bytes.Buffer
	err = request.Write(&out)
	return out.Bytes(), err
}
