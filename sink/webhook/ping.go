package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
)

// PingOptions configure a [Ping]. They are as in [Options].
type PingOptions struct {
	URL    string
	Allow  []netip.Prefix
	Ports  []uint16
	CAFile string
}

// Ping calls an address with GET, and sends nothing else. It reaches what a webhook reaches.
type Ping struct {
	target    *url.URL
	transport *http.Transport
	conns     *conns
}

// NewPing checks the options. Its error is one line without the URL.
func NewPing(o PingOptions) (*Ping, error) {
	reach := Options{URL: o.URL, Allow: o.Allow, Ports: o.Ports, CAFile: o.CAFile, MaxConns: 1}
	target, err := reach.target()
	if err != nil {
		return nil, err
	}
	transport, open, err := reach.transport(target, nil)
	if err != nil {
		return nil, err
	}
	return &Ping{target: target, transport: transport, conns: open}, nil
}

// Call makes one call. It follows no redirect; any answer but 2xx is an error. The error is one line without the URL, which may
// hold a secret.
func (p *Ping) Call(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.target.String(), http.NoBody)
	if err != nil {
		return errors.New("the request cannot be made")
	}
	request.Header.Set("User-Agent", "Tidemark")
	answer, err := p.transport.RoundTrip(request)
	if err != nil {
		var shown *url.Error
		if errors.As(err, &shown) {
			err = shown.Err
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, defaultMaxResponse) // so that the connection is used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answered HTTP %d", answer.StatusCode)
	}
	return nil
}

// Close closes the connection.
func (p *Ping) Close() error {
	p.transport.CloseIdleConnections()
	p.conns.close()
	return nil
}
