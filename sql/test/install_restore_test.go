package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO5, CU2: a dump restored into another cluster is disarmed: it neither delivers nor uses up what it would
// have to deliver. Made live by an operator, it goes on where the dump was taken, with an event that was late
// and one that was still in flight then.
func TestRestoredCopyIsDisarmed(t *testing.T) {
	t.Parallel()
	original := tidemarktest.NewDB(t)
	w, a, b, c := live(t, original), open(t, original, "a"), open(t, original, "b"), open(t, original, "c")
	a.begin()
	a.emit(1)
	b.emit(2)
	w.pass()
	w.wantReceived(2)
	w.wantHoles("{[1,2)}")
	a.commit()
	c.begin()
	c.emit(3)
	b.emit(4)

	server := testserver.New(t, devpg.Options{})
	copied := restore(t, original, server)
	c.commit()

	r := session{t, "restored", copied}
	if got := r.pass(); got.Status != "closed" || got.Gate != "stage" {
		t.Errorf("%+v, want closed by stage", got)
	}
	r.wantReceived(2)
	_, err := copied.Exec(t.Context(), `update tidemark.outbound_route set dry_run = true; update tidemark.outbound_route set dry_run = false`)
	wantCode(t, err, "TM008")

	r.exec(`select tidemark.stage_set('live', 'the original is gone')`)
	r.pass()
	r.wantReceived(2, 1, 4)
	r.emit(5)
	r.pass()
	r.pass()
	r.wantReceived(2, 1, 4, 5)
	r.wantHoles("{}")

	w.pass()
	w.wantReceived(2, 1, 3, 4)
}

// A copy in the same cluster, under another name, is one too.
func TestClonedDatabaseIsDisarmed(t *testing.T) {
	t.Parallel()
	original := tidemarktest.NewDB(t)
	w := live(t, original)
	w.emit(1)
	w.pass()
	w.emit(2)
	url, name := w.conn.Config().Copy(), original.Name+"_clone"
	original.Pool.Close()
	if err := w.conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	url.Database = "postgres"
	admin, err := pgx.ConnectConfig(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), "create database "+name+" template "+original.Name); err != nil {
		t.Fatal(err)
	}
	url.Database = name
	cloned, err := pgx.ConnectConfig(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	r := session{t, "clone", cloned}
	if got := r.pass(); got.Status != "closed" || got.Gate != "stage" {
		t.Errorf("%+v, want closed by stage", got)
	}
	r.wantReceived(1)
	if err := cloned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "drop database "+name); err != nil {
		t.Fatal(err)
	}
}

// restore dumps a database with PostgreSQL's own tools and restores it on the server under the same name.
func restore(t *testing.T, db *tidemarktest.DB, server *devpg.Server) *pgx.Conn {
	t.Helper()
	dir := t.TempDir()
	run := func(stdin []byte, program string, args ...string) []byte {
		t.Helper()
		path := filepath.Join(server.BinDir(), program)
		if _, err := os.Stat(path); err != nil { // some packages of the server bring no clients
			path = program
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Stdin = bytes.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, &stderr)
		}
		return out
	}
	file := filepath.Join(dir, "dump")
	run(nil, "pg_dump", "--format=custom", "--file="+file, "--dbname="+db.URL)

	admin, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), "create database "+db.Name); err != nil {
		t.Fatal(err)
	}
	// Roles belong to the cluster, and a dump of a database has none. What the guide says: pg_dumpall --roles-only.
	roles := run(nil, "pg_dumpall", "--roles-only", "--dbname="+db.URL)
	run(bytes.ReplaceAll(roles, []byte("CREATE ROLE postgres;"), nil), "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", server.URL(db.Name))
	run(nil, "pg_restore", "--exit-on-error", "--dbname="+server.URL(db.Name), file)

	conn, err := pgx.Connect(t.Context(), server.URL(db.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}
