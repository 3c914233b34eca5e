package tidemarktest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	tidemarktest.Main(m, func() error { return goleak.Find() })
}

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	a, b := tidemarktest.NewDB(t), tidemarktest.NewDB(t)
	if _, err := a.Pool.Exec(t.Context(), "create table public.mine (n int)"); err != nil {
		t.Fatal(err)
	}
	for db, want := range map[*tidemarktest.DB]string{a: a.Name + " true true", b: b.Name + " false true"} {
		if got := describe(t, db.Connect(t)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewEmptyDB(t)
	conn := db.Connect(t)
	if got, want := describe(t, conn), db.Name+" false false"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := migrate.Up(t.Context(), conn); err != nil {
		t.Error(err)
	}
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		db := tidemarktest.NewDB(t)
		name = db.Name
		if err := db.Pool.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	var there bool
	conn := tidemarktest.NewEmptyDB(t).Connect(t)
	err := conn.QueryRow(t.Context(), "select exists (select from pg_database where datname = $1)", name).Scan(&there)
	if err != nil || there {
		t.Errorf("%s is there: %v, %v", name, there, err)
	}
}

// A new server has no template yet, and all tests ask for it at once.
func TestTemplateIsBuiltOnce(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{})
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// The remains of a process that died before its template was ready.
	half := "tidemark_template_" + migrate.Fingerprint()[:12]
	if _, err := conn.Exec(t.Context(), "create database "+half); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { tidemarktest.NewDBAt(t, server.URL("postgres")) })
	}
	wg.Wait()
	rows, err := conn.Query(t.Context(), `select regexp_replace(datname, '_[^_]*$', ''), count(*) from pg_database
		where datname like 'tidemark%' group by 1 order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var name string
		var n int
		err := row.Scan(&name, &n)
		return fmt.Sprint(name, " ", n), err
	})
	if want := "tidemark_template 1, tidemark_test 8"; strings.Join(got, ", ") != want || err != nil {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
}

// A server gets the settings of the environment, unless the test sets the same ones.
func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Setenv("TIDEMARK_TEST_SETTINGS", "commit_delay=20000; commit_siblings = 0;fsync=on")
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"fsync": "off"}})
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var got string
	const settings = `select concat_ws(' ', current_setting('commit_delay'), current_setting('commit_siblings'), current_setting('fsync'))`
	if err := conn.QueryRow(t.Context(), settings).Scan(&got); err != nil || got != "20000 0 off" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDatabaseOfAKilledServer(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Durable: true})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := db.Pool.Ping(t.Context()); err == nil {
		t.Error("a killed server answers")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := describe(t, db.Connect(t)), db.Name+" false true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := server.Kill(); err != nil { // the cleanups must still work
		t.Fatal(err)
	}
}

func TestSharedServer(t *testing.T) {
	t.Parallel()
	if os.Getenv("TIDEMARK_TEST_URL") != "" {
		t.Skip("with TIDEMARK_TEST_URL no private server starts")
	}
	if a, b := testserver.Shared(t), testserver.Shared(t); a != b || a.Pid() == 0 {
		t.Errorf("got %v and %v", a, b)
	}
}

func BenchmarkNewDB(b *testing.B) {
	tidemarktest.NewDB(b) // the first builds the template
	for b.Loop() {
		tidemarktest.NewDB(b)
	}
}

// describe returns the database of conn, and whether it has a table public.mine and
// Tidemark's schema.
func describe(t *testing.T, conn *pgx.Conn) (got string) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `select concat_ws(' ', current_database(),
		(to_regclass('public.mine') is not null)::text, (to_regnamespace('tidemark') is not null)::text)`).Scan(&got)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
