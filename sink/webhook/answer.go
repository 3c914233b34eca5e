package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidemarkhq/tidemark/sink"
)

const (
	answerTime   = time.Second    // to read the body of an answer
	maxAfter     = 24 * time.Hour // longest Retry-After that counts
	maxDetail    = 400            // runes
	maxExcerpt   = 200            // runes of the answer in a detail
	excerptBytes = 1 << 10        // bytes of the answer from which the excerpt is made
	overlap      = 10             // bytes; a detail must not share so long a text with the payload
	minPrivate   = 4              // bytes; a shorter text is no secret, and occurs in any word
	minPathToken = 16             // bytes; a part of a path this long may be a token
)

// read reads the body of an answer. It returns its start, and whether the body has ended: only then can the
// connection be reused.
func (s *Sink) read(answer *http.Response, buffer []byte, cancel context.CancelFunc) (start []byte, whole bool) {
	if answer.ContentLength == 0 {
		return nil, true
	}
	defer time.AfterFunc(answerTime, cancel).Stop()
	kept, total := 0, 0
	for total < s.maxResponse {
		n, err := answer.Body.Read(buffer[kept:min(len(buffer), kept+s.maxResponse-total)])
		total += n
		kept = max(kept, min(kept+n, excerptBytes))
		if err != nil {
			return buffer[:kept], errors.Is(err, io.EOF)
		}
	}
	return buffer[:kept], false
}

// answered turns an answer into the result of the delivery.
func (s *Sink) answered(answer *http.Response, start, payload []byte, private []string) sink.Result {
	status := answer.StatusCode
	if status >= 200 && status < 300 {
		return sink.Result{Status: sink.Delivered}
	}
	result := sink.Result{Status: sink.Permanent, Code: "http_" + strconv.Itoa(status)}
	detail := strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
	switch {
	case status >= 300 && status < 400:
		// The target names another URL instead of accepting the event. The sink never follows it, and a retry
		// would get the same answer: an operator has to correct the URL.
		result.Code = "redirect"
		result.Detail = line(detail + " to " + location(answer, s.request.URL) + ": redirects are not followed, change the URL")
		return result
	case status == http.StatusGone:
		result.Gone = true
	case status == http.StatusConflict && answer.Header.Get("Tidemark-Copy") != "":
		// The target has seen a higher epoch than ours. The event is not at fault.
		result.Status, result.Refused, result.Code = sink.Retry, true, sink.CodeCopy
		result.Detail = line("another copy of this database delivers here: " + quote(answer.Header.Get("Tidemark-Copy"), payload, private, maxExcerpt))
		return result
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		// A secret that was changed at one end refuses every event, and none of them is at fault.
		result.Status, result.Refused = sink.Retry, true
		result.After = retryAfter(answer.Header.Get("Retry-After"), s.now())
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500, status < 200:
		// All of 5xx: a proxy may answer 501 or 505 for a server that is down.
		result.Status = sink.Retry
		result.After = retryAfter(answer.Header.Get("Retry-After"), s.now())
	}
	if text := excerpt(start, payload, private); text != "" {
		detail += ": " + text
	}
	result.Detail = line(detail)
	return result
}

// retryAfter reads both forms of the header. It returns 0 for any other text.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxAfter)
}

// location returns the scheme and the host of the header Location. The rest of the URL may hold a secret.
func location(answer *http.Response, from *url.URL) string {
	text := answer.Header.Get("Location")
	to, err := from.Parse(text)
	if text == "" || err != nil || to.Host == "" {
		return "nowhere"
	}
	return cut(to.Scheme+"://"+to.Host, 100)
}

