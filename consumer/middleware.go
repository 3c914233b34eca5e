package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemarkhq/tidemark"
)

// Observe calls f after each call of a handler, with the time that it took and its error: a hook for metrics. f must not block,
// and may be called from several goroutines at once.
//
// A nil error is not yet the commit: a handler whose transaction fails at the commit is called again.
func Observe(f func(ctx context.Context, call Call, e tidemark.Event, took time.Duration, err error)) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
			began := time.Now()
			err := next(ctx, tx, e)
			f(ctx, CallOf(ctx), e, time.Since(began), err)
			return err
		}
	}
}

// Log logs each call of a handler: a failure as a warning, the others at level debug. The payload is not logged; what the error
// says is.
func Log(to *slog.Logger) Middleware {
	return Observe(func(ctx context.Context, call Call, e tidemark.Event, took time.Duration, err error) {
		level, message := slog.LevelDebug, "handled"
		attributes := []slog.Attr{
			slog.String("route", call.Route), slog.String("event", e.ID), slog.String("type", e.Domain+"/"+e.Type),
			slog.Int("attempt", call.Attempt), slog.Duration("took", took),
		}
		if err != nil {
			level, message = slog.LevelWarn, "handler failed"
			attributes = append(attributes, slog.Any("error", err))
		}
		to.LogAttrs(ctx, level, message, attributes...)
	})
}

// Trace makes a span of each call of a handler, in the trace of the event.
func Trace(tracer trace.Tracer) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, tx pgx.Tx, e tidemark.Event) error {
			call := CallOf(ctx)
			ctx, span := tracer.Start(ctx, "handle "+e.Domain+"/"+e.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				attribute.String("messaging.system", "tidemark"), attribute.String("messaging.operation.type", "process"),
				attribute.String("messaging.message.id", e.ID), attribute.String("tidemark.route", call.Route),
				attribute.Int("tidemark.attempt", call.Attempt),
			))
			defer span.End()
			err := next(ctx, tx, e)
			if err != nil {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			return err
		}
	}
}
