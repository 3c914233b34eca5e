// Package ingress takes commands over HTTP, for producers without Kafka: the same checks, tables and answers.
package ingress

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Options are what an ingress needs. All but TLS are required.
type Options struct {
	Listener  net.Listener
	TLS       *tls.Config // nil: requests come unencrypted
	Producers map[string]Producer
	Secrets   func(name string) []string // those of now
	Log       *slog.Logger
	Observe   func(store.CommandName, store.CommandOutcome) // is told of each command that reached the database; it must not block
	Answered  func(status int)                              // is told of each answer; it must not block
}

// Ingress is the server.
type Ingress struct {
	o     Options
	db    *store.DB
	http  *http.Server
	slots *slots

	compiling sync.Mutex
	schemas   map[store.CommandName]payload.Checked
}

const (
	waitForSlot  = 5 * time.Second
	partingTime  = time.Second      // for what a stranger still sends
	closingTime  = 20 * time.Second // longer than the driver takes to close a connection that does not answer (15 s), and the server to see it
	askTime      = 5 * time.Second  // for the contract
	retryAfter   = 5                // seconds, for a producer that is told to come again
	writeTimeout = 2 * time.Minute  // beside the time of the command
)

// New returns a server that does not answer yet. The pool has Connections at the least.
func New(db store.Pool, o Options) *Ingress {
	i := &Ingress{o: o, db: store.New(db), slots: newSlots(), schemas: map[store.CommandName]payload.Checked{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/commands/{service}/{command}/{version}", i.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		i.refuse(w, &failure{status: http.StatusNotFound, message: "there is only POST /v1/commands/SERVICE/COMMAND/vN"})
	})
	i.http = &http.Server{
		Handler: i.parted(mux), DisableGeneralOptionsHandler: true, TLSConfig: o.TLS, MaxHeaderBytes: 16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: writeTimeout, IdleTimeout: time.Minute,
	}
	return i
}

// Connections is how many connections to the database it uses at most.
const Connections = mostRunning

// Serve answers until Shutdown, and then returns nil.
func (i *Ingress) Serve() error {
	var err error
	if i.o.TLS != nil {
		err = i.http.ServeTLS(i.o.Listener, "", "")
	} else {
		err = i.http.Serve(i.o.Listener)
	}
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Shutdown stops listening and waits for the commands under way until ctx is done.
func (i *Ingress) Shutdown(ctx context.Context) error {
	err := i.http.Shutdown(ctx)
	if err != nil {
		_ = i.http.Close() // err says why
	}
	return err
}

// A failure is an answer that is no result of a command.
type failure struct {
	status  int
	code    command.Reason // empty: it is not about the command
	message string
	cause   error // for the log
}

func (f *failure) Error() string { return f.message }

// parted ends the connection of a stranger with any answer, also of the mux itself: an idle one would keep a place from producers, as
// would one on whose body the server waits.
func (i *Ingress) parted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := i.producer(r); !ok {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(partingTime))
		}
		next.ServeHTTP(w, r)
	})
}

// serve is a request from its bytes to its answer.
func (i *Ingress) serve(w http.ResponseWriter, r *http.Request) {
	producer, ok := i.producer(r)
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		i.refuse(w, &failure{status: http.StatusMethodNotAllowed, message: "a command is asked for with POST"})
		return
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer")
		i.refuse(w, &failure{status: http.StatusUnauthorized, message: "the request has no token and no certificate of a producer"})
		return
	}
	asked, err := read(w, r, producer)
	if err == nil {
		err = i.answer(r.Context(), w, asked)
	}
	var f *failure
	if errors.As(err, &f) {
		i.refuse(w, f)
	}
}

// answer asks the database for a command, and writes its result. An error is a failure.
func (i *Ingress) answer(ctx context.Context, w http.ResponseWriter, a asking) error {
	envelope, e, err := a.envelope() // whole, before the database hears of it
	if err != nil {
		return err
	}
	slot, cancel := context.WithTimeout(ctx, waitForSlot)
	defer cancel()
	release, ok := i.slots.take(slot, a.name)
	if !ok {
		return &failure{status: http.StatusServiceUnavailable, message: "too many commands are under way: send it again, with the same key"}
	}
	defer release()
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	contract, found, err := i.db.CommandContract(limited, a.name)
	if err != nil {
		return away(err)
	}
	if found && a.schema == 0 && contract.SchemaVersion > 1 {
		a.schema = contract.SchemaVersion
		if envelope, e, err = a.envelope(); err != nil {
			return err
		}
	}
	// The command has timeouts of its own, which may be longer.
	deadline := http.NewResponseController(w)
	_ = deadline.SetWriteDeadline(time.Time{})
	began := time.Now()
	// A producer that hangs up does not undo what it asked for.
	document, err := i.ask(context.WithoutCancel(ctx), contract, envelope, i.misfit(a.name, contract, e.Payload))
	_ = deadline.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil {
		i.o.Log.InfoContext(ctx, "command", "event_id", e.EventID, "service", e.Service, "command", e.Command, "trace_id", e.TraceID,
			"status", "not answered", "error", err)
		return away(err)
	}
	var result result
	if err := json.Unmarshal(document, &result); err != nil {
		return &failure{status: http.StatusInternalServerError, message: "the answer of the database cannot be read", cause: err}
	}
	i.tell(ctx, e, result, time.Since(began))
	if result.Code.Class() == "identity" { // as from Kafka, there is no result
		return &failure{status: http.StatusForbidden, code: result.Code, message: result.Message}
	}
	i.write(w, result.httpStatus(), document)
	return nil
}

