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
	answerTime   = time.Second    // for the body of an answer
	maxAfter     = 24 * time.Hour // that a target may ask for
	maxDetail    = 400            // runes
	maxExcerpt   = 200            // runes of the answer
	excerptBytes = 1 << 10        // of the answer that are looked at for it
	overlap      = 10             // bytes that a detail and a payload may not have in common
	minPrivate   = 4              // bytes; less is no secret, and would be found in every word
	minPathToken = 16             // the parts of a path that look like tokens
)

// read takes in the body of an answer. It returns the start of it, and whether it has ended: only
// then can the connection be used again.
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

// answered makes of an answer what it means for the event.
func (s *Sink) answered(answer *http.Response, start, payload []byte, private []string) sink.Result {
	status := answer.StatusCode
	if status >= 200 && status < 300 {
		return sink.Result{Outcome: sink.Delivered}
	}
	result := sink.Result{Outcome: sink.Permanent, Code: "http_" + strconv.Itoa(status)}
	detail := strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
	switch {
	case status >= 300 && status < 400:
		// The target has said where to go instead of taking the event. Nobody goes there unasked, and
		// asking again brings the same answer: a person has to look at the URL.
		result.Code = "redirect"
		result.Detail = line(detail + " to " + location(answer, s.request.URL) + ": redirects are not followed, change the URL")
		return result
	case status == http.StatusGone:
		result.Gone = true
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500, status < 200:
		// All of 5xx: what stands between may answer 501 or 505 for a server that is away.
		result.Outcome = sink.Retry
		result.After = retryAfter(answer.Header.Get("Retry-After"), s.now())
	}
	if text := excerpt(start, payload, private); text != "" {
		detail += ": " + text
	}
	result.Detail = line(detail)
	return result
}

// retryAfter reads both forms of the header; what is in neither is not there.
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

// location leaves out the path and the rest, which may be a secret.
func location(answer *http.Response, from *url.URL) string {
	text := answer.Header.Get("Location")
	to, err := from.Parse(text)
	if text == "" || err != nil || to.Host == "" {
		return "nowhere"
	}
	return cut(to.Scheme+"://"+to.Host, 100)
}

// failed says what an error means for the event. The error of a connection that did not come about is
// the last one of a request of which nothing was sent, also if the body was read for an earlier
// connection: the transport tries again in that case only.
func (s *Sink) failed(ctx context.Context, err error, read bool, payload []byte, private []string) sink.Result {
	code, unsent := errorCode(err)
	if unsent && sink.IsLocal(err) {
		return sink.Result{Outcome: sink.Retry, Local: true, Code: sink.CodeLocal, Detail: quote(errorText(code, err), payload, private, maxDetail)}
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
	return sink.Result{Outcome: outcome, Code: code, Detail: detail}
}

// errorCode says whether err is that of a connection in the making.
func errorCode(err error) (code string, unsent bool) {
	var refused *refusal
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	// Not Permanent: what a name stands for, and what is allowed, may be put right while it is tried
	// again. In the end it is a dead letter all the same.
	case errors.As(err, &refused):
		return "address_refused", true
	case errors.As(err, &dns):
		return "dns", true
	case errors.As(err, &certificate), errors.As(err, &record):
		return "tls", true
	case errors.As(err, &op) && op.Op == "dial":
		return "connect", true
	// An alert. With TLS 1.3 a client certificate is refused after the request was sent.
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
	// What came was no HTTP, and is quoted: a server that is none may well repeat the request.
	text, _, _ := strings.Cut(err.Error(), `"`)
	return text
}

// ended is the result of what was under way, or not, when ctx was done.
func ended(ctx context.Context, outcome sink.Outcome, what string) sink.Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return sink.Result{Outcome: outcome, Code: "timeout", Detail: what + " within the time for it"}
	}
	return sink.Result{Outcome: outcome, Code: "canceled", Detail: what + " before the sender was stopped"}
}

// private collects what no detail may repeat if a target does: headers of the user, and what in the URL
// may be a token.
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
	// Long ones first: a short one may be a part of another, whose rest would stay.
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// excerpt is the first line of an answer, for people.
func excerpt(start, payload []byte, private []string) string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(start), []byte("\n"))
	return quote(string(first), payload, private, maxExcerpt)
}

// quote makes a line of what comes from outside: without what is private, and not at all if it repeats the
// payload, as the answers of some targets do when they complain.
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

// line makes one line of a text, and one that changes no terminal.
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
