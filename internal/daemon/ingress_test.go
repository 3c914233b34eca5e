package daemon_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// The daemon takes commands over HTTP with the rights of one, tells its metrics, and takes up a new token without a restart.
func TestDaemonIngress(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.open()
	const first, second = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	s.config.Secrets = map[string][]config.Secret{"shop": {config.NewSecret(first)}}
	s.config.Commands.Ingress = config.Ingress{Listen: "127.0.0.1:0", Producers: map[string]config.IngressProducer{"shop": {Secret: "shop"}}}
	p := run(t, s.config)
	ask := func(token, key string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.IngressAddr()+"/v1/commands/"+s.name+"/make/v1", strings.NewReader(`{"id": 7}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer " + token}, "Idempotency-Key": {key}, "Content-Type": {"application/json"}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	for range 2 {
		if status, text := ask(first, "k"); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
	}
	if status, _ := ask(second, "k"); status != http.StatusUnauthorized {
		t.Error(status)
	}
	c := s.config
	c.Secrets = map[string][]config.Secret{"shop": {config.NewSecret(second)}}
	if restart, err := p.Reload(c); err != nil || len(restart) > 0 {
		t.Error(restart, err)
	}
	if status, _ := ask(first, "k2"); status != http.StatusUnauthorized {
		t.Error("an old token:", status)
	}
	if status, text := ask(second, "k"); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	_, metrics := get(t, "http://"+p.Addr()+"/metrics")
	for _, want := range []string{
		`tidemark_command_ingress_answers_total{code="200"} 3`, `tidemark_command_ingress_answers_total{code="401"} 2`,
		`tidemark_command_total{command="make",reason="",service="` + s.name + `",status="processed"} 1`, `tidemark_command_duplicates_total{kind="resent"} 2`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics has no %s", want)
		}
	}
	s.eventually("one effect", `select count(*)::text from app.effect where id = 7`, "1")
	http.DefaultClient.CloseIdleConnections()
	p.stop()
}
