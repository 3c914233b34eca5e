// Package tidemarktest helps to test programs that use Tidemark. [NewDB] gives
// each test a database of its own, fast enough that no tests need share one.
// [GoLive] switches everything on in it, [RequireEmitted] and [RequireDelivered] look at what came of events, [Advance] lets time
// pass for what waits, and [NewReceiver] is a webhook target. [TestSink] tests an implementation of sink.Sink.
//
// The databases are on the server of TIDEMARK_TEST_URL, a postgres:// URL of a
// role that may create databases and Tidemark's roles. If the role is a
// superuser, it creates the role tidemark_test_installer and installs as that.
// Without TIDEMARK_TEST_URL the test process starts a private server, which ends
// with it.
//
// TIDEMARK_TEST_SETTINGS holds settings for the private servers, as name=value
// separated by semicolons. With "fsync=on;commit_delay=20000;commit_siblings=0"
// each commit takes 20 ms longer, which uncovers tests that depend on timing.
package tidemarktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/migrate"
)

// setupTimeout bounds each step outside the test itself: start a server, clone or drop a database.
const setupTimeout = 2 * time.Minute

// DB is a database that belongs to one test.
type DB struct {
	URL  string
	Name string
	Pool *pgxpool.Pool // at most 20 sessions; closed when the test ends
}

// NewDB creates a database with Tidemark's current schema, and drops it when the
// test ends. On the server of TIDEMARK_TEST_URL, a failed test keeps its database
// and logs its URL.
func NewDB(t testing.TB) *DB {
	t.Helper()
	return newDB(t, testserver.URL(t), template)
}

// NewDBAt is NewDB on the server with that URL of a database. The test may kill the server; the
// database ends with it.
func NewDBAt(t testing.TB, server string) *DB {
	t.Helper()
	return newDB(t, server, template)
}

// NewEmptyDB creates an empty database, without Tidemark's schema.
func NewEmptyDB(t testing.TB) *DB {
	t.Helper()
	return newDB(t, testserver.URL(t), func(context.Context, *pgx.Conn, string) (string, error) { return "template0", nil })
}

// Connect opens a session outside the pool and closes it when the test ends.
func (db *DB) Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatalf("connect to %s: %v", db.URL, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test may have broken it
	return conn
}

// Main runs the tests, stops the private server and exits. Call it from TestMain.
// If the tests passed, it runs the checks before it exits, such as goleak:
//
//	func TestMain(m *testing.M) {
//		tidemarktest.Main(m, func() error { return goleak.Find() })
//	}
//
// Without Main the server stops when the process ends.
func Main(m *testing.M, checks ...func() error) {
	code := m.Run()
	if err := testserver.Stop(); err != nil {
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
		t.Fatalf("create a database for the test: %v", err)
	}

	t.Cleanup(func() {
		if t.Failed() && os.Getenv(testserver.URLVariable) == maintenance {
			t.Logf("the database of this test is kept: %s", db.URL)
			return
		}
		// This fails if the test has killed the server, which is fine.
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

// closePool fails the test if it did not release a connection: Close would wait
// for it, without a word, until the whole run times out.
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

// template returns the name of a database with the current schema. The first
// test that needs it creates it, and tests of other packages that run at the same
// time wait for that.
func template(ctx context.Context, conn *pgx.Conn, maintenance string) (string, error) {
	name := "tidemark_template_" + fingerprint()[:12]
	if _, ready, err := inspect(ctx, conn, name); err != nil || ready {
		return name, err
	}
	// The lock ends with the session.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", name); err != nil {
		return "", err
	}
	made, ready, err := inspect(ctx, conn, name)
	if err != nil || ready {
		return name, err
	}
	if made { // by a process that died before it was ready
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
	// is_template marks it as ready. Connections are forbidden, since a single session
	// in it makes every clone fail.
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

// testInstaller is an installer as most users have it: it may create roles, and is not a superuser.
const testInstaller = "tidemark_test_installer"

// migrateTo installs as testInstaller if it can, so that every test with a template also tests an installation without a
// superuser.
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

// installWithout installs as testInstaller. It needs a superuser's session.
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
	// A superuser, in another test, has created the roles: testInstaller needs more rights.
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
	// From PostgreSQL 16 on, only a superuser may grant this.
	_, err = conn.Exec(ctx, "grant pg_read_all_stats to tidemark_owner")
	return err
}

// maintain runs f in a session of its own. It does not use the test's context: a
// database is dropped after that has ended.
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
		return "", fmt.Errorf("%s: not a postgres:// URL", testserver.URLVariable)
	}
	u.Path = "/" + name
	return u.String(), nil
}
