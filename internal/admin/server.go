// Package admin is the daemon's HTTP server for its operators: health for supervisors,
// metrics and profiles. It asks for no login, and its pages change nothing.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemarkhq/tidemark/internal/loopback"
)

// Options configure a [Server].
type Options struct {
	// Listen is the address, HOST:PORT. With port 0 the system chooses a port; see Addr.
	// Required.
	Listen string

	// Pprof serves /debug/pprof/, but only to clients on this host: a profile of the heap
	// holds secrets. Default: false.
	Pprof bool

	// Version of the program, for tidemark_build_info. Default: "unknown".
	Version string

	// Registry holds the metrics for /metrics. New adds those of the Go runtime and of the
	// process if they are missing. Default: a new registry.
	Registry *prometheus.Registry

	// Logger gets the errors of requests. Default: slog.Default().
	Logger *slog.Logger
}

// Server serves /livez, /readyz, /metrics and, with Options.Pprof, /debug/pprof/.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux
	http     *http.Server
	pages    []string
	stop     sync.Once

	live, ready checks
}

// listenError names the address and the setting. It does not wrap err: the command would take a network error for a lost
// connection to the database.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("admin.listen: %s is taken by another process, perhaps by another daemon: "+
			"set admin.listen to another address, to port 0 for a free one, or leave it empty for no server", address)
	}
	var reason *net.OpError
	if errors.As(err, &reason) {
		err = reason.Err
	}
	return fmt.Errorf("admin.listen: cannot listen at %s: %s", address, err.Error())
}

// writeTimeout is how long an answer may take, so that a client that stops reading does not keep its connection for ever.
const writeTimeout = 30 * time.Second

// New begins to listen. Serve answers the requests.
func New(ctx context.Context, o Options) (*Server, error) {
	registry := o.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	if err := addCollectors(registry, cmp.Or(o.Version, "unknown")); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, listenError(o.Listen, err)
	}
	logger := cmp.Or(o.Logger, slog.Default())
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	s := &Server{listener: Limit(listener, MaxConns), mux: http.NewServeMux()}
	s.http = &http.Server{
		Handler:           s.guard(s.mux),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      writeTimeout, // package pprof extends it for a profile
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          errorLog,
	}
	s.mux.HandleFunc("GET /{$}", s.index)
	s.Handle("GET /livez", s.live.handler())
	s.Handle("GET /readyz", s.ready.handler())
	s.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:      errorLog,
		ErrorHandling: promhttp.ContinueOnError,
		Registry:      registry,
	}))
	if o.Pprof {
		s.profiles()
	}
	return s, nil
}

func addCollectors(registry *prometheus.Registry, version string) error {
	built := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidemark_build_info",
		Help: "Is 1; the labels say what was built.",
	}, []string{"version", "goversion"})
	built.WithLabelValues(version, runtime.Version()).Set(1)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), built,
	} {
		var twice prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
			return err
		}
	}
	return nil
}

func (s *Server) profiles() {
	local := func(h http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			client, err := netip.ParseAddrPort(r.RemoteAddr)
			// Also where the server can be reached from elsewhere: a page of another site may be open in a browser of this host, and a
			// proxy of this host passes the requests of others.
			passed := slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "Via"}, func(name string) bool { return len(r.Header.Values(name)) > 0 })
			if err != nil || !client.Addr().IsLoopback() || !loopback.IsSafeHost(r.Host) || passed {
				http.Error(w, "profiles are for clients on this host, by an address or localhost and through no proxy", http.StatusForbidden)
				return
			}
			h(w, r)
		})
	}
	s.Handle("GET /debug/pprof/", local(pprof.Index))
	s.mux.Handle("GET /debug/pprof/cmdline", local(pprof.Cmdline))
	s.mux.Handle("GET /debug/pprof/profile", local(pprof.Profile))
	s.mux.Handle("GET /debug/pprof/symbol", local(pprof.Symbol))
	s.mux.Handle("POST /debug/pprof/symbol", local(pprof.Symbol))
	s.mux.Handle("GET /debug/pprof/trace", local(pprof.Trace))
}

// Handle adds a page with a pattern of http.ServeMux. The index at / lists it. Call it before Serve.
func (s *Server) Handle(pattern string, h http.Handler) {
	s.mux.Handle(pattern, h)
	s.pages = append(s.pages, pattern[strings.IndexByte(pattern, '/'):])
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, page := range s.pages {
		fmt.Fprintln(w, page)
	}
}

// guard protects a server on loopback from DNS rebinding: a web page whose host name points to
// 127.0.0.1 could read these pages, since the browser takes this server for the page's own. So
// the host of a request must be an address or localhost.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Loopback() && !loopback.IsSafeHost(r.Host) {
			http.Error(w, "the host must be an address or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// Serve answers requests until Shutdown is called, and then returns nil.
func (s *Server) Serve() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Shutdown stops listening and waits for the requests under way. When ctx is done it cuts
// them off and returns an error. Shutdown may be called twice, and before Serve.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.stop.Do(func() { _ = s.listener.Close() }) // still open if Serve was never called
	if err != nil {
		_ = s.http.Close() // err says why
	}
	return err
}

// Addr returns the address at which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Loopback reports whether only clients on this host can reach the server.
func (s *Server) Loopback() bool {
	at, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}
