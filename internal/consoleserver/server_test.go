package consoleserver

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// serve runs a console by a configuration, and returns its address.
func serve(t *testing.T, c config.Console, database string) string {
	t.Helper()
	s := listening(t, c, database)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.listener.Addr().String()
}

// listening is a console that is to be run.
func listening(t *testing.T, c config.Console, database string) *Server {
	t.Helper()
	all := config.Default()
	all.Database.URL, all.Console = config.NewSecret(database), c
	all.Console.Listen = "127.0.0.1:0"
	s, err := New(t.Context(), all, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// The pages, their links and the API work below the path of console.url.
func TestUnderAPrefix(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	sum := sha256.Sum256([]byte("t0ken"))
	at := serve(t, config.Console{
		URL: "https://tidemark.example.com/ops/tm/", Tokens: map[string]config.ConsoleToken{"ci": {SHA256: config.NewSecret(hex.EncodeToString(sum[:])), Role: "viewer"}},
	}, db.URL)
	const token, host = "Authorization: Bearer t0ken", "Host: tidemark.example.com"
	status, text := get(t, at+"/ops/tm/", token, host)
	if status != 200 || !strings.Contains(text, `href="/ops/tm/routes"`) || strings.Contains(text, `href="/routes"`) || !strings.Contains(text, "ci, viewer") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, at+"/ops/tm/api/v1/me", token, host); status != 200 || !strings.Contains(text, `"role":"viewer"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, at+"/ops/tm/static/style.css", host); status != 200 || !strings.Contains(text, "color-scheme") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get(t, at+"/ops/tm/api/v1/me", host); status != 401 {
		t.Errorf("%d without a token", status)
	}
	if status, _ := get(t, at+"/ops/tm/", token, "Host: evil.example"); status != 403 {
		t.Errorf("%d for another host", status)
	}
}

// A console starts without its database, says so on its pages, and shows it once it is there.
func TestWithoutADatabase(t *testing.T) {
	t.Parallel()
	at := serve(t, config.Console{}, "postgres://nobody@127.0.0.1:1/none")
	status, text := get(t, at+"/")
	if status != 503 || !strings.Contains(text, "the database cannot be reached") || !strings.Contains(text, "</html>") {
		t.Errorf("%d %s", status, text)
	}
}

// Idle strangers take a bounded number of connections, so that the daemon beside the console keeps file descriptors.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	at := strings.TrimPrefix(serve(t, config.Console{}, "postgres://nobody@127.0.0.1:1/none"), "http://")
	answered := func(conn net.Conn) bool {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		fmt.Fprint(conn, "GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
		n, _ := conn.Read(make([]byte, 100))
		return n > 0
	}
	var conns []net.Conn
	for range clients + 1 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	if !answered(conns[0]) || answered(conns[clients]) {
		t.Error("one connection too many is answered, or none")
	}
}

// A stream of changes outlasts the limits of other answers, and does not hold up the end of the server, which ends it in order.
func TestStreamOfChanges(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := listening(t, config.Console{}, db.URL)
	s.http.ReadTimeout, s.http.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listener.Addr().String()+"/changes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	told := bufio.NewReader(answer.Body)
	for line := ""; line != "event: change\n"; {
		if line, err = told.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if line == "event: beat\n" {
			if _, err := db.Pool.Exec(t.Context(), `select tidemark.gate_set('routes.enabled', true, 'x')`); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	if _, err := io.ReadAll(told); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTakenAddress(t *testing.T) {
	t.Parallel()
	at := serve(t, config.Console{}, "postgres://nobody@127.0.0.1:1/none")
	c := config.Default()
	c.Database.URL, c.Console.Listen = config.NewSecret("postgres://nobody@127.0.0.1:1/none"), strings.TrimPrefix(at, "http://")
	if _, err := New(t.Context(), c, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "console.listen: "+c.Console.Listen+" is taken") {
		t.Error(err)
	}
}
