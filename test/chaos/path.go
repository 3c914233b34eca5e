package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// The ways to the database.
const (
	byDaemon    = "daemon"
	byPsql      = "psql"      // clients call the workers too, and alone those of tables
	byPgBouncer = "pgbouncer" // between daemons and server, in transaction mode
)

var paths = []string{byDaemon, byPsql, byPgBouncer}

// throughPgBouncer starts a PgBouncer before the server and returns its port.
func (h *harness) throughPgBouncer(ctx context.Context) (int, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return 0, fmt.Errorf("the path pgbouncer needs PgBouncer: %w", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, err
	}
	dir := filepath.Join(h.dir, "pgbouncer")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d user=chaos_daemon
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
server_login_retry = 1
query_wait_timeout = 10
`, h.server.Port(), port)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return 0, err
	}
	for _, d := range []string{h.dir, dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, program, "-q", file)
	cmd.SysProcAttr = dieWithParent()
	if os.Geteuid() == 0 { // which it refuses to run as
		u, err := user.Lookup("nobody")
		if err != nil {
			return 0, err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	h.cleanup = append(h.cleanup, func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil
	})
	url := fmt.Sprintf("postgres://chaos_daemon@127.0.0.1:%d/postgres?sslmode=disable", port)
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := connect(limited, url)
	if err != nil {
		return 0, fmt.Errorf("pgbouncer: %w", err)
	}
	return port, conn.Close(ctx)
}

// client calls the workers as psql does, until ctx is done.
func (h *harness) client(ctx context.Context, id int) {
	random := rand.New(rand.NewPCG(h.seed, uint64(5000+id)))
	url := strings.Replace(h.url(), "postgres@", "chaos_daemon@", 1)
	for ctx.Err() == nil {
		conn, err := connect(ctx, url)
		if err != nil {
			return
		}
		for err == nil {
			call, page := `select tidemark.worker_run($1, page => $2) ->> 'status'`, 1+random.IntN(1500)
			name := tableWorker
			if !h.withTables() || random.IntN(2) == 0 {
				name = worker
			}
			var status string
			limited, cancel := context.WithTimeout(ctx, 20*time.Second)
			if err = conn.QueryRow(limited, call, name, page).Scan(&status); err == nil && status == "ran" {
				h.passes.Add(1)
			}
			cancel()
			if err == nil {
				err = trial.Wait(ctx, time.Duration(random.IntN(60))*time.Millisecond)
			}
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// startClients calls the workers from psql until the cleanup.
func (h *harness) startClients(ctx context.Context) {
	calling, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for id := range 2 {
		clients.Go(func() { h.client(calling, id) })
	}
	h.clientsEnd = func() { stop(); clients.Wait() }
	h.cleanup = append(h.cleanup, func() error { h.clientsEnd(); return nil })
}

// title says what kind of run it is.
func (o *options) title() string {
	tables := "without tables"
	if o.withTables() {
		tables = "with tables"
	}
	commands := "without commands"
	if o.withCommands() {
		commands = "with commands"
	}
	shards := "without shards"
	if o.withShards() {
		shards = "with shards"
	}
	return fmt.Sprintf("seed %d, %s of faults, by %s, %s, %s, %s", o.seed, o.duration, o.path, tables, commands, shards)
}

// withTables: half of the seeds run with tables, and every mutant.
func (o *options) withTables() bool {
	switch o.tables {
	case "on":
		return true
	case "off":
		return false
	}
	return o.mutant.name != "" || o.seed%2 == 0
}
