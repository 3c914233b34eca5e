package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

const (
	current = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
	former  = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xk"
	other   = "whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIh"
)

// running is a receiver that records the events it handles.
type running struct {
	*receiver
	url     string
	handled []string
	fails   error
}

func start(t *testing.T, secrets ...string) *running {
	t.Helper()
	x := &running{}
	var err error
	x.receiver, err = newReceiver(secrets, func(id string, event json.RawMessage) error {
		if x.fails == nil {
			x.handled = append(x.handled, id+" "+string(event))
		}
		return x.fails
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	x.url = server.URL
	return x
}

func (x *running) want(t *testing.T, handled ...string) {
	t.Helper()
	if diff := cmp.Diff(handled, x.handled); diff != "" {
		t.Error(diff)
	}
}

// send sends an event as Tidemark does, and returns the outcome. One that is not delivered is kept, to be sent again.
func send(t *testing.T, url, id string, secrets ...string) string {
	t.Helper()
	s, err := webhook.New(webhook.Options{
		URL: url, Secrets: secrets, Format: sink.CloudEventsBinary, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	event := tidemark.Event{ID: id, Seq: 1, Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"id": 7}`)}
	r := s.Deliver(t.Context(), []sink.Delivery{{Event: event, Route: "shop", Attempt: 1}})[0]
	if r.Status == sink.Delivered {
		return ""
	}
	if r.Status != sink.Retry || r.Refused != (r.Code == "http_401") {
		t.Errorf("the event would be given up: %+v", r)
	}
	return fmt.Sprint(r.Code, " ", r.Detail)
}

func TestEachIsHandledOnce(t *testing.T) {
	t.Parallel()
	x := start(t, current)
	for _, id := range []string{"a", "b", "a", "a"} {
		if got := send(t, x.url, id, current); got != "" {
			t.Error(got)
		}
	}
	x.want(t, `a {"id": 7}`, `b {"id": 7}`)
}

func TestSecretsAreChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ known, used []string }{
		"both sides have both":      {[]string{current, former}, []string{current, former}},
		"the receiver is ahead":     {[]string{current, former}, []string{former}},
		"the receiver is behind":    {[]string{former}, []string{current, former}},
		"beside an asymmetric one":  {[]string{current}, []string{"whsk_" + strings.Repeat("A", 43) + "=", current}},
		"the receiver is ready too": {[]string{former, current}, []string{current}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := start(t, test.known...)
			if got := send(t, x.url, "a", test.used...); got != "" {
				t.Error(got)
			}
			x.want(t, `a {"id": 7}`)
		})
	}
	x := start(t, current, former)
	if got, want := send(t, x.url, "a", other), "http_401 401 Unauthorized: no webhook-signature matches a known secret"; got != want {
		t.Errorf("got %s", got)
	}
	x.want(t)
}

func TestOldAndNewAreRefused(t *testing.T) {
	t.Parallel()
	for shift, want := range map[time.Duration]string{
		4 * time.Minute:  "",
		-4 * time.Minute: "",
		6 * time.Minute:  "http_401 401 Unauthorized: webhook-timestamp is too old or too new",
		-6 * time.Minute: "http_401 401 Unauthorized: webhook-timestamp is too old or too new",
	} {
		x := start(t, current)
		x.now = func() time.Time { return time.Now().Add(shift) }
		if got := send(t, x.url, "a", current); got != want {
			t.Errorf("%v: got %s", shift, got)
		}
	}
}

// An event whose handling failed is handled when it is sent again.
func TestFailures(t *testing.T) {
	t.Parallel()
	log.SetOutput(io.Discard)
	x := start(t, current)
	x.fails = errors.New("no database")
	if got, want := send(t, x.url, "a", current), "http_500 500 Internal Server Error: try again"; got != want {
		t.Errorf("got %s", got)
	}
	x.fails = nil
	if got := send(t, x.url, "a", current); got != "" {
		t.Error(got)
	}
	x.want(t, `a {"id": 7}`)
}

// No part of a signed request can be changed.
func TestForgeries(t *testing.T) {
	t.Parallel()
	var header http.Header
	var body []byte
	recorder := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	defer recorder.Close()
	send(t, recorder.URL, "a", current)

	x := start(t, current)
	for name, forge := range map[string]func(r *http.Request){
		"another body":       func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"id": 8}`)) },
		"another id":         func(r *http.Request) { r.Header.Set("webhook-id", "b") },
		"another time":       func(r *http.Request) { r.Header.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()+1)) },
		"no id":              func(r *http.Request) { r.Header.Del("webhook-id") },
		"no time":            func(r *http.Request) { r.Header.Del("webhook-timestamp") },
		"no signature":       func(r *http.Request) { r.Header.Del("webhook-signature") },
		"an empty signature": func(r *http.Request) { r.Header.Set("webhook-signature", "v1,") },
		"another version": func(r *http.Request) {
			r.Header.Set("webhook-signature", strings.Replace(r.Header.Get("webhook-signature"), "v1,", "v2,", 1))
		},
		"no version": func(r *http.Request) {
			r.Header.Set("webhook-signature", strings.TrimPrefix(r.Header.Get("webhook-signature"), "v1,"))
		},
		"another method": func(r *http.Request) { r.Method = http.MethodPut },
		"too large":      func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", maxBody+1))) },
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.Header = header.Clone()
		forge(r)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		want := map[string]int{"another method": http.StatusMethodNotAllowed, "too large": http.StatusRequestEntityTooLarge}[name]
		if want == 0 {
			want = http.StatusUnauthorized
		}
		if w.Code != want {
			t.Errorf("%s: %d, want %d", name, w.Code, want)
		}
	}
	x.want(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	if x.want(t, `a {"id": 7}`); w.Code != http.StatusNoContent {
		t.Errorf("unchanged: %d", w.Code)
	}
}

func TestSeenIsBounded(t *testing.T) {
	t.Parallel()
	x := start(t, current)
	for i := range maxSeen + 10 {
		if err := x.once(fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(x.seen) != maxSeen || len(x.order) != maxSeen || x.seen["9"] || !x.seen["10"] {
		t.Errorf("%d and %d are known", len(x.seen), len(x.order))
	}
}

func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{{}, {""}, {"whsec_"}, {current, "whsec_c2hvcnQ="}, {"whsec_!"}, {strings.TrimPrefix(current, "whsec_")}} {
		if _, err := newReceiver(secrets, nil); err == nil {
			t.Errorf("%q are taken", secrets)
		}
	}
}
