package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TokenOptions configure a [Tokens].
type TokenOptions struct {
	// URL is the token endpoint: https://, or http:// to addresses in Allow. Required.
	URL string

	// ClientID and ClientSecret are the client's credentials. Required.
	ClientID, ClientSecret string

	// Scopes to request. Default: none.
	Scopes []string

	// Audience of the token, for servers that require it. Default: not sent.
	Audience string

	// Post sends the credentials in the form. Default: false, in the header Authorization.
	Post bool

	// Allow, Ports and CAFile are as in [Options].
	Allow  []netip.Prefix
	Ports  []uint16
	CAFile string
}

// Tokens fetches bearer tokens with client credentials (RFC 6749, section 4.4) and keeps a token until shortly before
// it expires. Several sinks may share a Tokens.
type Tokens struct {
	options   TokenOptions
	target    *url.URL
	transport *http.Transport
	conns     *conns
	now       func() time.Time

	// turn is held by the request under way. The callers that wait for it then find its token.
	turn chan struct{}

	mu      sync.Mutex
	token   string
	expires time.Time
}

const (
	tokenTime    = 10 * time.Second // timeout of a request
	mostToken    = 16 << 10         // bytes
	mostAnswer   = 256 << 10        // bytes of the endpoint's answer
	tokenDefault = 5 * time.Minute  // lifetime of a token without expires_in
	tokenEarly   = 30 * time.Second // a token is replaced this long before it expires
)

// NewTokens checks the options. It fetches no token yet. Its error is one line without secrets.
func NewTokens(o TokenOptions) (*Tokens, error) {
	return newTokens(o, nil)
}

func newTokens(o TokenOptions, resolver *net.Resolver) (*Tokens, error) {
	if o.ClientID == "" || o.ClientSecret == "" {
		return nil, errors.New("token: a client id and a client secret are needed")
	}
	reach := Options{URL: o.URL, Allow: o.Allow, Ports: o.Ports, CAFile: o.CAFile}
	target, err := reach.target()
	if err != nil {
		return nil, fmt.Errorf("token %w", err)
	}
	transport, open, err := reach.transport(target, resolver)
	if err != nil {
		return nil, fmt.Errorf("token %w", err)
	}
	return &Tokens{options: o, target: target, transport: transport, conns: open, now: time.Now, turn: make(chan struct{}, 1)}, nil
}

// Close closes all connections.
func (t *Tokens) Close() error {
	t.transport.CloseIdleConnections()
	t.conns.close()
	return nil
}

// Value returns the value of the header: Bearer and the token. It fetches a token if none is valid.
func (t *Tokens) Value(ctx context.Context) (string, error) {
	if token := t.kept(); token != "" {
		return "Bearer " + token, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if token := t.kept(); token != "" {
		return "Bearer " + token, nil
	}
	token, lasts, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.expires = token, t.now().Add(lasts)
	return "Bearer " + token, nil
}

// Refused drops the token of a value that a target answered with 401, unless it was replaced meanwhile.
func (t *Tokens) Refused(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value == "Bearer "+t.token {
		t.token = ""
	}
}

func (t *Tokens) kept() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now().Before(t.expires) {
		return ""
	}
	return t.token
}

// tokenError is one line without secrets.
type tokenError struct{ text string }

func (e *tokenError) Error() string { return e.text }

func tokenErrorf(format string, args ...any) error {
	return &tokenError{line(fmt.Sprintf(format, args...))}
}

// fetch requests a token. It returns the token and how long to use it.
func (t *Tokens) fetch(ctx context.Context) (token string, lasts time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.target.String(), strings.NewReader(t.form()))
	if err != nil {
		return "", 0, tokenErrorf("cannot make a request to the token endpoint")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "Tidemark")
	if !t.options.Post {
		// Both are form-encoded first: RFC 6749, section 2.3.1.
		request.SetBasicAuth(url.QueryEscape(t.options.ClientID), url.QueryEscape(t.options.ClientSecret))
	}
	// Not through a client: it would follow redirects, and take the secret along.
	answer, err := t.transport.RoundTrip(request)
	if err != nil {
		code, _ := errorCode(err)
		if ctx.Err() != nil {
			code = "timeout"
		}
		return "", 0, tokenErrorf("no token from %s: %s: %s", t.target.Host, code, errorText(code, err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return "", 0, tokenErrorf("no token from %s: the answer broke off", t.target.Host)
	}
	return t.read(answer, body)
}

func (t *Tokens) form() string {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(t.options.Scopes) > 0 {
		form.Set("scope", strings.Join(t.options.Scopes, " "))
	}
	if t.options.Audience != "" {
		form.Set("audience", t.options.Audience)
	}
	if t.options.Post {
		form.Set("client_id", t.options.ClientID)
		form.Set("client_secret", t.options.ClientSecret)
	}
	return form.Encode()
}

// tokenErrors are the error codes of RFC 6749, section 5.2. An error repeats no other text of the answer, which may hold
// the secret.
var tokenErrors = map[string]bool{
	"invalid_request": true, "invalid_client": true, "invalid_grant": true, "unauthorized_client": true,
	"unsupported_grant_type": true, "invalid_scope": true,
}

func (t *Tokens) read(answer *http.Response, body []byte) (token string, lasts time.Duration, err error) {
	var got struct {
		AccessToken string      `json:"access_token"`
		TokenType   string      `json:"token_type"`
		ExpiresIn   json.Number `json:"expires_in"`
		Error       string      `json:"error"`
	}
	broken := json.Unmarshal(body, &got)
	switch {
	case answer.StatusCode != http.StatusOK && tokenErrors[got.Error]:
		return "", 0, tokenErrorf("no token from %s: %d %s", t.target.Host, answer.StatusCode, got.Error)
	case answer.StatusCode != http.StatusOK:
		return "", 0, tokenErrorf("no token from %s: %d %s", t.target.Host, answer.StatusCode, http.StatusText(answer.StatusCode))
	case broken != nil, got.AccessToken == "":
		return "", 0, tokenErrorf("no token from %s: the answer has no access_token", t.target.Host)
	case !strings.EqualFold(got.TokenType, "bearer"):
		return "", 0, tokenErrorf("no token from %s: its type is not Bearer", t.target.Host)
	case len(got.AccessToken) > mostToken, strings.ContainsFunc(got.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", 0, tokenErrorf("no token from %s: it has characters that no header holds, or too many", t.target.Host)
	}
	return got.AccessToken, lifetime(got.ExpiresIn), nil
}

// lifetime returns how long to use a token: until tokenEarly before it expires, or half its time if that is longer.
func lifetime(expiresIn json.Number) time.Duration {
	seconds, err := strconv.ParseFloat(expiresIn.String(), 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 {
		return tokenDefault
	}
	lasts := time.Duration(min(seconds, 24*3600) * float64(time.Second))
	return max(lasts-tokenEarly, lasts/2)
}
