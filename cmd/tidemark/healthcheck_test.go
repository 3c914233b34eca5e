package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tidemarkhq/tidemark/internal/admin"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
)

// adminServer is the command adminserver of scripts. Each argument is a check of /readyz:
// a name, or NAME=ERROR for one that fails. The server's HOST:PORT is in ADMIN.
func adminServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: adminserver [check...]")
	}
	s, err := admin.New(context.Background(), admin.Options{Listen: "127.0.0.1:0"})
	ts.Check(err)
	for _, arg := range args {
		name, failure, fails := strings.Cut(arg, "=")
		s.Ready(admin.Check{Name: name, Run: func(context.Context) error {
			if fails {
				return errors.New(failure)
			}
			return nil
		}})
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	ts.Defer(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-served); err != nil {
			ts.Logf("admin server: %v", err)
		}
	})
	ts.Setenv("ADMIN", s.Addr().String())
}

func TestAdminURL(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"":                    "",
		":9321":               "http://127.0.0.1:9321",
		"0.0.0.0:1":           "http://127.0.0.1:1",
		"[::]:1":              "http://[::1]:1",
		"[::1]:1":             "http://[::1]:1",
		"10.1.2.3:1":          "http://10.1.2.3:1",
		"web.example.com:443": "http://web.example.com:443",
	} {
		if got := adminURL(config.Admin{Listen: listen}); got != want {
			t.Errorf("%q gives %q", listen, got)
		}
	}
}

// A redirect must not report another server's health, and an endless answer must not keep the prober.
func TestAskTakesTheAnswerAsItIs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write(make([]byte, 100<<10))
	}))
	defer server.Close()
	var out strings.Builder
	p := &cli.Printer{Out: &out}
	err := healthcheck(t.Context(), p, server.URL, false)
	if err == nil || err.Error() != "not ready: 302 Found" || out.Len() > 70<<10*len("·") {
		t.Error(err, out.Len())
	}
}

func TestHealthcheckGivesUp(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes as long as a healthcheck may")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	start := time.Now()
	err = healthcheck(t.Context(), &cli.Printer{Out: &strings.Builder{}}, "http://"+listener.Addr().String(), true)
	if err == nil || !strings.HasSuffix(err.Error(), "/livez: context deadline exceeded") || time.Since(start) < healthTimeout {
		t.Error(err, time.Since(start))
	}
}

func TestHealthcheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := listener.Accept(); err == nil {
			cancel()
			conn.Close()
		}
	}()
	if err := healthcheck(ctx, &cli.Printer{Out: &strings.Builder{}}, "http://"+listener.Addr().String(), false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
