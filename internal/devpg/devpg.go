// Package devpg runs a private PostgreSQL cluster for `tidemark-demo` and for
// tests. It works without Docker and as root, and the server never outlives
// the process that started it.
//
// Clients are trusted on loopback and on the socket, so whoever has an account
// on the machine is superuser of the cluster while it runs: demos and tests
// only.
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

// Options say what kind of cluster to start. The zero value is a fast one that
// forgets its data when the operating system crashes.
type Options struct {
	// Dir is where the data directory ("data") is made, or found again from an
	// earlier run, and stays. Empty: a temporary one that Stop removes; below
	// $TMPDIR if that is set, else in memory unless Durable, else in /tmp.
	Dir string

	// BinDir holds postgres and initdb. Empty: $PG_BIN, then where systems put
	// them, then $PATH, then fetched unless we are root.
	BinDir string

	// Settings are written to postgresql.conf over the defaults of this package.
	Settings map[string]string

	// Durable turns fsync and full page writes on. Killing processes loses no
	// committed data either way; what false does lose is paid at a power cut.
	Durable bool
}

// Server is a running cluster, or one that was killed and may be restarted.
// Its methods may be called from several goroutines.
type Server struct {
	options Options
	binDir  string
	home    home
	dirLock *os.File // on Options.Dir
	dataDir string
	user    *syscall.Credential // nil: the server runs as ourselves
	port    int

	mu      sync.Mutex
	run     *postmaster // nil before the first start and after Stop
	logFrom int64       // where the log of this run begins
	stopped bool
}

// Start makes a cluster and returns when it answers. ctx bounds the start, not
// the life of the server: that ends with Stop or with this process.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a private PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context) (err error) {
	if s.binDir, err = binaries(s.options.BinDir); err != nil {
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
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		// Whoever takes the port between our look and the server's bind costs
		// one more attempt.
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
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // another OS user may have to pass
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

// configure replaces postgresql.conf and not postgresql.auto.conf, so that
// ALTER SYSTEM works as anywhere and survives a restart.
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
		// In the data directory: a killed server leaves nothing in /dev/shm, and
		// the 64 MB that containers have there do not limit parallel queries.
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
	return os.WriteFile(filepath.Join(s.dataDir, "postgresql.conf"), []byte(conf.String()), 0o644) //nolint:gosec // read by another OS user
}

// command makes cmd run as the server's OS user, in a directory that this user
// can enter, and without the PG* variables of our own environment.
func (s *Server) command(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = s.home.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"), "LC_ALL=C", "TZ=UTC"}
	// A session of its own: Ctrl-C is for us, who then stop the server in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Setsid: true}
	return cmd
}

// freePort picks below the ports that systems give to outgoing connections. One
// of those could be taken by any client while the server is down for Restart.
func freePort(ctx context.Context) (int, error) {
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

// URL is the address of a database for clients on this machine, by TCP.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: "sslmode=disable",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
	}
	return u.String()
}

// SocketURL is the address of a database through the unix socket.
func (s *Server) SocketURL(database string) string {
	q := url.Values{"host": {s.SocketDir()}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Env is what psql, pgbench and other children need to find the server; append
// it to os.Environ().
func (s *Server) Env() []string {
	return []string{"PGHOST=" + s.SocketDir(), "PGPORT=" + strconv.Itoa(s.port), "PGUSER=postgres", "PGDATABASE=postgres"}
}

// Port is the TCP port on 127.0.0.1; it stays the same over restarts.
func (s *Server) Port() int { return s.port }

// SocketDir holds the unix socket.
func (s *Server) SocketDir() string { return s.home.socketDir() }

// BinDir holds postgres and initdb, and psql and pgbench where the system's
// packages provide them (fetched binaries do not).
func (s *Server) BinDir() string { return s.binDir }

// DataDir is the cluster's data directory.
func (s *Server) DataDir() string { return s.dataDir }

// Logs is everything the server has logged since Start.
func (s *Server) Logs() string { return s.logsFrom(0) }
