package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// runbooks has a page for each cause.
const runbooks = "https://github.com/tidemarkhq/tidemark/blob/main/docs/runbooks/"

// fresh is for how long the answer of the watch says how things are: two of its intervals, and the time of a failed one.
const fresh = 30 * time.Second

// watched is what this daemon knows by the watch. It writes the lines of the log about causes and dead letters.
type watched struct {
	log  *slog.Logger
	born time.Time // of this process

	mu    sync.Mutex
	at    time.Time // when the watch last answered; zero: it has not yet
	bad   int       // causes that stop work
	begun bool      // the line for what is open since before was written
}

// hear logs what is new. Of several daemons one watches: the others are told what is open, and log nothing.
func (w *watched) hear(ctx context.Context, saw store.Watch) {
	watches, bad := true, 0
	var before []string
	for _, c := range saw.Causes {
		switch c.State {
		case "held":
			watches = false
		case "opened":
			w.cause(ctx, slog.LevelWarn, "cause opened", c)
		case "closed":
			w.cause(ctx, slog.LevelInfo, "cause closed", c)
		case "open":
			before = append(before, *c.Cause+" "+c.Subject)
		}
		if c.Status != nil && *c.Status == "bad" {
			bad++
		}
	}
	w.mu.Lock()
	w.at, w.bad = time.Now(), bad
	first := watches && !w.begun
	w.begun = watches
	w.mu.Unlock()
	if first && len(before) > 0 {
		const most = 20
		w.log.WarnContext(ctx, "causes are open since before", "count", len(before), "causes", before[:min(len(before), most)])
	}
	for _, l := range saw.Letters {
		w.letter(ctx, l)
	}
}

// cause writes the line of a cause that opened or closed. Its fields are documented in docs/operations.md.
func (w *watched) cause(ctx context.Context, level slog.Level, message string, c store.Watched) {
	fields := []any{"cause", *c.Cause, "subject", c.Subject}
	if c.Status != nil {
		fields = append(fields, "status", *c.Status)
	}
	if c.Since != nil {
		fields = append(fields, "since", c.Since.UTC().Truncate(time.Second))
	}
	if c.Finding != nil {
		fields = append(fields, "finding", *c.Finding)
	}
	w.log.Log(ctx, level, message, append(fields, "found", c.Found, "runbook", runbooks+*c.Cause+".md")...)
}

// letter writes the line of a dead letter: which event, and never what is in it.
func (w *watched) letter(ctx context.Context, l store.Letter) {
	fields := []any{"letter", l.Letter, "code", l.Code, "attempts", l.Attempts, "worker", l.Worker}
	for _, f := range []struct {
		name  string
		value *string
	}{{"event_id", l.EventID}, {"route", l.Route}, {"item_id", l.ItemID}} {
		if f.value != nil {
			fields = append(fields, f.name, *f.value)
		}
	}
	if l.Source != "outbox" {
		fields = append(fields, "source", l.Source)
	}
	if l.Trace != nil {
		fields = append(fields, "trace_id", traceID(*l.Trace))
	}
	w.log.WarnContext(ctx, "dead letter", fields...)
}

// traceID is the id in a traceparent; a text that is none is the id itself.
func traceID(parent string) string {
	span := trace.SpanContextFromContext(tidemark.Event{Trace: parent}.TraceContext(context.Background()))
	if span.IsValid() {
		return span.TraceID().String()
	}
	return parent
}

// age is how long ago the watch last answered, or this process began.
func (w *watched) age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.IsZero() {
		return time.Since(w.born)
	}
	return time.Since(w.at)
}

// well: the watch has answered lately, and nothing stops work.
func (w *watched) well() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.at) < fresh && w.bad == 0
}
