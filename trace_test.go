package tidemark_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Each way to emit takes the trace of an event from its context, unless the event has one.
func TestEmitTakesTheTrace(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `select tidemark.type_set('shop', 'order')`); err != nil {
		t.Fatal(err)
	}
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	const spans = "00-01000000000000000000000000000000-0200000000000000-01"
	inSpan := trace.ContextWithSpanContext(t.Context(), span)
	order := tidemark.Event{Domain: "shop", Type: "order"}
	traced := order
	traced.Trace = own

	stored := func(id string) (trace string) {
		t.Helper()
		if err := db.Pool.QueryRow(t.Context(), `select coalesce(trace, '') from tidemark.outbox where event_id = $1`, id).Scan(&trace); err != nil {
			t.Fatal(err)
		}
		return trace
	}
	for ctx, want := range map[context.Context]string{t.Context(): "", inSpan: spans} {
		one, err := tidemark.Emit(ctx, db.Pool, order)
		if err != nil {
			t.Fatal(err)
		}
		many, err := tidemark.EmitMany(ctx, db.Pool, []tidemark.Event{order, traced})
		if err != nil {
			t.Fatal(err)
		}
		if a, b, c := stored(one), stored(many[0]), stored(many[1]); a != want || b != want || c != own {
			t.Errorf("the traces are %q, %q and %q, want twice %q and %q", a, b, c, want, own)
		}
	}
	if got := trace.SpanContextFromContext(traced.TraceContext(t.Context())); got.TraceID().String() != own[3:35] || !got.IsRemote() {
		t.Errorf("TraceContext gives %v", got)
	}
	if got := trace.SpanContextFromContext(order.TraceContext(t.Context())); got.IsValid() {
		t.Errorf("TraceContext of no trace gives %v", got)
	}
}
