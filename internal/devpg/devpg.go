// Package devpg runs a private PostgreSQL cluster for `tidemark-demo`, for
// `tidemark command test` and for tests, with a PostgreSQL that is installed. It works without Docker and as root, and the server never outlives
// the process that started it.
//
// The cluster trusts clients on loopback and on the socket: every user with an
// account on the machine is a superuser of the cluster while it runs. Use it for
// demos and tests only.
package devpg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Options configure a cluster. The zero value is a fast cluster that loses its
// data when the operating system crashes.
type Options struct {
	// Dir is the directory of the data directory, "data". It is kept after Stop,
	// and a later Start with the same Dir finds its data again. Default: a
	// temporary directory that Stop removes, below $TMPDIR if that is set, else in
	// memory unless Durable, else in /tmp.
	Dir string

	// BinDir is the directory of postgres and initdb. Default: $PG_BIN, else the
	// usual places of operating systems, else $PATH, else what Fetch returns.
	BinDir string

	// Fetch gets the programs if the machine has none, as download.Postgres does.
	// Default: Start fails.
	Fetch func() (string, error)

	// Settings for postgresql.conf. They override the defaults of this package.
	Settings map[string]string

	// Durable turns fsync and full page writes on. Default: false, and a power cut
	// may lose committed data. A killed process loses none either way.
	Durable bool
}

// Server is a running cluster, or one that was killed and may be restarted.
// Its methods may be called from several goroutines.
type Server struct {
	options Options
	binDir  string
	home    home
	dirLock *os.File // lock on Options.Dir
	dataDir string
	user    *syscall.Credential // nil: the server runs as this process's user
	port    int

	mu      sync.Mutex
	run     *postmaster // nil before the first start and after Stop
	logFrom int64       // offset in the log file at which this run begins
	stopped bool
}

// Start makes a cluster and returns when it accepts connections. ctx bounds the
// start only: the server runs until Stop, or until this process ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a private PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context) (err error) {
	if s.binDir, err = binaries(s.options.BinDir, s.options.Fetch); err != nil {
		return err
	}
	if s.user, err = unprivileged(); err != nil {
		return err
	}
	if err := reachable(s.binDir, s.user); err != nil {
		return err
	}
	if s.home, err = newHome(s.user, s.options.Durable); err != nil {
		return err
	}
	if err := s.initdb(ctx); err != nil {
		return err
	}
	for range 10 {
		if s.port, err = FreePort(ctx); err != nil {
			return err
		}
		// Another process may take the port before the server binds to it: then
		// try another port.
		if err = s.launch(ctx); !isBusy(err) {
			return err
		}
	}
	return err
}

func (s *Server) initdb(ctx context.Context) error {
	parent := s.home.dir
	if s.options.Dir != "" {
		dir, err := filepath.Abs(s.options.Dir)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the server's OS user must be able to enter it
			return err
		}
		if err := reachable(dir, s.user); err != nil {
			return err
		}
		if s.dirLock, err = lockDir(dir, os.O_CREATE); err != nil {
			return fmt.Errorf("%s is in use by another process: %w", dir, err)
		}
		parent = dir
	}
	s.dataDir = filepath.Join(parent, "data")
	if _, err := os.Stat(filepath.Join(s.dataDir, "PG_VERSION")); err != nil {
		if err := mkdirFor(s.dataDir, s.user); err != nil {
			return err
		}
		cmd := s.command(exec.CommandContext(ctx, filepath.Join(s.binDir, "initdb"), "--pgdata", s.dataDir,
			"--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb: %w\n%s", err, lastLines(string(out), 15))
		}
	}
	return s.configure()
}

// configure replaces postgresql.conf and leaves postgresql.auto.conf alone, so
// that the effect of ALTER SYSTEM survives a restart.
func (s *Server) configure() error {
	durable := "off"
	if s.options.Durable {
		durable = "on"
	}
	settings := map[string]string{
		"listen_addresses":          "127.0.0.1",
		"unix_socket_directories":   s.home.socketDir(),
		"max_connections":           "100",
		"max_prepared_transactions": "20",
		"shared_buffers":            "128MB",
		"timezone":                  "UTC",
		"log_timezone":              "UTC",
		"log_line_prefix":           "%m [%p] %d %a ",
		"fsync":                     durable,
		"full_page_writes":          durable,
		// Shared memory is in the data directory: a killed server leaves nothing in
		// /dev/shm, and a container's 64 MB there do not limit parallel queries.
		"dynamic_shared_memory_type": "mmap",
	}
	if !s.options.Durable {
		settings["max_wal_size"] = "256MB" // a checkpoint without fsync costs nothing
	}
	maps.Copy(settings, s.options.Settings)
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(settings[name]))
	}
	return os.WriteFile(filepath.Join(s.dataDir, "postgresql.conf"), []byte(conf.String()), 0o644) //nolint:gosec // the server's OS user reads it
}

// command makes cmd run as the server's OS user, in a directory that this user
// can enter, and without the PG* variables of this process's environment.
func (s *Server) command(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = s.home.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"), "LC_ALL=C", "TZ=UTC"}
	// A session of its own, so that Ctrl-C reaches only this process, which then
	// stops the server in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Setsid: true}
	return cmd
}

// FreePort picks a port of 127.0.0.1 that nothing listens on, below the range from
// which the kernel takes ports. While a server of that range is down for a restart,
// any other server or client could be given its port.
func FreePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig
	var err error
	for range 100 {
		port := 20000 + rand.IntN(10000)
		var l net.Listener
		if l, err = listen.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1: %w", err)
}

// URL returns the address of a database, by TCP on 127.0.0.1.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: "sslmode=disable",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
	}
	return u.String()
}

// SocketURL returns the address of a database, through the unix socket.
func (s *Server) SocketURL(database string) string {
	q := url.Values{"host": {s.SocketDir()}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Env returns the environment variables with which psql and pgbench find the
// server. Append them to os.Environ().
func (s *Server) Env() []string {
	return []string{"PGHOST=" + s.SocketDir(), "PGPORT=" + strconv.Itoa(s.port), "PGUSER=postgres", "PGDATABASE=postgres"}
}

// Port returns the TCP port on 127.0.0.1. It stays the same over restarts.
func (s *Server) Port() int { return s.port }

// SocketDir returns the directory of the unix socket.
func (s *Server) SocketDir() string { return s.home.socketDir() }

// BinDir returns the directory of postgres and initdb. It also holds psql and
// pgbench if they come from the system's packages; a download lacks them.
func (s *Server) BinDir() string { return s.binDir }

// DataDir returns the cluster's data directory.
func (s *Server) DataDir() string { return s.dataDir }

// Logs returns everything the server has logged since Start.
func (s *Server) Logs() string { return s.logsFrom(0) }
