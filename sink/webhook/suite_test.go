package webhook_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// hook is a server whose behaviour the suite sets.
type hook struct {
	mu      sync.Mutex
	arrived []tidemarktest.Arrival
	all     tidemarktest.Behaviour
	some    map[string]tidemarktest.Behaviour
	changed chan struct{}
	format  sink.Format
}

func (h *hook) behave(how tidemarktest.Behaviour, ids ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.some = map[string]tidemarktest.Behaviour{}
	if len(ids) == 0 {
		h.all = how
	}
	for _, id := range ids {
		h.some[id] = how
	}
	close(h.changed)
	h.changed = make(chan struct{})
	return true
}

func (h *hook) took() []tidemarktest.Arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.arrived)
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not arrive
	}
	a := h.read(r, body)
	h.mu.Lock()
	how, ok := h.some[a.ID]
	if !ok {
		how = h.all
	}
	if how == tidemarktest.TargetTakes || how == tidemarktest.TargetLosesAnswers {
		h.arrived = append(h.arrived, a)
	}
	changed := h.changed
	h.mu.Unlock()
	switch how {
	case tidemarktest.TargetRefuses:
		http.Error(w, string(body), http.StatusServiceUnavailable)
	case tidemarktest.TargetRefusesForGood:
		http.Error(w, string(body), http.StatusUnprocessableEntity)
	case tidemarktest.TargetIsGone:
		w.WriteHeader(http.StatusGone)
	case tidemarktest.TargetLosesAnswers:
		panic(http.ErrAbortHandler)
	case tidemarktest.TargetHangs:
		select {
		case <-changed:
		case <-r.Context().Done():
		}
	}
}

func (h *hook) read(r *http.Request, body []byte) tidemarktest.Arrival {
	a := tidemarktest.Arrival{ID: r.Header.Get("Webhook-Id"), Trace: r.Header.Get("Traceparent"), Payload: body}
	switch h.format {
	case sink.CloudEventsBinary:
		a.Key, _ = url.PathUnescape(r.Header.Get("Ce-Partitionkey"))
	case sink.JSON:
		var e struct {
			Key     string          `json:"key"`
			Payload json.RawMessage `json:"payload"`
		}
		_ = json.Unmarshal(body, &e)
		a.Key, a.Payload = e.Key, e.Payload
	default:
		var e struct {
			Key  string          `json:"partitionkey"`
			Data json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(body, &e)
		a.Key, a.Payload = e.Key, e.Data
	}
	return a
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name   string
		format sink.Format
		start  func(s *httptest.Server)
	}{
		{"cloudevents", sink.CloudEvents, (*httptest.Server).Start},
		{"binary", sink.CloudEventsBinary, (*httptest.Server).Start},
		{"json", sink.JSON, (*httptest.Server).Start},
		{"TLS", sink.JSON, (*httptest.Server).StartTLS},
		{"HTTP2", sink.CloudEventsBinary, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			tidemarktest.TestSink(t, func(t *testing.T) tidemarktest.SinkTarget {
				h := &hook{all: tidemarktest.TargetTakes, changed: make(chan struct{}), format: kind.format}
				s := httptest.NewUnstartedServer(h)
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				kind.start(s)
				t.Cleanup(s.Close)
				o := webhook.Options{URL: s.URL, Secrets: []string{secret}, Format: kind.format, Allow: loopback}
				if s.TLS != nil {
					o.CAFile = authority(t, s)
				}
				return tidemarktest.SinkTarget{
					Open:    func() (sink.Sink, error) { return webhook.New(o) },
					Arrived: h.took,
					Behave:  h.behave,
				}
			})
		})
	}
}

// authority writes the certificate of a test server to a file for the sink.
func authority(t testing.TB, s *httptest.Server) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, pemOf("CERTIFICATE", s.Certificate().Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
