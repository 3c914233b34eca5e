package devpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

const helperEnv = "DEVPG_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
	}
	goleak.VerifyTestMain(m)
}

// helper starts a server in a process of its own, prints its pid and its home, and waits to be killed.
func helper() {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Pid(), s.home.dir)
	select {}
}

func TestServerAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Settings: map[string]string{"max_prepared_transactions": "7", "cluster_name": `it's \ours`}})
	for name, url := range map[string]string{"tcp": s.URL("postgres"), "socket": s.SocketURL("postgres")} {
		var got string
		query(t, url, &got, `select concat_ws(' ', current_user, current_setting('server_encoding'), current_setting('TimeZone'),
			current_setting('fsync'), current_setting('max_prepared_transactions'), current_setting('cluster_name'))`)
		if want := `postgres UTF8 UTC off 7 it's \ours`; got != want {
			t.Errorf("by %s: got %q, want %q", name, got, want)
		}
	}
	psql := exec.Command(filepath.Join(s.BinDir(), "psql"), "-Atc", "select 1")
	psql.Env = append(os.Environ(), s.Env()...)
	if out, err := psql.CombinedOutput(); !errors.Is(err, fs.ErrNotExist) && string(out) != "1\n" {
		t.Errorf("psql with Env: %v: %s", err, out)
	}
}

func TestKillKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Durable: true})
	port := s.Port()
	conn := connect(t, s.URL("postgres"))
	for _, sql := range []string{
		"create table kept (n int)", "insert into kept values (1)",
		"begin", "insert into kept values (2)",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	before := family(t, s)
	if len(before) < 5 {
		t.Fatalf("the postmaster and its children are %v: too few", before)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, before)
	if err := s.Kill(); err == nil || s.Pid() != 0 {
		t.Errorf("killed twice: %v, pid %d", err, s.Pid())
	}
	restart(t, s)
	var n int
	query(t, s.URL("postgres"), &n, "select sum(n) from kept")
	if n != 1 || s.Port() != port {
		t.Errorf("after kill and restart: sum %d on port %d, want 1 on %d", n, s.Port(), port)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	conn := connect(t, s.URL("postgres"))
	for _, sql := range []string{"create table kept (n int)", "alter system set work_mem = '5MB'"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	restart(t, s) // of a running server
	var got string
	query(t, s.URL("postgres"), &got, "select current_setting('work_mem') || (select count(*) from kept)")
	if got != "5MB0" {
		t.Errorf("got %q after a restart", got)
	}

	// The test kills only the postmaster; its children end with it.
	before := family(t, s)
	p, err := os.FindProcess(s.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, before)
	restart(t, s)
	query(t, s.URL("postgres"), &got, "select 'up'")

	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a stopped server, whose data is gone, was restarted")
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server) error{
		"running": func(*Server) error { return nil },
		"killed":  (*Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{})
			all := family(t, s)
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			wantGone(t, all)
			if _, err := os.Stat(s.home.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", s.home.dir, err)
			}
		})
	}
}

func TestNamedDirStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for the server's user
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir})
	if _, err := connect(t, s.URL("postgres")).Exec(t.Context(), "create database kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second server on the same directory: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, Options{Dir: dir})
	var got string
	query(t, s.URL("kept"), &got, "select current_database()")
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("got %v", err)
	}
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestMissingBinaries(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("PG_BIN", "")
	_, err := find(nil, func() (string, error) { return "", errors.New("no network") })
	want := "PostgreSQL 15 or newer is not on this machine (no network); install it with `"
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("nothing anywhere: %v", err)
	}

	empty := t.TempDir()
	if _, err := Start(t.Context(), Options{BinDir: empty}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("BinDir without programs: %v", err)
	}
	t.Setenv("PG_BIN", empty)
	if _, err := Start(t.Context(), Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "PG_BIN") {
		t.Errorf("PG_BIN without programs: %v", err)
	}
}

func TestNewestBinariesWin(t *testing.T) {
	t.Setenv("PATH", "")
	root := t.TempDir()
	for _, v := range []string{"9.6", "14", "15", "17", "18-client-only"} {
		bin := filepath.Join(root, v, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(bin, "initdb"), "")
		if !strings.HasSuffix(v, "only") {
			write(t, filepath.Join(bin, "postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) "+v+".1 (Debian)'\n")
		}
	}
	got, err := find([]string{root + "/*/bin"}, nil)
	if want := filepath.Join(root, "17", "bin"); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// For Linux the server's parent is a thread, and Go ends a thread when its locked
// goroutine returns.
func TestServerOutlivesTheThreadOfItsStart(t *testing.T) {
	t.Parallel()
	started := make(chan *Server)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		s, err := Start(t.Context(), Options{})
		if err != nil {
			t.Error(err)
		}
		started <- s
	}()
	s := <-started
	t.Cleanup(func() { stop(t, s) })
	pid := s.Pid()
	for range 20 { // makes new threads: by then the old one has ended
		var got int
		query(t, s.URL("postgres"), &got, "select 1")
	}
	if s.Pid() != pid || pid == 0 {
		t.Errorf("postmaster %d became %d", pid, s.Pid())
	}
}

func TestKilledProcessLeavesNoServer(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A base of its own: in a shared one, sweep with age 0 could remove the home
	// that another process has made and not yet locked.
	base, err := os.MkdirTemp("/tmp", "devpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil { // for the server's user
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperEnv+"=1", "TMPDIR="+base)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
		t.Fatalf("the helper says %q: %v", line, err)
	}
	if filepath.Dir(dir) != base {
		t.Fatalf("the server's home is %s, want it in TMPDIR %s", dir, base)
	}
	all := children(t, pid)

	sweep(base, 0)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the directory of a living process was swept: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	wantGone(t, all)
	sweep(base, time.Hour)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a young directory was swept: %v", err)
	}
	sweep(base, 0)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestUnreachableDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	u, err := unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	if u == nil {
		if err := reachable("/nowhere", u); err != nil {
			t.Errorf("a check without another user: %v", err)
		}
		return
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.MkdirAll(filepath.Join(closed, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Dir: filepath.Join(closed, "in")})
	if err == nil || !strings.Contains(err.Error(), "cannot enter "+closed) {
		t.Errorf("got %v", err)
	}
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if t.Failed() {
		t.Log(lastLines(s.Logs(), 30))
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func restart(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the server may be gone
	return conn
}

func query(t *testing.T, url string, into any, sql string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(into); err != nil {
		t.Fatal(err)
	}
}

func family(t *testing.T, s *Server) []int {
	t.Helper()
	return children(t, s.Pid())
}

// children are pid and its children.
func children(t *testing.T, pid int) []int {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{pid}
	for child, p := range all {
		if p.parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	err := poll(10*time.Second, func() (bool, error) {
		all, err := processes()
		for _, pid := range pids {
			if p, ok := all[pid]; ok && p.state != 'Z' {
				return false, err
			}
		}
		return true, err
	})
	if err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
