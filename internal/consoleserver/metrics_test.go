package consoleserver

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Requests count by page and status, refused sign-ins too; only signed-in clients may see it.
func TestMetrics(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	sum := sha256.Sum256([]byte("t0ken"))
	at := serve(t, config.Console{
		URL: "http://localhost/tm", Tokens: map[string]config.ConsoleToken{"ci": {SHA256: config.NewSecret(hex.EncodeToString(sum[:])), Role: "admin"}},
	}, db.URL) + "/tm"
	const token = "Authorization: Bearer t0ken"
	get(t, at+"/", token)
	get(t, at+"/routes/nope", token)
	get(t, at+"/nowhere", token)
	get(t, at+"/api/v1/routes/nope", token)
	get(t, at+"/api/v1/routes", "Authorization: Bearer guess")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, at+"/api/v1/gates/routes.enabled", strings.NewReader(`{"open": true, "reason": "go"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t0ken")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k")
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()

	_, text := get(t, at+"/metrics", token)
	for _, want := range []string{
		`tidemark_console_requests_total{page="GET /",status="200"} 1`,
		`tidemark_console_requests_total{page="GET /routes/{route}",status="404"} 1`,
		`tidemark_console_requests_total{page="/",status="404"} 1`,
		`tidemark_console_requests_total{page="GET /api/v1/routes/{route}",status="404"} 1`,
		`tidemark_console_requests_total{page="PUT /api/v1/gates/{gate}",status="200"} 1`,
		`tidemark_console_seconds_count{page="GET /"} 1`,
		`tidemark_console_sign_ins_total{outcome="refused"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("without %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, headers := range [][]string{nil, {"Authorization: Bearer guess"}} {
		if _, text := get(t, at+"/metrics", headers...); strings.Contains(text, "tidemark_console") {
			t.Error("a stranger sees the metrics")
		}
	}
}
