package trial_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tidemarkhq/tidemark/internal/trial"
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
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	now := time.Now()
	if h := signed(t, secret, now); !trial.Verified(key, h, []byte(body), now) {
		t.Error("a good signature is refused")
	}
	for name, change := range map[string]func(http.Header){
		"another id":   func(h http.Header) { h.Set("webhook-id", "f") },
		"another time": func(h http.Header) { h.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)) },
		"no time":      func(h http.Header) { h.Del("webhook-timestamp") },
		"no signature": func(h http.Header) { h.Del("webhook-signature") },
	} {
		h := signed(t, secret, now)
		change(h)
		if trial.Verified(key, h, []byte(body), now) {
			t.Errorf("%s: taken", name)
		}
	}
	if trial.Verified(key, signed(t, secret, now), []byte(`{}`), now) {
		t.Error("another body: taken")
	}
	if trial.Verified(key, signed(t, secret, now.Add(-time.Hour)), []byte(body), now) {
		t.Error("an old one: taken")
	}
}

// Each answer of a receiver, and what it counts.
func TestReceive(t *testing.T) {
	t.Parallel()
	key := []byte("01234567890123456789012345678901")
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	var next trial.Answer
	var came atomic.Int64
	r, err := trial.Receive(t.Context(), key, func(q trial.Request) trial.Answer {
		came.Add(1)
		if q.Path != "/x" || string(q.Body) != body || q.At.IsZero() {
			t.Errorf("got %+v", q)
		}
		return next
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	good := func() http.Header { return signed(t, secret, time.Now()) }
	for _, c := range []struct {
		answer               trial.Answer
		headers              http.Header
		status               int
		came, forged, silent int64
	}{
		{trial.Answer{}, good(), 204, 1, 0, 0},
		{trial.Answer{}, http.Header{}, 401, 1, 1, 0},
		{trial.Answer{Status: 503, Text: "not now", RetryAfter: "1"}, good(), 503, 2, 1, 0},
		{trial.Answer{Break: true}, good(), 0, 3, 1, 1},
		{trial.Answer{Hang: true}, good(), 0, 4, 1, 2},
	} {
		next = c.answer
		client := &http.Client{Timeout: 30 * time.Second}
		if c.answer.Hang {
			client.Timeout = 100 * time.Millisecond
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/x", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header, request.Close = c.headers, true
		status := 0
		if answer, err := client.Do(request); err == nil {
			status = answer.StatusCode
			if answer.Header.Get("Retry-After") != c.answer.RetryAfter {
				t.Errorf("%+v: %v", c.answer, answer.Header)
			}
			answer.Body.Close()
		}
		if status != c.status || came.Load() != c.came || r.Forged.Load() != c.forged || r.Silent.Load() != c.silent {
			t.Errorf("%+v: status %d, %d came, %d forged, %d silent", c.answer, status, came.Load(), r.Forged.Load(), r.Silent.Load())
		}
	}
}
