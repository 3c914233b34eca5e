package kafka

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/sink"
)

// isRefusal knows the answers that a whole batch of records gets for one of them.
func isRefusal(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) ||
		errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// failed is the result of a record that came to an error. The client gives a record up
// without an answer of the broker only as long as it was not sent.
func failed(err error) sink.Result {
	r := sink.Result{Outcome: sink.Retry, Code: Broker, Detail: oneLine(err)}
	var answer *kerr.Error
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		r.Outcome, r.Code = sink.Permanent, TooLarge
	case errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.InvalidTimestamp):
		r.Outcome, r.Code = sink.Permanent, InvalidRecord
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InvalidTopicException):
		r.Code = UnknownTopic
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed),
		errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism),
		errors.Is(err, kerr.IllegalSaslState):
		r.Code = NotAuthorized
	case errors.As(err, &answer):
	case errors.Is(err, io.EOF):
		r.Code, r.Detail = Connect, "the broker closed the connection, as some do when the login is wrong, or TLS is: "+r.Detail
	case sink.IsLocal(err):
		r.Code, r.Local = Local, true
	default:
		r.Code = Connect
	}
	return r
}

// notSent is the result of a record that never left.
func notSent(ctx context.Context, err error) sink.Result {
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		code, detail := ended(ctx)
		return sink.Result{Outcome: sink.Retry, Code: code, Detail: detail + " before it was sent"}
	}
	r := failed(err)
	r.Outcome = sink.Retry
	return r
}

// unanswered is the result of a record that may have arrived.
func unanswered(ctx context.Context, err error) sink.Result {
	if ctx.Err() == nil {
		r := failed(err)
		r.Outcome, r.Local = sink.Unknown, false
		return r
	}
	code, detail := ended(ctx)
	return sink.Result{Outcome: sink.Unknown, Code: code, Detail: detail + " before the broker answered"}
}

func ended(ctx context.Context) (code, detail string) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Cancelled, "cancelled"
	}
	return Timeout, "timed out"
}

// mostDetail is in bytes.
const mostDetail = 500

// oneLine is what the error says, on a line that is not too long.
func oneLine(err error) string {
	text := oneline.Clean(err.Error())
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "…"
	}
	return text
}
