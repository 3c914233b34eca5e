package tidemark

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const traceparent = "traceparent"

// traceOf returns the span of ctx as a W3C traceparent, or "" if ctx has none.
func traceOf(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return "" // nearly always; and nothing is allocated
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// TraceContext returns ctx with the event's Trace as the remote parent of the spans that begin in it. If Trace is empty, or no
// traceparent, it returns ctx. A Handler's context has it already.
func (e Event) TraceContext(ctx context.Context) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: e.Trace})
}

// traced returns the events with the span of ctx as the Trace of those that have none.
func traced(ctx context.Context, events []Event) []Event {
	span := traceOf(ctx)
	if span == "" {
		return events
	}
	with := make([]Event, len(events))
	for i, e := range events {
		if e.Trace == "" {
			e.Trace = span
		}
		with[i] = e
	}
	return with
}
