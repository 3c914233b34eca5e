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

// NewResolving is New with a test's resolver.
func NewResolving(o Options, r *net.Resolver) (*Sink, error) { return newSink(o, r) }

// SetNow sets the sink's clock. Call it before the first use.
func (s *Sink) SetNow(now func() time.Time) { s.now = now }

// NewResolvingTokens is NewTokens with a test's resolver.
func NewResolvingTokens(o TokenOptions, r *net.Resolver) (*Tokens, error) { return newTokens(o, r) }

// SetNow sets the clock of the tokens. Call it before the first use.
func (t *Tokens) SetNow(now func() time.Time) { t.now = now }

// Sign returns the value of the header webhook-signature.
func Sign(secrets []string, id, stamp string, body []byte) (string, error) {
	s, err := newSigner(secrets, false)
	if err != nil {
		return "", err
	}
	return s.sign(id, stamp, body), nil
}

// Failed returns the result for an error of the transport.
func Failed(err error, read bool) sink.Result {
	return new(Sink).failed(context.Background(), err, read, nil, nil)
}

// NewBody returns a function that opens a reader of a body, and one that closes the body.
func NewBody(data []byte) (again func() (io.ReadCloser, error), end func()) {
	b := &body{data: data}
	return b.open, b.Close
}

// MayDial returns the error of the guard of an https:// URL for an address.
func MayDial(allow []netip.Prefix, address string) error {
	return newGuard(&Options{Allow: allow}, "https").control("", address, nil)
}

var HeaderValue = headerValue

// Written returns the request for a delivery as HTTP/1.1 sends it.
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
