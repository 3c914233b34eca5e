package consumer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// HandleFunc makes a Handler of a function that takes the payload as a T, decoded as by Event.Decode. A payload that is no T
// becomes a dead letter at once.
//
//	client.Handle("shop/order.paid", consumer.HandleFunc(func(ctx context.Context, tx pgx.Tx, e tidemark.Event, o Order) error { … }))
func HandleFunc[T any](f func(ctx context.Context, tx pgx.Tx, e tidemark.Event, payload T) error) Handler {
	return func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
		var payload T
		if err := e.Decode(&payload); err != nil {
			return Permanent(fmt.Errorf("the payload is no %T: %w", payload, err))
		}
		return f(ctx, tx, e, payload)
	}
}

// A Middleware returns a Handler that does something around next, such as [Log], [Trace] and [Observe].
type Middleware func(next Handler) Handler

// Use puts middleware around every handler of events, the first outermost. A handler that panics returns an error to it.
//
// Use panics while the client runs.
func (c *Client) Use(middleware ...Middleware) {
	c.register("Use", slices.ContainsFunc(middleware, func(m Middleware) bool { return m == nil }), func() bool { return false },
		func() { c.around = append(c.around, middleware...) })
}

// A Call is what a Handler is called for, besides the event.
type Call struct {
	Route   string // code of the route
	Attempt int    // its number on record: 1 if nothing was recorded before, such as that the event waited or the route was off
	Replay  bool   // an operator sends an earlier event again
}

type callKey struct{}

// CallOf returns the call of a Handler's context.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

// calls are the handlers by pattern, with the middleware around them.
type calls struct{ handlers map[string]Handler }

func (c calls) handlerOf(route store.Route) (Handler, error) {
	if h := c.handlers[route.TargetRef]; h != nil {
		return h, nil
	}
	return nil, errors.New("this program has no handler for " + route.TargetRef)
}

// surrounded is h with the middleware around it.
func surrounded(h Handler, around []Middleware) Handler {
	inner := h
	h = func(ctx context.Context, tx pgx.Tx, e tidemark.Event) (err error) {
		defer caught(&err)
		return inner(ctx, tx, e)
	}
	for _, m := range slices.Backward(around) {
		h = m(h)
	}
	return h
}

// errDropped is the error of an event that the route's transform drops.
var errDropped = errors.New("the route's transform drops the event")

// A transformError is the error of a transform: the handler was not called.
type transformError struct{ error }

func (e transformError) Unwrap() error { return e.error }

// transformed is the event as the route's handler gets it, or errDropped.
func transformed(ctx context.Context, tx pgx.Tx, route store.Route, e tidemark.Event) (tidemark.Event, error) {
	if !route.Transforms() {
		return e, nil
	}
	payloads, err := store.Transform(ctx, tx, route, e.Payload)
	switch {
	case err != nil:
		return e, transformError{err}
	case payloads[0] == nil:
		return e, errDropped
	}
	e.Payload = payloads[0]
	return e, nil
}

// reasonOf is the reason of an attempt that ended with the error.
func reasonOf(err error) string {
	if errors.As(err, &transformError{}) {
		return deliver.ReasonTransformFailed
	}
	return reasonHandler
}

// called calls a handler in tx. A nil error: what it wrote can be committed.
func called(ctx context.Context, tx pgx.Tx, h Handler, call Call, e tidemark.Event) error {
	return guarded(tx, func(tx pgx.Tx) error {
		return h(context.WithValue(e.TraceContext(ctx), callKey{}, call), tx, e)
	})
}

// caught, deferred, makes an error of a panic, with the place where it began.
func caught(err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("panic: %v%s", p, place())
}

// place is where the panic began that a deferred function has caught: the first function above the runtime's own.
func place() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for panicked := false; ; {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, "runtime."):
			panicked = true
		case panicked:
			return fmt.Sprintf(" (%s, %s:%d)", filepath.Base(frame.Function), filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
