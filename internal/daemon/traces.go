package daemon

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// traces sends a span for the decision, and one for each delivery, of an event that has a trace, as children of the span that
// emitted it. A nil *traces sends none.
type traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// newTraces returns nil unless OpenTelemetry's variables name a receiver of traces (OTLP over HTTP). They configure the rest
// too: headers, time-outs, sampling, the service's name (tidemark by default).
func newTraces(ctx context.Context, version string, log *slog.Logger) (*traces, error) {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" || exporter != "" && exporter != "otlp" {
		return nil, nil //nolint:nilnil // off
	}
	sender, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "tidemark"), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces cannot be sent", "error", err) }))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(sender), sdk.WithResource(about))
	return &traces{provider, provider.Tracer("github.com/tidemarkhq/tidemark")}, nil
}

// decided sends the spans of the read that decided these events, each for all routes. What only waited was decided before.
func (t *traces) decided(worker string, items []store.Item, began time.Time, took time.Duration) {
	for i := range items {
		item := &items[i]
		ctx := item.TraceContext(context.Background())
		if !item.Fresh || !trace.SpanContextFromContext(ctx).IsValid() {
			continue
		}
		_, span := t.tracer.Start(ctx, "decide "+worker, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(
				attribute.String("messaging.system", "tidemark"), attribute.String("messaging.operation.type", "receive"),
				attribute.String("messaging.operation.name", "decide"), attribute.String("messaging.destination.name", worker),
				attribute.String("messaging.message.id", item.ID), attribute.Int("messaging.batch.message_count", len(items)),
				attribute.String("tidemark.domain", item.Domain), attribute.String("tidemark.type", item.Type),
				attribute.Int64("tidemark.seq", item.Seq), attribute.Int("tidemark.routes", len(item.Routes)),
			))
		span.End(trace.WithTimestamp(began.Add(took)))
	}
}

// delivered sends the spans of a call of a sink.
func (t *traces) delivered(route string, sent []sink.Delivery, results []sink.Result, took time.Duration) {
	if t == nil {
		return
	}
	end := time.Now()
	for i, d := range sent {
		ctx := d.Event.TraceContext(context.Background())
		if !trace.SpanContextFromContext(ctx).IsValid() {
			continue
		}
		_, span := t.tracer.Start(ctx, "send "+route, trace.WithTimestamp(end.Add(-took)), trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(
				attribute.String("messaging.system", "tidemark"), attribute.String("messaging.operation.type", "send"),
				attribute.String("messaging.operation.name", "send"), attribute.String("messaging.destination.name", route),
				attribute.String("messaging.message.id", d.Event.ID), attribute.Int("messaging.batch.message_count", len(sent)),
				attribute.String("tidemark.domain", d.Event.Domain), attribute.String("tidemark.type", d.Event.Type),
				attribute.Int("tidemark.attempt", d.Attempt), attribute.Bool("tidemark.replay", d.Replay),
				attribute.String("tidemark.outcome", outcomes[results[i].Status]),
				attribute.Float64("tidemark.waited_seconds", end.Add(-took).Sub(d.Event.CreatedAt).Seconds()),
			))
		if results[i].Status != sink.Delivered {
			span.SetStatus(codes.Error, results[i].Code) // the detail may quote the payload
			span.SetAttributes(attribute.String("error.type", results[i].Code))
		}
		span.End(trace.WithTimestamp(end))
	}
}

// close sends what is still to be sent, for at most two seconds.
func (t *traces) close(ctx context.Context, log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.WarnContext(ctx, "the last traces are not sent", "error", err)
	}
}
