// Package testserver has the PostgreSQL servers that tests run on: one that the tests of a process share, and private ones.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
)

// URLVariable is the environment variable with the URL of a server for tests.
const URLVariable = "TIDEMARK_TEST_URL"

const settingsVariable = "TIDEMARK_TEST_SETTINGS"

// Shared returns the private server that the tests of this process share. A test
// that stops or configures its server calls New instead.
func Shared(t testing.TB) *devpg.Server {
	t.Helper()
	if os.Getenv(URLVariable) != "" {
		t.Fatalf("this test needs control of its server: unset %s", URLVariable)
	}
	s, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// FreePort is devpg.FreePort for a test.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := devpg.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// New starts a private server for one test, which may kill it.
func New(t testing.TB, o devpg.Options) *devpg.Server {
	t.Helper()
	s, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start adds the settings of the environment to those of a test. The test's own take precedence. A machine without PostgreSQL gets one.
func start(ctx context.Context, o devpg.Options) (*devpg.Server, error) {
	settings := map[string]string{}
	for pair := range strings.SplitSeq(os.Getenv(settingsVariable), ";") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%s: %q is not name=value", settingsVariable, pair)
		}
		settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	maps.Copy(settings, o.Settings)
	o.Settings, o.Fetch = settings, download.Postgres
	return devpg.Start(ctx, o)
}

// startTimeout bounds the start of the shared server.
const startTimeout = 10 * time.Minute

// shared is the private server of this process.
var shared sharedServer

type sharedServer struct {
	once   sync.Once
	server *devpg.Server
	err    error
}

func (s *sharedServer) start() (*devpg.Server, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.server, s.err = start(ctx, devpg.Options{})
	})
	return s.server, s.err
}

func (s *sharedServer) stop() error {
	s.once.Do(func() { s.err = errors.New("the tests are over") })
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}

// Stop stops the shared server.
func Stop() error { return shared.stop() }

// URL returns the address of a database on the server of TIDEMARK_TEST_URL, or without that on the shared one.
func URL(t testing.TB) string {
	t.Helper()
	if external := os.Getenv(URLVariable); external != "" {
		return external
	}
	return Shared(t).URL("postgres")
}
