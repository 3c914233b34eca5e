package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/console"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A test delivery reaches no address that deliveries may not reach: the host itself, the network behind it, the metadata of a cloud.
func TestTestDeliveriesStayOutside(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	reached := make(chan string, 100)
	go func() {
		for {
			conn, err := inside.Accept()
			if err != nil {
				return
			}
			reached <- conn.RemoteAddr().String()
			_ = conn.Close()
		}
	}()
	port := inside.Addr().(*net.TCPAddr).Port
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`select tidemark.type_set('shop', 'paid')`)
	exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	c := config.Default()
	c.Webhook.Ports = []int{443, port}
	pages, err := console.New(db.Pool, console.Options{
		Identify: func(*http.Request) (console.Person, bool) {
			return console.Person{Name: "oscar", Role: console.Operator}, true
		},
		Probe: probes(func() config.Config { return c }, io.Discard),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	defer server.Close()
	for i, target := range []string{
		fmt.Sprintf("https://127.0.0.1:%d/", port), fmt.Sprintf("https://localhost:%d/", port), fmt.Sprintf("https://[::ffff:127.0.0.1]:%d/", port), fmt.Sprintf("https://2130706433:%d/", port),
		fmt.Sprintf("https://0.0.0.0:%d/", port), fmt.Sprintf("http://127.0.0.1:%d/", port), "https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/", "https://10.0.0.1/",
		"file:///etc/passwd", "gopher://127.0.0.1/",
	} {
		code := fmt.Sprintf("r%d", i)
		if _, err := db.Pool.Exec(t.Context(), `select tidemark.route_set($1, jsonb_build_object('domain', 'shop', 'type', 'paid', 'target_kind', 'webhook', 'target_ref', $2::text, 'options', '{"unsigned": true}'::jsonb))`, code, target); err != nil {
			continue // such a route cannot be made
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/v1/routes/"+code+"/test", strings.NewReader(`{"reason": "test"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		var told struct {
			Outcome, Detail string
			Code            string `json:"error_code"`
		}
		_ = json.Unmarshal(text, &told)
		refused := string(text)
		if told.Outcome == "accepted" || !strings.Contains(refused, "not public") && !strings.Contains(refused, "for networks in allow only") && !strings.Contains(refused, "no such host") {
			t.Errorf("%s: %d %s", target, answer.StatusCode, refused)
		}
	}
	select {
	case from := <-reached:
		t.Errorf("a test delivery has come in from %s", from)
	default:
	}
}
