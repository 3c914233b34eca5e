package incidents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// told waits until the daemon that watches has told of a cause, in time.
func (n *night) told(cause string) {
	n.t.Helper()
	until(n.t, inTime, "the watch tells of "+cause, func() bool {
		return n.value(fmt.Sprintf(`select count(*)::text from tidemark.finding where kind = '%s' and told = 'opened' and closed_at is null`, cause)) != "0"
	})
}

// smallDisk is a file system of that size, for the database alone.
func (n *night) smallDisk(size string) {
	n.t.Helper()
	dir := n.t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0700,size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		n.t.Skipf("cannot mount a small disk: %v: %s", err, out)
	}
	n.t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	data, err := os.Stat(n.value(`select current_setting('data_directory')`))
	if err != nil {
		n.t.Skipf("the server is elsewhere: %v", err)
	}
	if owner, ok := data.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			n.t.Fatal(err)
		}
	}
	for d := filepath.Dir(dir); d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { // for the server's user
			n.t.Fatal(err)
		}
	}
	admin := tidemarktest.NewEmptyDB(n.t).Connect(n.t)
	space := "disk_of_" + n.Name
	if _, err := admin.Exec(n.t.Context(), fmt.Sprintf("create tablespace %s location '%s'", space, dir)); err != nil {
		n.t.Fatal(err)
	}
	n.Pool.Reset()
	n.until("no session uses the database", func() bool {
		_, err := admin.Exec(n.t.Context(), fmt.Sprintf("alter database %s set tablespace %s", n.Name, space))
		return err == nil
	})
}

// The disk is full: nothing can be stored, and the watch tells of it.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.smallDisk("64M")
	n.exec(`update tidemark.setting set value = '64 MB' where key = 'disk.size'; create table public.filler (text text)`)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.emit(1, 10)
	n.handled(10)
	n.happens()
	_, err := n.Pool.Exec(t.Context(), `insert into public.filler select repeat(md5(i::text), 30) from generate_series(1, 100000) i`)
	var full *pgconn.PgError
	if !errors.As(err, &full) || full.Code != "53100" {
		t.Fatalf("the disk is not full: %v", err)
	}
	n.exec(`select tidemark.maintain()`) // measures, as the daemon does within a minute
	c := n.sees("bad", "disk_filling "+n.Name, `the database has 6\d MB of the 64 MB of the setting disk.size`)
	n.told("disk_filling")
	n.exec(`truncate public.filler`) // in place of a larger disk
	n.mend(c)
	n.gone("disk_filling")
	n.emit(11, 20)
	n.handled(20)
}

// A worker is stuck in its target: the watch goes on.
func TestWorkerIsStuck(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.emit(1, 10)
	n.handled(10)
	stuck := n.forgotten(`lock table public.got in access exclusive mode`)
	n.emit(11, 20)
	n.until("the worker waits", func() bool {
		return n.value(`select count(*)::text from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) != "0"
	})
	n.happens()
	n.exec(`select tidemark.emit('shop', 'ordr')`)
	n.sees("warn", "emit_unregistered emit")
	n.told("emit_unregistered")
	if _, err := stuck.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	n.handled(20)
}

// refused: no login but a superuser's gets a connection.
func (n *night) refused(login string) bool {
	n.t.Helper()
	conn, err := pgx.Connect(n.t.Context(), login)
	if err == nil {
		_ = conn.Close(n.t.Context())
		return false
	}
	var full *pgconn.PgError
	if !errors.As(err, &full) || full.Code != "53300" {
		n.t.Fatal(err)
	}
	return true
}
