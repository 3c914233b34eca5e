package nats

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/sink"
)

// Error codes of the server.
const (
	messageTooLarge       = 10054
	headerTooLarge        = 10097
	insufficientResources = 10023
	storageExceeded       = 10047
	memoryExceeded        = 10028
	storeFailed           = 10077 // the stream is full and keeps its old messages
	jetStreamOff          = 10076
	jetStreamOffAccount   = 10039
)

// answered turns an answer into a result. The answer for a duplicate also names the stream.
func answered(m *nats.Msg) sink.Result {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return sink.Result{Status: sink.Retry, Code: NoStream, Detail: "no stream takes the subject"}
	}
	var answer struct {
		Stream string `json:"stream"`
		Error  *struct {
			Number      int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	err := json.Unmarshal(m.Data, &answer)
	switch {
	case err == nil && answer.Error != nil:
		return refused(answer.Error.Number, oneLine(errors.New(answer.Error.Description)))
	case err != nil || answer.Stream == "":
		// A stream may still answer after it.
		return sink.Result{Status: sink.Unknown, Code: NoStream, Detail: "the answer does not come from a stream"}
	}
	return sink.Result{Status: sink.Delivered}
}

func refused(number int, detail string) sink.Result {
	r := sink.Result{Status: sink.Retry, Code: Server, Detail: "the server answers: " + detail}
	switch number {
	case messageTooLarge, headerTooLarge:
		r.Status, r.Code = sink.Permanent, TooLarge
	case insufficientResources, storageExceeded, memoryExceeded, storeFailed:
		r.Code = StreamFull
	case jetStreamOff, jetStreamOffAccount:
		r.Code = NoStream
	}
	return r
}

// notSent returns the result of a message that was not sent.
func notSent(ctx context.Context, err error) sink.Result {
	switch {
	case sink.IsLocal(err):
		return sink.Result{Status: sink.Retry, Local: true, Code: Local, Detail: oneLine(err)}
	case ctx.Err() != nil:
		code, detail := ended(ctx)
		return sink.Result{Status: sink.Retry, Code: code, Detail: detail + " before it was sent"}
	}
	r := sink.Result{Status: sink.Retry, Code: Connect, Detail: oneLine(err)}
	if isLogin(err) {
		r.Code, r.Refused = NotAuthorized, true
	}
	return r
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
