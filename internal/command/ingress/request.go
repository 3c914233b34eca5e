package ingress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// The headers of a request.
const (
	keyHeader    = "Idempotency-Key"
	tenantHeader = "Tidemark-Tenant"
	schemaHeader = "Tidemark-Schema-Version"
	traceHeader  = "Traceparent"
)

// asking is a request of a verified producer.
type asking struct {
	name     store.CommandName
	producer string
	key      string
	tenant   string
	schema   int // 0: the newest, which is 1 until it is known
	trace    string
	payload  []byte
}

// read reads a request. An error is a failure.
func read(w http.ResponseWriter, r *http.Request, producer string) (a asking, err error) {
	a = asking{producer: producer, name: store.CommandName{Service: r.PathValue("service"), Command: r.PathValue("command")}}
	digits, found := strings.CutPrefix(r.PathValue("version"), "v")
	if a.name.Version, found = number(digits, found); !found {
		return a, &failure{status: http.StatusNotFound, message: "the path ends in the command's version, such as /v1"}
	}
	if media, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" ||
		parameters["charset"] != "" && !strings.EqualFold(parameters["charset"], "utf-8") || r.Header.Get("Content-Encoding") != "" {
		return a, &failure{status: http.StatusUnsupportedMediaType, message: "the body is the payload, with Content-Type: application/json"}
	}
	for _, h := range []struct {
		name string
		into *string
	}{{keyHeader, &a.key}, {tenantHeader, &a.tenant}, {traceHeader, &a.trace}} {
		if *h.into, err = header(r, h.name); err != nil {
			return a, err
		}
	}
	switch {
	case a.key == "":
		return a, invalid("the header %s is missing: it names the change that is asked for", keyHeader)
	case strings.HasPrefix(a.key, `"`):
		// By a draft of the IETF it is quoted. To take both would make two keys of one.
		return a, invalid("the header %s begins with a quote: send the key itself", keyHeader)
	}
	schema, err := header(r, schemaHeader)
	if err != nil {
		return a, err
	}
	if a.schema, found = number(schema, true); !found && schema != "" {
		return a, invalid("the header %s is a whole number from 1", schemaHeader)
	}
	a.payload, err = body(w, r)
	return a, err
}

// number reads a version as it is written in a path or header: a whole number from 1, without sign or leading zero.
func number(text string, found bool) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), found && err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// header returns a header that may be there once.
func header(r *http.Request, name string) (string, error) {
	switch values := r.Header.Values(name); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", invalid("the header %s is there %d times, and must be there once", name, len(values))
	case !utf8.ValidString(values[0]):
		return "", invalid("the header %s is not UTF-8", name)
	case values[0] == "":
		return "", invalid("the header %s is empty", name)
	default:
		return values[0], nil
	}
}

func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, command.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &failure{http.StatusRequestEntityTooLarge, command.EnvelopeTooLarge, fmt.Sprintf("the payload has more than %d bytes", command.MaxBytes), nil}
	case err != nil:
		return nil, invalid("the body did not arrive whole")
	}
	text = bytes.TrimSpace(text)
	if problem := strict.CheckDepth(text, command.MaxDepth); problem != nil {
		return nil, invalid("the payload %v", problem)
	}
	if text[0] != '{' {
		return nil, invalid("the payload is not a JSON object")
	}
	return text, nil
}

func invalid(format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, command.EnvelopeInvalid, fmt.Sprintf(format, args...), nil}
}

// envelope is the command as a record of Kafka has it, checked as one. An error is a failure.
func (a asking) envelope() ([]byte, command.Envelope, error) {
	metadata := map[string]string{"producer": a.producer}
	if a.tenant != "" {
		metadata["tenant"] = a.tenant
	}
	if a.trace == "" {
		a.trace = command.NewTraceID()
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(map[string]any{
		"event_id": command.NewEventID(), "service": a.name.Service, "command": a.name.Command, "command_version": a.name.Version,
		"schema_version": max(a.schema, 1), "payload": json.RawMessage(a.payload), "idempotency_key": a.key,
		"occurred_at": time.Now().UTC().Format(time.RFC3339Nano), "trace_id": a.trace, "metadata": metadata,
	})
	if err != nil {
		return nil, command.Envelope{}, invalid("the payload is not JSON")
	}
	envelope := bytes.TrimSpace(text.Bytes())
	e, err := command.Parse(envelope)
	var refusal *command.Refusal
	if errors.As(err, &refusal) {
		status := http.StatusBadRequest
		if refusal.Reason == command.EnvelopeTooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		return nil, e, &failure{status, refusal.Reason, strings.TrimPrefix(refusal.Error(), string(refusal.Reason)+": "), nil}
	}
	return envelope, e, err
}
