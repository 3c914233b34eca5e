package daemon_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A collector receives traces by OTLP over HTTP.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
	about map[string]string // of the resource
}

func collect(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{about: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var export collector.ExportTraceServiceRequest
		if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, &export) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range export.GetResourceSpans() {
			for _, a := range r.GetResource().GetAttributes() {
				c.about[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, s := range r.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func attributes(s *otlp.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.GetAttributes() {
		all[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return all
}

// The decision and the delivery are spans below the one that emitted the event, which the target gets too. Events without a trace have no span.
func TestTraces(t *testing.T) { //nolint:paralleltest // sets variables of the process
	c := collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	p := run(t, settings(db))

	emitting := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled})
	id, err := tidemark.Emit(trace.ContextWithSpanContext(t.Context(), emitting), db.Pool, tidemark.Event{Domain: "test", Type: "tick"})
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
	eventually(t, "both deliveries", func() bool { return r.count() == 2 })
	p.stop() // sends the rest

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 2 {
		t.Fatalf("%d spans, want those of the event with a trace: %v", len(c.spans), c.spans)
	}
	traceID, parent := emitting.TraceID(), emitting.SpanID()
	decision, delivery := c.spans[0], c.spans[1]
	for _, span := range c.spans {
		if string(span.GetTraceId()) != string(traceID[:]) || string(span.GetParentSpanId()) != string(parent[:]) {
			t.Errorf("the span %v is not below the emitting one, %s", span, emitting.TraceID())
		}
		if of := attributes(span); of["messaging.message.id"] != id || of["tidemark.type"] != "tick" {
			t.Errorf("span %s %v", span.GetName(), of)
		}
	}
	if of := attributes(decision); decision.GetName() != "decide default" || of["messaging.destination.name"] != "default" {
		t.Errorf("span %s %v", decision.GetName(), of)
	}
	if decision.GetEndTimeUnixNano() > delivery.GetStartTimeUnixNano() {
		t.Error("the event was delivered before it was decided")
	}
	if of := attributes(delivery); delivery.GetName() != "send app" || of["tidemark.outcome"] != "delivered" || of["messaging.destination.name"] != "app" {
		t.Errorf("span %s %v", delivery.GetName(), of)
	}
	if c.about["service.name"] != "tidemark" || c.about["deployment.environment"] != "test" {
		t.Errorf("the resource is %v", c.about)
	}
	if got := r.got[0].Get("Traceparent") + r.got[1].Get("Traceparent"); !strings.HasPrefix(got, "00-"+traceID.String()+"-") {
		t.Errorf("the targets got the traceparent %q", got)
	}
}
