// Package consoleserver serves the web console and the JSON API by the configuration of tidemark run and tidemark console.
package consoleserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemarkhq/tidemark/console"
	"github.com/tidemarkhq/tidemark/internal/admin"
	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/signin"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

// Server is a console that listens.
type Server struct {
	pool     *pgxpool.Pool
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
	metrics  metrics
	stopping chan struct{} // closed when it stops
}

// connections of the console, whatever how many people look.
const connections = 4

// clients is how many connections are accepted at a time. Further ones wait.
const clients = 256

// checkLimit is how long the start waits for the database. The console starts without it, and says so on its pages.
const checkLimit = 3 * time.Second

// New connects and begins to listen. Run answers the requests; probe sends test deliveries.
func New(ctx context.Context, c config.Config, probe api.Probe, log *slog.Logger) (*Server, error) {
	pool, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Server{pool: pool, log: log, metrics: newMetrics(), stopping: make(chan struct{})}
	if err := s.start(ctx, c, probe); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, c config.Config) (*pgxpool.Pool, error) {
	address, key := c.Console.DatabaseURL.Reveal(), "console.database_url"
	if address == "" {
		address, key = c.Database.URL.Reveal(), "database.url"
	}
	pc, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", key)
	}
	pc.MaxConns = connections
	// Prepared statements do not work through PgBouncer in transaction mode.
	pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "tidemark console"
	}
	pc.ConnConfig.ConnectTimeout = min(max(pc.ConnConfig.ConnectTimeout, time.Second), 5*time.Second)
	return pgxpool.NewWithConfig(ctx, pc)
}

func (s *Server) start(ctx context.Context, c config.Config, probe api.Probe) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	options, err := s.signIn(c.Console)
	if err != nil {
		return err
	}
	in, err := signin.New(options)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	pages, err := console.New(s.pool, console.Options{
		Prefix: options.Prefix, ReadOnly: c.Console.ReadOnly, Probe: probe, Logger: s.log, SignOut: signOut(options),
		Observe: s.metrics.observe, Done: s.stopping,
		Identify: func(r *http.Request) (console.Person, bool) { return api.PersonOf(r.Context()) },
	})
	if err != nil {
		return err
	}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Console.Listen); err != nil {
		return listenError(c.Console.Listen, err)
	}
	// Beside the daemon, idle strangers could otherwise leave no file descriptor for deliveries and the database.
	s.listener = admin.Limit(s.listener, clients)
	s.http = &http.Server{
		Handler: in.Handler(s.beside(options.Prefix, pages)), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	return nil
}

// beside adds /metrics to the pages. It wants a sign-in, as the pages do: a scraper has a token.
func (s *Server) beside(prefix string, pages http.Handler) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Metrics()...)
	mux := http.NewServeMux()
	mux.Handle("GET "+prefix+"/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", pages)
	return mux
}

// Metrics are those of the console, for the daemon's /metrics.
func (s *Server) Metrics() []prometheus.Collector { return s.metrics.all() }

// check fails where the schema does not fit this program. A database that cannot be reached may come back.
func (s *Server) check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	err := s.pool.AcquireFunc(limited, func(conn *pgxpool.Conn) error { return migrate.Check(limited, conn.Conn()) })
	if errors.Is(err, migrate.ErrOlder) || errors.Is(err, migrate.ErrNewer) {
		return err
	}
	if err != nil {
		s.log.WarnContext(ctx, "the console starts without its database", "error", err)
	}
	return nil
}

// signIn is how people sign in, by the configuration.
func (s *Server) signIn(c config.Console) (o signin.Options, err error) {
	o = signin.Options{
		Users: map[string]signin.User{}, Tokens: map[string]signin.Token{}, Key: []byte(c.SessionKey.Reveal()),
		Behind: c.Proxy.From, Note: s.metrics.counting(store.New(s.pool).SignInNote), Log: s.log,
	}
	if c.URL != "" {
		if o.URL, err = url.Parse(c.URL); err != nil {
			return o, errors.New("console.url cannot be read")
		}
		o.Prefix = strings.TrimSuffix(o.URL.Path, "/")
	}
	for name, u := range c.Users {
		o.Users[name] = signin.User{PasswordHash: u.PasswordHash.Reveal(), Role: role(u.Role)}
	}
	for name, t := range c.Tokens {
		o.Tokens[name] = signin.Token{SHA256: t.SHA256.Reveal(), Role: role(t.Role)}
	}
	if c.OIDC.Issuer != "" {
		o.OIDC = &signin.OIDC{
			Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID, ClientSecret: c.OIDC.ClientSecret.Reveal(), Scopes: c.OIDC.Scopes,
			Name: c.OIDC.Name, Claim: c.OIDC.Claim, Roles: roles(c.OIDC.Roles), Role: role(c.OIDC.Role), Client: &http.Client{Timeout: 10 * time.Second},
		}
	}
	if c.Proxy.Header != "" {
		o.Proxy = &signin.Proxy{Header: c.Proxy.Header, From: c.Proxy.From, Roles: roles(c.Proxy.Roles), Role: role(c.Proxy.Role)}
	}
	return o, nil
}

// signOut is where sessions end; empty: there are none.
func signOut(o signin.Options) string {
	if len(o.Users) == 0 && o.OIDC == nil {
		return ""
	}
	return o.Prefix + "/sign-out"
}

// role reads a role of the configuration, which has checked it; empty: none.
func role(name string) api.Role {
	r, _ := api.ParseRole(name)
	return r
}

func roles(names map[string]string) map[string]api.Role {
	all := map[string]api.Role{}
	for key := range maps.Keys(names) {
		all[key] = role(names[key])
	}
	return all
}

// listenError names the setting. It does not wrap err: the command would take a network error for a lost connection to the
// database.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("console.listen: %s is taken by another process: set it to another address, or to port 0 for a free one", address)
	}
	return fmt.Errorf("console.listen: cannot listen at %s: %s", address, err.Error())
}

// URL is where people on this host find the console.
func (s *Server) URL(c config.Console) string {
	if c.URL != "" {
		return strings.TrimSuffix(c.URL, "/") + "/"
	}
	return "http://" + s.listener.Addr().String() + "/"
}

// Run answers requests until ctx is done, and then lets those under way finish for a second.
func (s *Server) Run(ctx context.Context) error {
	defer s.pool.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	close(s.stopping)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := s.http.Shutdown(limited)
	if err != nil {
		err = s.http.Close()
	}
	if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
