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

func TestReceiver(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if status := post(t, r, signed(t, r.secret(), time.Now())); status != http.StatusNoContent || r.keyed.events() != 1 {
		t.Errorf("status %d, %d events", status, r.keyed.events())
	}
	if status := post(t, r, http.Header{}); status != http.StatusUnauthorized || r.keyed.events() != 1 || r.Forged.Load() != 1 {
		t.Errorf("status %d, %d events, %d forged", status, r.keyed.events(), r.Forged.Load())
	}
	r.faulty.Store(true)
	answers := map[int]int{}
	for range everyFault {
		answers[post(t, r, signed(t, r.secret(), time.Now()))]++
	}
	if answers[http.StatusServiceUnavailable] != 1 || answers[0] != 1 || r.Silent.Load() != 1 {
		t.Errorf("answers %v, %d silent", answers, r.Silent.Load())
	}
	if n := len(r.keyed.arrivals.All()); n != everyFault {
		t.Errorf("%d arrivals, want %d", n, everyFault)
	}
}

func setup(t *testing.T) *receiver {
	t.Helper()
	r, err := newReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// post returns the status. 0: there was no answer.
func post(t *testing.T, r *receiver, h http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+keyedPath, bytes.NewReader([]byte(body)))
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
