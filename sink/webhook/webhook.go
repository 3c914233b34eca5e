// Package webhook delivers events as HTTP requests, signed according to Standard Webhooks.
//
// A request is a POST of one event in its envelope. It has the envelope's headers and these:
//
//	webhook-id         the event's id: the same at each attempt
//	webhook-timestamp  when this attempt was made, in seconds since 1970
//	webhook-signature  v1 (HMAC-SHA256) or v1a (ed25519), one for each secret
//	tidemark-route     code of the route
//	tidemark-attempt   the number of the attempt on record
//	tidemark-epoch     the sender's lease
//	tidemark-replay    true, for a replay
//	tidemark-test      true, for a test of the target, whose event is not in the log
//	traceparent        the event's trace, if it is a W3C traceparent
//
// An answer of 2xx confirms the event. 410 says that the target wants no further events. After 408, 425,
// 429 and 5xx the event is sent again, after the time in Retry-After if the answer has it; after 401 and 403
// too, which refuse the credentials, and after 409 with the header tidemark-copy, by which a target says that it gets the
// same route's events from another copy of the database too. Any other answer is Permanent, a redirect too, which is never followed.
//
// The codes of failed deliveries are
//
//	http_NNN         the status of the answer
//	redirect         the answer was 3xx
//	copy             another copy of the database delivers to the target
//	invalid          the event cannot be encoded
//	token            the token endpoint returned no token for a header
//	address_refused  the sink may not call the host's address
//	dns              the host's name has no address
//	connect          the connection failed
//	tls              the TLS handshake failed
//	timeout          the timeout passed
//	canceled         the sender was stopped
//	local            this host lacked a resource, such as a file descriptor; nothing was sent
//	reset            the connection broke, or the answer was not HTTP
package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/sink"
)

// Sink delivers to one URL.
type Sink struct {
	format      sink.Format
	request     *http.Request // common to all requests, without headers
	headers     http.Header   // common to all requests
	tokens      []tokenHeader // headers with bearer tokens
	renewal     renewal       // of the tokens
	signer      *signer       // nil: unsigned
	transport   *http.Transport
	conns       *conns
	maxResponse int
	private     []string // texts that no detail may repeat
	buffers     sync.Pool
	now         func() time.Time
}

var _ sink.Sink = (*Sink)(nil)

// New returns a sink. Its error says in one line what is wrong with the options, without secrets.
func New(o Options) (*Sink, error) {
	return newSink(o, nil)
}

func newSink(o Options, resolver *net.Resolver) (*Sink, error) {
	format, err := sink.ParseFormat(string(o.Format))
	if err != nil {
		return nil, err
	}
	target, err := o.target()
	if err != nil {
		return nil, err
	}
	headers, err := o.headers()
	if err != nil {
		return nil, err
	}
	var sign *signer
	if !o.Unsigned || len(o.Secrets) > 0 {
		if sign, err = newSigner(o.Secrets, o.Unsigned); err != nil {
			return nil, err
		}
	}
	transport, conns, err := o.transport(target, resolver)
	if err != nil {
		return nil, err
	}
	s := &Sink{
		format:      format,
		request:     &http.Request{Method: http.MethodPost, URL: target, Host: target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		headers:     headers,
		signer:      sign,
		transport:   transport,
		conns:       conns,
		maxResponse: defaultMaxResponse,
		private:     private(target, headers),
		now:         time.Now,
	}
	for name, tokens := range o.Tokens {
		s.tokens = append(s.tokens, tokenHeader{http.CanonicalHeaderKey(name), tokens})
	}
	if o.MaxResponse > 0 {
		s.maxResponse = o.MaxResponse
	}
	s.buffers.New = func() any { return new(buffers) }
	return s, nil
}

// Limits is part of [sink.Sink]. A request carries one event, and so does a call.
func (s *Sink) Limits() sink.Limits { return sink.Limits{Batch: 1} }

// Close closes all connections.
func (s *Sink) Close() error {
	s.transport.CloseIdleConnections()
	s.conns.close()
	return nil
}

// Deliver sends each event of the batch in a request of its own, one after the other.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	r := s.buffers.Get().(*buffers)
	for i := range batch {
		results[i] = s.send(ctx, r, &batch[i])
	}
	if cap(r.text) <= maxBuffer {
		s.buffers.Put(r)
	}
	return results
}

// buffers is the memory of a call, which a later call reuses.
type buffers struct {
	text   []byte        // the request's body
	answer [4 << 10]byte // the start of the answer's body
}

const maxBuffer = 256 << 10 // a larger one is not reused

