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

// isRefusal reports whether the broker refuses a whole batch because of one of its records.
func isRefusal(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) ||
		errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp)
}

// failed returns the result of a record with an error. The client gives up a record without an
// answer of the broker only if it was not sent.
func failed(err error) sink.Result {
	r := sink.Result{Status: sink.Retry, Code: Broker, Detail: oneLine(err)}
	var answer *kerr.Error
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		r.Status, r.Code = sink.Permanent, TooLarge
	case errors.Is(err, kerr.InvalidRecord), errors.Is(err, kerr.InvalidTimestamp):
		r.Status, r.Code = sink.Permanent, InvalidRecord
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InvalidTopicException):
		r.Code = UnknownTopic
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed),
		errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism),
		errors.Is(err, kerr.IllegalSaslState):
		r.Code, r.Refused = NotAuthorized, true
	case errors.As(err, &answer):
	case errors.Is(err, io.EOF):
		r.Code, r.Detail = Connect, "the broker closed the connection, perhaps because the login or the TLS settings are wrong: "+r.Detail
	case sink.IsLocal(err):
		r.Code, r.Local = Local, true
	default:
		r.Code = Connect
	}
	return r
}

// notSent returns the result of a record that was not sent.
func notSent(ctx context.Context, err error) sink.Result {
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		code, detail := ended(ctx)
		return sink.Result{Status: sink.Retry, Code: code, Detail: detail + " before it was sent"}
	}
	r := failed(err)
	r.Status = sink.Retry
	return r
}

// unanswered returns the result of a record that may have arrived.
func unanswered(ctx context.Context, err error) sink.Result {
	if ctx.Err() == nil {
		r := failed(err)
		r.Status, r.Local = sink.Unknown, false
		return r
	}
	code, detail := ended(ctx)
	return sink.Result{Status: sink.Unknown, Code: code, Detail: detail + " before the broker answered"}
}

func ended(ctx context.Context) (code, detail string) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Cancelled, "cancelled"
	}
	return Timeout, "timed out"
}

// mostDetail is in bytes.
const mostDetail = 500

// oneLine returns the text of the error as one line of at most mostDetail bytes.
func oneLine(err error) string {
	text := oneline.Clean(err.Error())
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "…"
	}
	return text
}