// failed turns an error of the transport into the result of the delivery. If the error is that of a failed
// connection, nothing of the request was sent, even if the body was read for an earlier connection: the transport
// dials again only in that case.
func (s *Sink) failed(ctx context.Context, err error, read bool, payload []byte, private []string) sink.Result {
	code, unsent := errorCode(err)
	if unsent && sink.IsLocal(err) {
		return sink.Result{Status: sink.Retry, Local: true, Code: sink.CodeLocal, Detail: quote(errorText(code, err), payload, private, maxDetail)}
	}
	outcome := sink.Unknown
	if unsent || !read {
		outcome = sink.Retry
	}
	switch {
	case ctx.Err() != nil && outcome == sink.Unknown:
		return ended(ctx, outcome, "no answer")
	case ctx.Err() != nil && !unsent:
		return ended(ctx, outcome, "no connection")
	}
	detail := quote(errorText(code, err), payload, private, maxDetail)
	if code == "reset" && !read {
		code = "connect"
	}
	return sink.Result{Status: outcome, Code: code, Detail: detail}
}

// errorCode returns the code for an error, and whether the connection failed before anything was sent.
func errorCode(err error) (code string, unsent bool) {
	var refused *refusal
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	// Not Permanent: the operator may correct the name's address or the allowed networks between two attempts.
	// When the attempts are used up, the event becomes a dead letter all the same.
	case errors.As(err, &refused):
		return "address_refused", true
	case errors.As(err, &dns):
		return "dns", true
	case errors.As(err, &certificate), errors.As(err, &record):
		return "tls", true
	case errors.As(err, &op) && op.Op == "dial":
		return "connect", true
	// A TLS alert. With TLS 1.3 the server may refuse a client certificate after the request was sent.
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		return "tls", false
	}
	return "reset", false
}

func errorText(code string, err error) string {
	var refused *refusal
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		return refused.text
	case errors.As(err, &dns):
		return fmt.Sprintf("lookup %s: %s", dns.Name, dns.Err)
	case code != "reset":
		return err.Error()
	}
	// If the answer was not HTTP, the error quotes it; a server that echoes would make it quote the request. So the
	// quotation is cut off.
	text, _, _ := strings.Cut(err.Error(), `"`)
	return text
}

// ended returns the result of a delivery when ctx is done.
func ended(ctx context.Context, outcome sink.Status, what string) sink.Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sink.Result{Status: outcome, Code: "timeout", Detail: what + " within the time for it"}
	}
	return sink.Result{Status: outcome, Code: "canceled", Detail: what + " before the sender was stopped"}
}

// private returns the texts that no detail may repeat, even if the target does: the values of the user's headers, and
// the parts of the URL that may be tokens.
func private(target *url.URL, headers http.Header) []string {
	var list []string
	add := func(text string, least int) {
		if len(text) >= least {
			list = append(list, text)
		}
	}
	add(target.RawQuery, minPrivate)
	for _, values := range target.Query() {
		for _, value := range values {
			add(value, minPrivate)
		}
	}
	for _, path := range []string{target.EscapedPath(), target.Path} {
		for part := range strings.SplitSeq(path, "/") {
			add(part, minPathToken)
		}
	}
	for name, values := range headers {
		if name != "User-Agent" {
			add(values[0], minPrivate)
			_, credentials, _ := strings.Cut(values[0], " ") // after the scheme
			add(credentials, minPrivate)
		}
	}
	// Longest first: a short text may be part of a longer one, whose rest would remain.
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// excerpt returns the first line of an answer, for people.
func excerpt(start, payload []byte, private []string) string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(start), []byte("\n"))
	return quote(string(first), payload, private, maxExcerpt)
}

// quote turns foreign text into one line without private texts. It drops a text that repeats the payload, as some
// targets' error messages do.
func quote(text string, payload []byte, private []string, runes int) string {
	for _, p := range private {
		text = strings.ReplaceAll(text, p, "…")
	}
	text = cut(line(text), runes)
	for i := range len(text) - overlap + 1 {
		if bytes.Contains(payload, []byte(text[i:i+overlap])) {
			return "(it repeats the payload)"
		}
	}
	return text
}

// line turns a text into one line without control characters.
func line(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "�"))
	return cut(strings.Join(strings.Fields(clean), " "), maxDetail)
}

func cut(text string, runes int) string {
	for i := range text {
		if runes == 0 {
			return text[:i] + "…"
		}
		runes--
	}
	return text
}