func (s *Sink) send(ctx context.Context, r *buffers, d *sink.Delivery) sink.Result {
	if ctx.Err() != nil {
		return ended(ctx, sink.Retry, "nothing was sent")
	}
	var encoded sink.Encoded
	var err error
	if r.text, encoded, err = sink.Append(r.text[:0], s.format, d); err != nil {
		return sink.Result{Status: sink.Permanent, Code: "invalid", Detail: line(err.Error())}
	}

	result, refused := s.attempt(ctx, r, d, &encoded)
	if len(refused) == 0 || !s.renewal.due(s.now()) {
		return result
	}
	for _, t := range refused {
		t.tokens.Refused(t.value)
	}
	result, refused = s.attempt(ctx, r, d, &encoded)
	if len(refused) > 0 {
		s.renewal.failed(s.now())
	}
	return result
}

// renewalPause is how long the sink fetches no new token after its target refused a fresh one: the target then
// refuses all tokens, or the client.
const renewalPause = time.Minute

// renewal decides whether to fetch a new token for a refused one. The zero value says yes.
type renewal struct {
	mu    sync.Mutex
	until time.Time
}

func (r *renewal) due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.until)
}

func (r *renewal) failed(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = now.Add(renewalPause)
}

// sentToken is a token that went with a request.
type sentToken struct {
	tokens *Tokens
	value  string
}

// attempt sends one request. If the answer is 401, refused holds the request's tokens.
func (s *Sink) attempt(ctx context.Context, r *buffers, d *sink.Delivery, encoded *sink.Encoded) (result sink.Result, refused []sentToken) {
	header := s.header(encoded, d)
	private := s.private
	for _, t := range s.tokens {
		value, err := t.tokens.Value(ctx)
		var known *tokenError
		switch {
		case errors.As(err, &known):
			return sink.Result{Status: sink.Retry, Code: "token", Detail: known.text}, nil
		case err != nil:
			return ended(ctx, sink.Retry, "nothing was sent"), nil
		}
		header[t.name] = []string{value}
		private = append([]string{value, strings.TrimPrefix(value, "Bearer ")}, private...) // the longest first
	}

	within, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &body{data: encoded.Body}
	defer out.Close()
	req := s.request.WithContext(within)
	req.Header = header
	req.Body, _ = out.open()
	req.GetBody = out.open
	req.ContentLength = int64(len(encoded.Body))

	// Not through a client: it would follow redirects and add the URL to its errors.
	answer, err := s.transport.RoundTrip(req)
	if err != nil {
		return s.failed(ctx, err, out.wasRead(), d.Event.Payload, private), nil
	}
	start, whole := s.read(answer, r.answer[:], cancel)
	if !whole {
		// Drop the connection: an answer that is so long or so slow might never end.
		cancel()
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		for _, t := range s.tokens {
			refused = append(refused, sentToken{t.tokens, header.Get(t.name)})
		}
	}
	return s.answered(answer, start, d.Event.Payload, private), refused
}

// tokenHeader is a header whose value is a token.
type tokenHeader struct {
	name   string
	tokens *Tokens
}

// header returns the headers of a request. The map is not reused: a broken connection may still read it.
func (s *Sink) header(e *sink.Encoded, d *sink.Delivery) http.Header {
	id, stamp := headerValue(d.Event.ID), strconv.FormatInt(s.now().Unix(), 10)
	const ours = 8
	h := make(http.Header, len(s.headers)+len(e.Headers)+ours+1)
	for name, values := range s.headers {
		h[name] = values
	}
	values := make([]string, 0, len(e.Headers)+ours+1) // one allocation for all
	set := func(name, value string) {
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set("Content-Type", e.ContentType)
	set("Webhook-Id", id)
	set("Webhook-Timestamp", stamp)
	if s.signer != nil {
		set("Webhook-Signature", s.signer.sign(id, stamp, e.Body))
	}
	set("Tidemark-Route", headerValue(d.Route))
	set("Tidemark-Attempt", strconv.Itoa(d.Attempt))
	set("Tidemark-Epoch", strconv.FormatInt(d.Epoch, 10))
	if d.Replay {
		set("Tidemark-Replay", "true")
	}
	if d.Test {
		set("Tidemark-Test", "true")
	}
	for _, attribute := range e.Headers {
		value := headerValue(attribute.Value)
		if s.format == sink.CloudEventsBinary {
			set("ce-"+attribute.Name, value)
		}
		if attribute.Name == "traceparent" {
			set("Traceparent", value)
		}
	}
	return h
}

// headerValue encodes a value as the HTTP binding of CloudEvents requires. So no text of an event can break a
// request.
func headerValue(s string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }
	for i := range len(s) {
		if plain(s[i]) {
			continue
		}
		b := append(make([]byte, 0, len(s)+16), s[:i]...)
		for ; i < len(s); i++ {
			if c := s[i]; plain(c) {
				b = append(b, c)
			} else {
				b = append(b, '%', hex[c>>4], hex[c&15])
			}
		}
		return string(b)
	}
	return s
}

const hex = "0123456789ABCDEF"
