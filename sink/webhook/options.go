package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/target"
	"github.com/tidemarkhq/tidemark/sink"
)

// Options configure a webhook. URL is required, and either Secrets or Unsigned.
type Options struct {
	// URL is the target: https://, or http:// to addresses in Allow. It must not contain a user or a
	// password; put these into Headers.
	URL string

	// Secrets sign the requests: first the current one, then older ones that receivers may still use.
	// Each is whsec_ and 24 to 64 bytes in base64 (v1, HMAC-SHA256), or whsk_ and an ed25519 private
	// key in base64 (v1a). Default: none, which New refuses unless Unsigned is set.
	Secrets []string

	// Unsigned sends requests without signatures. Default: false.
	Unsigned bool

	// Format is the envelope. Default: sink.CloudEvents.
	Format sink.Format

	// Headers are added to each request. New refuses headers that the envelope, Tidemark or the connection
	// sets. Default: only User-Agent, with the value Tidemark.
	Headers map[string]string

	// Tokens are headers whose value is a bearer token, such as Authorization. After an answer of 401 the sink
	// fetches a new token and sends the request once more. If the target refuses that one too, the sink fetches
	// none for a minute. The caller closes the Tokens, not the sink. Default: none.
	Tokens map[string]*Tokens

	// Allow are networks that the sink may call in addition to public addresses, at any port and also with
	// http://. Default: none; loopback, private, link-local and other special addresses are refused.
	Allow []netip.Prefix

	// Ports are ports of public addresses that the sink may call in addition to 80 and 443. Default: none.
	Ports []uint16

	// CAFile is a PEM file with the authorities to trust instead of the system's. New reads it, unless URL begins
	// with http://. Default: the system's.
	CAFile string

	// CertFile and KeyFile are PEM files of a client certificate and its key, read once. Default:
	// none.
	CertFile, KeyFile string

	// ServerName is the name that the server's certificate must be valid for. Default: the host of URL.
	ServerName string

	// MaxResponse is how many bytes of an answer's body the sink reads, at least 1. After a longer answer it
	// closes the connection; the result depends only on the status. Default: 65536.
	MaxResponse int

	// MaxConns is the highest number of connections, at least 1. Further requests wait for one, within their
	// timeout. Default: 256.
	MaxConns int
}

const (
	defaultMaxResponse = 64 << 10
	defaultMaxConns    = 256
)

// target checks the URL and the limits, and returns the URL.
func (o *Options) target() (*url.URL, error) {
	for _, network := range o.Allow {
		switch {
		case !network.IsValid():
			return nil, errors.New("allow holds an invalid network")
		case network.Addr().Is4In6():
			return nil, fmt.Errorf("allow holds %s; write it as IPv4", network)
		}
	}
	switch {
	case slices.Contains(o.Ports, 0):
		return nil, errors.New("ports holds 0, must be from 1 to 65535")
	case o.MaxResponse < 0:
		return nil, fmt.Errorf("max response is %d, must be at least 1", o.MaxResponse)
	case o.MaxConns < 0:
		return nil, fmt.Errorf("max conns is %d, must be at least 1", o.MaxConns)
	case o.URL == "":
		return nil, errors.New("url is missing")
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil: // err would repeat the URL, and a password in it
		return nil, errors.New("url cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("url must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("url has no host")
	case u.User != nil:
		return nil, errors.New("url holds a user; put an Authorization header into headers")
	case u.Fragment != "" || strings.Contains(o.URL, "#"):
		return nil, errors.New("url has a fragment (#), which is never sent")
	case u.Scheme == "http" && len(o.Allow) == 0:
		return nil, errors.New("url begins with http://, which is for networks in allow only; use https://")
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, errors.New("url has a port that is not from 1 to 65535")
		}
		if len(o.Allow) == 0 && !slices.Contains(publicPorts, uint16(port)) && !slices.Contains(o.Ports, uint16(port)) {
			return nil, fmt.Errorf("url has port %d, which is not 80, 443 or in ports", port)
		}
	}
	return u, nil
}

func (o *Options) headers() (http.Header, error) {
	h := http.Header{"User-Agent": {"Tidemark"}}
	seen := map[string]bool{}
	names := slices.Sorted(maps.Keys(o.Headers))
	for _, name := range slices.Concat(names, slices.Sorted(maps.Keys(o.Tokens))) {
		if name == "" || strings.ContainsFunc(name, notToken) {
			return nil, fmt.Errorf("header %q is not the name of a header", name)
		}
		lower := strings.ToLower(name)
		if target.ReservedHeader(name) {
			return nil, fmt.Errorf("header %s is reserved", name)
		}
		value := o.Headers[name]
		switch {
		case seen[lower]:
			return nil, fmt.Errorf("header %s is there twice", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("header %s has a control character in its value", name)
		}
		seen[lower] = true
		if _, fetched := o.Tokens[name]; !fetched {
			h.Set(name, value)
		}
	}
	return h, nil
}

func notToken(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func (o *Options) tls(scheme string) (*tls.Config, error) {
	if scheme == "http" {
		if o.CertFile != "" || o.KeyFile != "" || o.ServerName != "" {
			return nil, errors.New("url begins with http://, and client certificates and server names are for https:// only")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca file: %s holds no certificate in PEM", o.CAFile)
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("cert file and key file must be set together")
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
