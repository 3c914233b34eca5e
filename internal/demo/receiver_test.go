package demo

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const body = `{"id": "e", "data": {"unit_id": "unit-1", "version_id": "1"}}`

// signed are the headers as Standard Webhooks' own library makes them.
func signed(t *testing.T, secret string, at time.Time) http.Header {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := library.Sign("e", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("webhook-id", "e")
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("webhook-signature", "v1,bm90IHRoaXMgb25l "+signature)
	return h
}

func TestVerified(t *testing.T) {
	t.Parallel()
	r := setup(t)
	now := time.Now()
	if h := signed(t, r.secret(), now); !verified(r.key, h, []byte(body), now) {
		t.Error("a good signature is refused")
	}
	for name, change := range map[string]func(http.Header){
		"another id":   func(h http.Header) { h.Set("webhook-id", "f") },
		"another time": func(h http.Header) { h.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)) },
		"no time":      func(h http.Header) { h.Del("webhook-timestamp") },
		"no signature": func(h http.Header) { h.Del("webhook-signature") },
	} {
		h := signed(t, r.secret(), now)
		change(h)
		if verified(r.key, h, []byte(body), now) {
			t.Errorf("%s: taken", name)
		}
	}
	if verified(r.key, signed(t, r.secret(), now), []byte(`{}`), now) {
		t.Error("another body: taken")
	}
	if verified(r.key, signed(t, r.secret(), now.Add(-time.Hour)), []byte(body), now) {
		t.Error("an old one: taken")
	}
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if status := post(t, r, signed(t, r.secret(), time.Now())); status != http.StatusNoContent || r.keyed.events() != 1 {
		t.Errorf("status %d, %d events", status, r.keyed.events())
	}
	if status := post(t, r, http.Header{}); status != http.StatusUnauthorized || r.keyed.events() != 1 || r.forged.Load() != 1 {
		t.Errorf("status %d, %d events, %d forged", status, r.keyed.events(), r.forged.Load())
	}
	r.faulty.Store(true)
	answers := map[int]int{}
	for range everyFault {
		answers[post(t, r, signed(t, r.secret(), time.Now()))]++
	}
	if answers[http.StatusServiceUnavailable] != 1 || answers[0] != 1 || r.silent.Load() != 1 {
		t.Errorf("answers %v, %d silent", answers, r.silent.Load())
	}
	if n := len(r.keyed.arrivals); n != everyFault {
		t.Errorf("%d arrivals, want %d", n, everyFault)
	}
}

func setup(t *testing.T) *receiver {
	t.Helper()
	r, err := newReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() })
	return r
}

// post returns the status. 0: there was no answer.
func post(t *testing.T, r *receiver, h http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+keyedPath, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = h
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}
