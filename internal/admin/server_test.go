package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup makes a server that answers until the test ends.
func setup(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return s
}

type change func(*http.Request)

func get(t *testing.T, s *Server, path string, changes ...change) (status int, header http.Header, body string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.Addr().String())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", port)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		c(r)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func TestIndexListsThePages(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Options{Listen: "127.0.0.1:0", Pprof: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	s.Handle("GET /more/{name}", http.NotFoundHandler())
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if w.Body.String() != "/livez\n/readyz\n/metrics\n/debug/pprof/\n/more/{name}\n" {
		t.Error(w.Body)
	}
}

func TestOtherPagesAndMethods(t *testing.T) {
	t.Parallel()
	s := setup(t, Options{})
	if status, header, _ := get(t, s, "/nothing"); status != http.StatusNotFound || header.Get("Cache-Control") != "no-store" {
		t.Error(status, header)
	}
	if status, _, _ := get(t, s, "/readyz", func(r *http.Request) { r.Method = http.MethodPost }); status != http.StatusMethodNotAllowed {
		t.Error(status)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	ours := prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_things_total", Help: "Things."})
	// The daemon may have registered these already.
	registry.MustRegister(ours, collectors.NewGoCollector())
	ours.Add(3)
	_, _, body := get(t, setup(t, Options{Registry: registry, Version: "v1.2.3"}), "/metrics")
	for _, want := range []string{"\ntidemark_things_total 3\n", "\ngo_goroutines ", "\nprocess_start_time_seconds ", `version="v1.2.3"} 1`, "\npromhttp_metric_handler_errors_total"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	on, off := setup(t, Options{Pprof: true}), setup(t, Options{})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=1", "/debug/pprof/symbol", "/debug/pprof/trace?seconds=0.001"} {
		if status, _, body := get(t, on, path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		// Importing net/http/pprof also adds these pages to the default mux.
		if status, _, _ := get(t, off, path); status != http.StatusNotFound {
			t.Errorf("%s is served without Pprof", path)
		}
		for client, want := range map[string]int{"192.0.2.1:5": http.StatusForbidden, "[2001:db8::1]:5": http.StatusForbidden, "[::1]:5": http.StatusOK, "[::ffff:127.0.0.1]:5": http.StatusOK, "@": http.StatusForbidden} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Host, r.RemoteAddr = "127.0.0.1", client
			on.http.Handler.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s for %s: %d", path, client, w.Code)
			}
		}
	}
}

// A browser on this host that a stranger's name leads here, and a proxy on this host, ask for others. Nor does a server that hosts can
// reach by any name show them profiles.
func TestProfilesAreNotPassedOn(t *testing.T) {
	t.Parallel()
	s := setup(t, Options{Pprof: true, Listen: "0.0.0.0:0"})
	for name, change := range map[string]func(*http.Request){
		"rebound": func(r *http.Request) { r.Host = "evil.example" },
		"named":   func(r *http.Request) { r.Host = "tidemark.example:9321" },
		"nginx":   func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") },
		"rfc7239": func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.1") },
		"via":     func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
		"empty":   func(r *http.Request) { r.Header.Set("X-Forwarded-For", "") },
	} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline"} {
			if status, _, _ := get(t, s, path, change); status != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, path, status)
			}
		}
		if status, _, _ := get(t, s, "/metrics", change); status != http.StatusOK {
			t.Errorf("%s, metrics: %d", name, status)
		}
	}
	if status, _, _ := get(t, s, "/debug/pprof/", func(r *http.Request) { r.Host = "localhost:9321" }); status != http.StatusOK {
		t.Errorf("localhost: %d", status)
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	inside, outside := setup(t, Options{}), setup(t, Options{Listen: "0.0.0.0:0"})
	if !inside.Loopback() || outside.Loopback() {
		t.Error(inside.Loopback(), outside.Loopback())
	}
	for host, want := range map[string]int{
		"localhost": http.StatusOK, "LocalHost:9321": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:9321": http.StatusOK, "[::1]": http.StatusOK, "10.0.0.1:80": http.StatusOK,
		"evil.example": http.StatusForbidden, "evil.example:9321": http.StatusForbidden, "localhost.evil.example": http.StatusForbidden, "127.0.0.1.nip.example": http.StatusForbidden,
	} {
		named := func(r *http.Request) { r.Host = host }
		for _, path := range []string{"/", "/livez", "/metrics", "/nothing"} {
			if status, _, _ := get(t, inside, path, named); (status == http.StatusForbidden) != (want == http.StatusForbidden) {
				t.Errorf("%s of %s: %d", path, host, status)
			}
		}
		if status, _, _ := get(t, outside, "/livez", named); status != http.StatusOK {
			t.Errorf("%s off loopback: %d", host, status)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/livez", http.NoBody)
	r.Host = ""
	inside.http.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("no host: %d", w.Code)
	}
}

func TestBadAddress(t *testing.T) {
	t.Parallel()
	taken := setup(t, Options{}).Addr().String()
	for _, address := range []string{taken, "127.0.0.1", "127.0.0.1:99999"} {
		if s, err := New(t.Context(), Options{Listen: address}); err == nil {
			s.listener.Close()
			t.Errorf("New accepts %s", address)
		}
	}
}

// slow makes a server with a page that answers once leave is closed.
func slow(t *testing.T) (s *Server, entered, leave chan struct{}) {
	t.Helper()
	s, err := New(t.Context(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	entered, leave = make(chan struct{}), make(chan struct{})
	s.Handle("GET /slow", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case <-leave:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}))
	return s, entered, leave
}

func ask(s *Server) chan string {
	answer := make(chan string, 1)
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + s.Addr().String() + "/slow")
		if err != nil {
			answer <- "cut off"
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answer <- string(text)
	}()
	return answer
}

func TestShutdownWaitsForRequests(t *testing.T) {
	t.Parallel()
	s, entered, leave := slow(t)
	served, stopped := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve() }()
	answer := ask(s)
	<-entered
	go func() { stopped <- s.Shutdown(context.Background()) }()
	if err := <-served; err != nil { // it no longer listens, and the request is still under way
		t.Error(err)
	}
	close(leave)
	if got := <-answer; got != "done" {
		t.Error(got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error("twice:", err)
	}
}

func TestShutdownCutsOff(t *testing.T) {
	t.Parallel()
	s, entered, _ := slow(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	answer := ask(s)
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := <-answer; got != "cut off" {
		t.Error(got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", s.Addr().String()); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
	if err := s.Serve(); err != nil {
		t.Error(err)
	}
}

// The server cuts off a client that stops reading, and the page that waits for it ends.
func TestSlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if s.http.WriteTimeout != writeTimeout {
		t.Errorf("answers may take %s", s.http.WriteTimeout)
	}
	s.http.WriteTimeout = 50 * time.Millisecond
	ended := make(chan struct{})
	s.Handle("GET /endless", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				close(ended)
				return
			}
		}
	}))
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the page still waits for a client that stopped reading")
	}
	_ = conn.Close()
	if err := errors.Join(s.Shutdown(context.Background()), <-served); err != nil {
		t.Error(err)
	}
}
