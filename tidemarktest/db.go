// Package tidemarktest helps to test programs that use Tidemark: a database of
// its own for every test, cheap enough that none has to be shared.
//
// The databases are made on the server of TIDEMARK_TEST_URL, a postgres:// URL
// of a role that may create databases and Tidemark's roles; a superuser makes
// the role tidemark_test_installer, and installs as that. Without it one
// private server is started for the test process and ends with it.
//
// TIDEMARK_TEST_SETTINGS holds settings for the private servers, as name=value
// separated by semicolons. With "fsync=on;commit_delay=20000;commit_siblings=0"
// each commit takes 20 ms longer, which shows tests that depend on time.
package tidemarktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/migrate"
)

// setupTimeout bounds each step outside of the test itself: a start, a clone, a drop.
const setupTimeout = 2 * time.Minute

// DB is a database that belongs to one test.
type DB struct {
	URL  string
	Name string
	Pool *pgxpool.Pool // at most 20 sessions; closed when the test ends
}

// NewDB makes a database with Tidemark's current schema. It is dropped when the
// test ends, except that a failed test keeps its database on the server of
// TIDEMARK_TEST_URL and logs its URL.
func NewDB(t testing.TB) *DB {
	t.Helper()
	return newDB(t, sharedURL(t), template)
}

// NewDBOn is NewDB on a server from NewServer. The server may be killed
// meanwhile; the database goes when the server goes.
func NewDBOn(t testing.TB, server *devpg.Server) *DB {
	t.Helper()
	return newDB(t, server.URL("postgres"), template)
}

// NewEmptyDB makes a database with nothing in it.
func NewEmptyDB(t testing.TB) *DB {
	t.Helper()
	return newDB(t, sharedURL(t), func(context.Context, *pgx.Conn, string) (string, error) { return "template0", nil })
}

// Connect opens a session of its own that is closed when the test ends.
func (db *DB) Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatalf("connect to %s: %v", db.URL, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test may have broken it
	return conn
}

// Server is the private server that the tests of this process share. It is not
// for tests that stop or configure it: these need NewServer.
func Server(t testing.TB) *devpg.Server {
	t.Helper()
	if os.Getenv(urlVariable) != "" {
		t.Fatalf("this test needs control of its server: unset %s", urlVariable)
	}
	s, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewServer starts a private server for one test, which may kill it.
func NewServer(t testing.TB, o devpg.Options) *devpg.Server {
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

// Main is for a package's TestMain: it runs the tests, stops the private server
// and exits. Checks come after that and only if the tests passed, since failed
// tests leave things behind; goleak fits:
//
//	func TestMain(m *testing.M) {
//		tidemarktest.Main(m, func() error { return goleak.Find() })
//	}
//
// Without Main the server is stopped by the end of the process.
func Main(m *testing.M, checks ...func() error) {
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		for _, check := range checks {
			if err := check(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

const (
	urlVariable      = "TIDEMARK_TEST_URL"
	settingsVariable = "TIDEMARK_TEST_SETTINGS"
)

// start adds the settings of the environment to those of a test; the test's own win.
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
	o.Settings = settings
	return devpg.Start(ctx, o)
}

// shared is the private server of this process.
var shared sharedServer

type sharedServer struct {
	once   sync.Once
	server *devpg.Server
	err    error
}

func (s *sharedServer) start() (*devpg.Server, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
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

// sharedURL is the address of the database that makes the others.
func sharedURL(t testing.TB) string {
	t.Helper()
	if external := os.Getenv(urlVariable); external != "" {
		return external
	}
	return Server(t).URL("postgres")
}

func newDB(t testing.TB, maintenance string, source func(context.Context, *pgx.Conn, string) (string, error)) *DB {
	t.Helper()
	db := &DB{Name: "tidemark_test_" + strings.ToLower(rand.Text()[:12])}
	var err error
	if db.URL, err = withDatabase(maintenance, db.Name); err != nil {
		t.Fatal(err)
	}
	err = maintain(maintenance, func(ctx context.Context, conn *pgx.Conn) error {
		from, err := source(ctx, conn, maintenance)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "create database "+db.Name+" template "+from+" strategy wal_log")
		return err
	})
	if err != nil {
		t.Fatalf("make a database for the test: %v", err)
	}

	t.Cleanup(func() {
		if t.Failed() && os.Getenv(urlVariable) == maintenance {
			t.Logf("the database of this test is kept: %s", db.URL)
			return
		}
		// A server that the test has killed takes the database along.
		_ = maintain(maintenance, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "drop database "+db.Name+" with (force)")
			return err
		})
	})

	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20
	if db.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, db.Pool) })
	return db
}