// ask runs a command. One that ends its session twice, or does not end in time, is parked without being run, as from Kafka: else it
// would do so each time that its producer asks.
func (i *Ingress) ask(ctx context.Context, c store.CommandContract, envelope []byte, misfit any) (json.RawMessage, error) {
	judged := c.Digest
	if c.Schema == nil {
		judged = ""
	}
	timeout := time.Duration(max(c.Patience, 7000)) * time.Millisecond
	document, err := i.db.CommandIngress(ctx, timeout, envelope, misfit, judged, false)
	if store.SessionEnded(err) && !errors.Is(err, context.DeadlineExceeded) {
		document, err = i.db.CommandIngress(ctx, timeout, envelope, misfit, judged, false)
	}
	if store.SessionEnded(err) {
		return i.db.CommandIngress(ctx, closingTime, envelope, misfit, judged, true)
	}
	return document, err
}

// result is what the server reads of a result document.
type result struct {
	Status   string         `json:"status"`
	Original string         `json:"original_status"`
	Code     command.Reason `json:"error_code"`
	Message  string         `json:"error_message"`
}

// httpStatus is the same for a duplicate as for the answer before.
func (r result) httpStatus() int {
	status := r.Status
	if status == "duplicate" {
		status = r.Original
	}
	switch {
	case status == "processed":
		return http.StatusOK
	case status == "failed_retryable":
		return http.StatusAccepted
	case r.Status == "failed_terminal" && r.Code == command.IdempotencyKeyReused:
		return http.StatusConflict
	case r.Code == command.EnvelopeTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}

// away is the failure of a statement that was not answered.
func away(err error) *failure {
	switch {
	case store.Is(err, tidemark.ErrGateClosed):
		return &failure{status: http.StatusServiceUnavailable, message: "commands are paused: send it again, with the same key", cause: err}
	case store.Transient(err), store.TimedOut(err), store.SessionEnded(err), errors.Is(err, context.Canceled):
		return &failure{status: http.StatusServiceUnavailable, message: "whether the command took effect is not known: send it again, with the same key", cause: err}
	}
	return &failure{status: http.StatusInternalServerError, message: "the command could not be run: its operator finds why in the log of the daemon", cause: err}
}

// misfit is what a payload violates of a schema of which SQL checks a part only; nil: nothing. The schema of a registered command is
// compiled when it changes.
func (i *Ingress) misfit(name store.CommandName, c store.CommandContract, document json.RawMessage) *payload.Violated {
	if c.Schema == nil {
		return nil
	}
	i.compiling.Lock()
	known := i.schemas[name]
	if known.Digest != c.Digest {
		known = payload.NewChecked(c.Digest, c.Schema)
		i.schemas[name] = known
	}
	i.compiling.Unlock()
	return known.Violated(document)
}

func (i *Ingress) tell(ctx context.Context, e command.Envelope, r result, took time.Duration) {
	name := store.CommandName{Service: e.Service, Command: e.Command, Version: e.CommandVersion}
	if r.Code.Unregistered() {
		name = store.CommandName{}
	}
	o := store.CommandOutcome{Status: r.Status, Code: string(r.Code), Letter: r.Status == "failed_terminal" || r.Code.Class() == "identity"}
	if r.Status == "processed" {
		o.Took = took
	}
	i.o.Observe(name, o)
	level := slog.LevelDebug
	if strings.HasPrefix(r.Status, "failed") || r.Status == "rejected" {
		level = slog.LevelInfo
	}
	i.o.Log.Log(ctx, level, "command", "event_id", e.EventID, "service", e.Service, "command", e.Command, "trace_id", e.TraceID,
		"status", r.Status, "code", r.Code, "producer", e.Producer, "via", "ingress")
}

// refuse writes an answer that is no result.
func (i *Ingress) refuse(w http.ResponseWriter, f *failure) {
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if f.status == http.StatusInternalServerError {
		i.o.Log.Error("a command over HTTP could not be answered", "error", f.cause)
	}
	document := map[string]any{"error_code": nil, "error_message": f.message}
	if f.code != "" {
		document["error_code"] = f.code
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprint("texts: ", err))
	}
	i.write(w, f.status, text)
}

func (i *Ingress) write(w http.ResponseWriter, status int, document []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(document, '\n')) //nolint:gosec // JSON that no browser takes for a page
	i.o.Answered(status)
}
