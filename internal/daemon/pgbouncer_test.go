package daemon_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The daemon works through PgBouncer in transaction mode, with a direct address only for LISTEN.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not installed")
	}
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)

	c := settings(db)
	c.Database.DirectURL = c.Database.URL
	c.Database.URL = config.NewSecret(startPgBouncer(t, program, db))
	p := run(t, c)
	for n := 1; n <= 20; n++ {
		execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
		eventually(t, "a delivery", func() bool { return r.count() == n })
	}
	eventually(t, "the lock that says that a worker sleeps", func() bool {
		var n int
		err := db.Pool.QueryRow(context.Background(), `select count(*) from pg_locks l join pg_database d on d.oid = l.database
			where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 1953064301`).Scan(&n)
		return err == nil && n == 1
	})
	p.stop()
}

// startPgBouncer returns the address of the database through it.
func startPgBouncer(t *testing.T, program string, db *tidemarktest.DB) string {
	t.Helper()
	direct, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tidemark-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := testserver.FreePort(t)
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
`, db.Name, direct.Host, direct.Port, direct.User, port)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-q", file)
	cmd.Stderr = t.Output()
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Skip(err)
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := (&url.URL{
		Scheme: "postgres", User: url.User(direct.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: db.Name,
	}).String()
	eventually(t, "pgbouncer", func() bool {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	})
	return address
}