// closePool gives up on a connection that the test did not release: Close would
// wait for it until the whole run times out, and say nothing.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the test ended without releasing a connection of its pool")
	}
}

// template returns the name of a database with the current schema, made by
// whoever needs it first: tests of many packages run at the same time.
func template(ctx context.Context, conn *pgx.Conn, maintenance string) (string, error) {
	name := "tidemark_template_" + fingerprint()[:12]
	if _, ready, err := inspect(ctx, conn, name); err != nil || ready {
		return name, err
	}
	// The lock is the session's and goes with it.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", name); err != nil {
		return "", err
	}
	made, ready, err := inspect(ctx, conn, name)
	if err != nil || ready {
		return name, err
	}
	if made { // its maker died half-way
		if _, err := conn.Exec(ctx, "drop database "+name+" with (force)"); err != nil {
			return "", err
		}
	}
	if _, err := conn.Exec(ctx, "create database "+name+" template template0 strategy wal_log"); err != nil {
		return "", err
	}
	if err := migrateTo(ctx, maintenance, name); err != nil {
		return "", fmt.Errorf("migrate %s: %w", name, err)
	}
	// Only now is it seen as ready; and nobody connects to it, since one session
	// in it would make every clone fail.
	_, err = conn.Exec(ctx, "alter database "+name+" with is_template true allow_connections false")
	return name, err
}

var fingerprint = sync.OnceValue(migrate.Fingerprint)

func inspect(ctx context.Context, conn *pgx.Conn, name string) (made, ready bool, err error) {
	err = conn.QueryRow(ctx, "select datistemplate from pg_catalog.pg_database where datname = $1", name).Scan(&ready)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, false, nil
	}
	return true, ready, err
}

// testInstaller installs as most people's do: it may create roles, and is no superuser.
const testInstaller = "tidemark_test_installer"

// migrateTo installs as testInstaller where it can, so that every test of a template is one of an installation without
// a superuser.
func migrateTo(ctx context.Context, maintenance, name string) error {
	address, err := withDatabase(maintenance, name)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	var superuser bool
	if err = conn.QueryRow(ctx, "select rolsuper from pg_catalog.pg_roles where rolname = current_user").Scan(&superuser); err == nil {
		if superuser {
			err = installWithout(ctx, conn, name)
		} else {
			_, err = migrate.Up(ctx, conn)
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// installWithout needs a superuser's session and does not install as one.
func installWithout(ctx context.Context, conn *pgx.Conn, database string) error {
	_, err := conn.Exec(ctx, "do $$ begin create role "+testInstaller+" createrole; exception when duplicate_object or unique_violation then null; end $$;"+
		"alter database "+database+" owner to "+testInstaller)
	if err != nil {
		return err
	}
	up := func() error {
		if _, err := conn.Exec(ctx, "set session authorization "+testInstaller); err != nil {
			return err
		}
		_, err := migrate.Up(ctx, conn)
		_, resetErr := conn.Exec(ctx, "reset session authorization")
		return errors.Join(err, resetErr)
	}
	err = up()
	// Another test has made the roles, as a superuser.
	if refused := (*migrate.RolesError)(nil); errors.As(err, &refused) {
		for _, statement := range refused.Statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		err = up()
	}
	if err != nil {
		return err
	}
	// No installer without a superuser may do this, from PostgreSQL 16 on.
	_, err = conn.Exec(ctx, "grant pg_read_all_stats to tidemark_owner")
	return err
}

// maintain runs f in a session of its own, on no test's context: a database is
// dropped after its test's context has ended.
func maintain(address string, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, conn), conn.Close(ctx))
}

func withDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return "", fmt.Errorf("%s: not a postgres:// URL", urlVariable)
	}
	u.Path = "/" + name
	return u.String(), nil
}
