package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// Each secret verifies the signature at its position, and only for the unchanged request.
func TestSignatures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type key struct {
			secret string
			public ed25519.PublicKey
		}
		keys := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) key {
			text := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
			if rapid.Bool().Draw(t, "symmetric") {
				return key{secret: "whsec_" + text(rapid.SliceOfN(rapid.Byte(), 24, 64).Draw(t, "secret"))}
			}
			private := ed25519.NewKeyFromSeed(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
			public := private.Public().(ed25519.PublicKey)
			if rapid.Bool().Draw(t, "seed only") {
				return key{"whsk_" + text(private.Seed()), public}
			}
			return key{"whsk_" + text(private), public}
		}), 1, 4).Draw(t, "keys")
		var secrets []string
		for _, k := range keys {
			secrets = append(secrets, k.secret)
		}
		id := rapid.StringMatching(`[0-9a-f-]{1,36}`).Draw(t, "id")
		stamp := strconv.FormatInt(rapid.Int64Range(0, 1<<40).Draw(t, "stamp"), 10)
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		value, err := webhook.Sign(secrets, id, stamp, body)
		if err != nil {
			t.Fatal(err)
		}
		signatures := strings.Split(value, " ")
		if len(signatures) != len(keys) {
			t.Fatalf("%d signatures for %d keys: %s", len(signatures), len(keys), value)
		}
		for i, k := range keys {
			if k.public != nil {
				signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signatures[i], "v1a,"))
				if err != nil || !ed25519.Verify(k.public, []byte(id+"."+stamp+"."+string(body)), signature) {
					t.Fatalf("signature %d: %s %v", i, signatures[i], err)
				}
				continue
			}
			reader, err := standardwebhooks.NewWebhook(k.secret)
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signatures[i]}}
			if err := reader.VerifyIgnoringTimestamp(body, h); err != nil {
				t.Fatalf("signature %d: %v", i, err)
			}
			if reader.VerifyIgnoringTimestamp(append(body, ' '), h) == nil {
				t.Fatal("another body verifies too")
			}
		}
	})
}

// The example in the specification.
func TestSignatureOfTheSpecification(t *testing.T) {
	t.Parallel()
	body := `{"test": 2432232314}`
	got, err := webhook.Sign([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(body))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want || err != nil {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
}

// During a change of secrets, a receiver with either secret verifies the request and its timestamp.
func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	problems := make(chan error, 2)
	address := server(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, known := range []string{secret, older} {
			reader, err := standardwebhooks.NewWebhook(known)
			if err == nil {
				err = reader.Verify(body, r.Header)
			}
			problems <- err
		}
	})
	deliver(t, open(t, webhook.Options{URL: address, Secrets: []string{secret, older}}), paid())
	for range 2 {
		if err := <-problems; err != nil {
			t.Error(err)
		}
	}
}

func TestUnsigned(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	address := server(t, func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header })
	deliver(t, open(t, webhook.Options{URL: address, Unsigned: true}), paid())
	h := <-headers
	if _, signed := h["Webhook-Signature"]; signed || h.Get("Webhook-Id") == "" || h.Get("Webhook-Timestamp") == "" {
		t.Errorf("got %v", h)
	}
}

// Concurrent requests share a signer, but not its memory.
func TestSignaturesOfManyAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	bad := 0
	address := server(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		want, err := webhook.Sign([]string{secret, older}, r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		if err != nil || want != r.Header.Get("Webhook-Signature") || !bytes.Contains(body, []byte(r.Header.Get("Webhook-Id"))) {
			mu.Lock()
			bad++
			mu.Unlock()
		}
	})
	s := open(t, webhook.Options{URL: address, Secrets: []string{secret, older}})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				d := paid()
				d.Event.ID = fmt.Sprint("id-", i, "-", j)
				deliver(t, s, d)
			}
		})
	}
	wg.Wait()
	if bad > 0 {
		t.Errorf("%d requests have a wrong signature", bad)
	}
}
