package webhook

import (
	"net"
	"time"
)

// NewResolving is New with a resolver of the test's.
func NewResolving(o Options, r *net.Resolver) (*Sink, error) { return newSink(o, r) }

// SetNow gives the sink a clock, before it is used.
func (s *Sink) SetNow(now func() time.Time) { s.now = now }

// Sign is what the header says.
func Sign(secrets []string, id, stamp string, body []byte) (string, error) {
	s, err := newSigner(secrets, false)
	if err != nil {
		return "", err
	}
	return s.sign(id, stamp, body), nil
}

var HeaderValue = headerValue
