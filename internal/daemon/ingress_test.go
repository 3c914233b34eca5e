package daemon_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/admin"
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

// As many strangers as there are places, who keep their connections open, keep no producer out.
func TestStrangersKeepNoPlaceOfIngress(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.open()
	const token = "0123456789abcdef0123456789abcdef"
	s.config.Secrets = map[string][]config.Secret{"shop": {config.NewSecret(token)}}
	s.config.Commands.Ingress = config.Ingress{Listen: "127.0.0.1:0", Producers: map[string]config.IngressProducer{"shop": {Secret: "shop"}}}
	p := run(t, s.config)
	path := "/v1/commands/" + s.name + "/make/v1"
	for bad, want := range map[string]int{
		"POST " + path: http.StatusUnauthorized, "POST /nothing": http.StatusNotFound, "GET " + path: http.StatusMethodNotAllowed,
		"OPTIONS *": http.StatusBadRequest, "POST //x": http.StatusTemporaryRedirect, "GET /v1/../x": http.StatusTemporaryRedirect,
	} {
		for _, length := range []int{0, 100} { // of a body that does not come
			for n := range admin.MaxConns + 1 {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.IngressAddr())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", bad, length)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("connection %d, %s of %d bytes: %v", n, bad, length, err)
				}
				if answer.StatusCode != want {
					t.Errorf("%s of %d bytes: %s", bad, length, answer.Status)
				}
				answer.Body.Close()
			}
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.IngressAddr()+path, strings.NewReader(`{"id": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Authorization": {"Bearer " + token}, "Idempotency-Key": {"k"}, "Content-Type": {"application/json"}}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
	response.Body.Close()
	p.stop()
}
