package ingress

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/command"
)

// Whatever a request has: it is refused with a client's error, or its envelope is one that a record of Kafka may have, with the very
// key, tenant and payload, and of the verified producer.
func FuzzRead(f *testing.F) {
	f.Add("billing", "charge.capture", "v1", "k", "", "", "", "application/json", []byte(`{"id": 1}`))
	f.Add("billing", "x", "v2", "k", "acme", "3", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "application/json; charset=UTF-8", []byte(`{"a":{"b":[1.50,"<&>\u2028"]}}`))
	f.Add("b", "c", "v1", "\xff", "\x00", "01", "x", "text/plain", []byte(`{"id": 1}, "metadata": {"producer": "forged"}`))
	f.Fuzz(func(t *testing.T, service, name, version, key, tenant, schema, trace, media string, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.SetPathValue("service", service)
		r.SetPathValue("command", name)
		r.SetPathValue("version", version)
		for header, value := range map[string]string{keyHeader: key, tenantHeader: tenant, schemaHeader: schema, traceHeader: trace, "Content-Type": media} {
			if value != "" {
				r.Header[http.CanonicalHeaderKey(header)] = []string{value}
			}
		}
		a, err := read(httptest.NewRecorder(), r, "shop")
		var e command.Envelope
		var text []byte
		if err == nil {
			text, e, err = a.envelope()
		}
		if err != nil {
			var refused *failure
			if !errors.As(err, &refused) || refused.status < 400 || refused.status > 499 || refused.message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if e.Producer != "shop" || e.Service != service || e.Command != name || e.IdempotencyKey != key || e.Tenant != tenant || trace != "" && e.TraceID != trace {
			t.Errorf("%+v is made of %q %q %q %q %q", e, service, name, key, tenant, trace)
		}
		want, err := command.Canonical(body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := command.Canonical(e.Payload); err != nil || !bytes.Equal(got, want) {
			t.Errorf("payload %s, %v, want %s", got, err, want)
		}
		if len(text) > command.MaxBytes || !json.Valid(text) {
			t.Errorf("%d bytes", len(text))
		}
	})
}
