package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// builtIn is where binary builds; TestMain removes it.
var builtIn string

// binary builds the command, once for all tests that kill it.
var binary = sync.OnceValues(func() (path string, err error) {
	if builtIn, err = os.MkdirTemp("", "tidemark-test-"); err != nil {
		return "", err
	}
	path = filepath.Join(builtIn, "tidemark")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// program is the real binary on a database.
func program(t *testing.T, url string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), urlVariable+"="+url)
	return c
}

// startDaemon runs one until the test kills it.
func startDaemon(t *testing.T, url, name string) *exec.Cmd {
	t.Helper()
	return startDaemonTo(t, url, name, nil)
}

// startDaemonTo is startDaemon with a place for its standard output.
func startDaemonTo(t *testing.T, url, name string, out io.Writer) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte("name: "+name+"\nadmin: {listen: \"\"}\nlog: {format: json}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProgram(t, url, name, out, "run", "--config", file)
}

// startProgram starts the command, and kills it in the end.
func startProgram(t *testing.T, url, name string, out io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	c := program(t, url, args...)
	var log bytes.Buffer
	c.Stdout, c.Stderr = out, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		t.Logf("%s: %s", name, log.String())
	})
	return c
}

func kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 3 minutes: %s", what)
		}
	}
}

func answer(t *testing.T, db *tidemarktest.DB, sql string, args ...any) (text string) {
	t.Helper()
	if err := db.Pool.QueryRow(context.Background(), sql, args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// LI3: another daemon reports a killed one; if none is left, psql does.
func TestKilledDaemonIsReported(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("daemons look every 10 s")
	}
	db := tidemarktest.NewDB(t)
	const (
		beating = `select coalesce((select last_status from tidemark.heartbeat where executor_id = 'daemon/' || $1), '')`
		opened  = `select count(*)::text from tidemark.finding where kind = 'heartbeat_silent' and subject = 'daemon/' || $1 and closed_at is null`
		events  = `select count(*)::text from tidemark.outbox where type = 'queue_worker_silent' and subject_ref = 'daemon/' || $1`
		// The database's clock counts.
		later = `update tidemark.heartbeat set last_beat_at = last_beat_at - interval '40 seconds' where executor_id = 'daemon/' || $1 returning ''`
	)
	a, b := startDaemon(t, db.URL, "a"), startDaemon(t, db.URL, "b")
	for _, name := range []string{"a", "b"} {
		eventually(t, name+" to beat", func() bool { return answer(t, db, beating, name) == "running" })
	}
	kill(t, a)
	answer(t, db, later, "a")
	eventually(t, "b to tell of a", func() bool { return answer(t, db, opened, "a") == "1" })

	kill(t, b)
	answer(t, db, later, "b")
	if told := answer(t, db, `select string_agg(concat_ws(' ', executor_id, state, severity, event_id is not null), '; ' order by executor_id) from tidemark.stale_check()`); told != "daemon/a silent warning f; daemon/b silent warning t" {
		t.Errorf("psql alone tells %q", told)
	}

	again := startDaemon(t, db.URL, "a")
	eventually(t, "the finding of a to close", func() bool { return answer(t, db, opened, "a") == "0" })
	if got := answer(t, db, opened, "b") + answer(t, db, events, "a") + answer(t, db, events, "b"); got != "111" {
		t.Errorf("open findings of b, events of a and of b: %s, want 111", got)
	}
	// A daemon that stops says so, and raises no alarm.
	if err := again.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Error(err)
	}
	answer(t, db, later, "a")
	if told := answer(t, db, `select string_agg(executor_id || ' ' || state, '; ') from tidemark.stale_check()`); told != "daemon/b silent" {
		t.Errorf("after a clean stop: %q", told)
	}
}

// running is a command under `tidemark beat`.
type running struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func beatWhile(t *testing.T, url, script string) running {
	t.Helper()
	r := running{Cmd: program(t, url, "beat", "job", "--every", "1s", "--", "sh", "-c", script)}
	in, err := r.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() })
	r.in, r.lines = in, bufio.NewScanner(out)
	return r
}

func (r running) line(t *testing.T, want string) {
	t.Helper()
	if !r.lines.Scan() || r.lines.Text() != want {
		t.Fatalf("got %q, want %q", r.lines.Text(), want)
	}
}

func (r running) status(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := r.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.ProcessState.ExitCode()
}

func register(t *testing.T, db *tidemarktest.DB) {
	t.Helper()
	answer(t, db, `select executor_id from tidemark.heartbeat_register('job', cadence => '1 second')`)
}

func TestBeatPassesSignalsOn(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	register(t, db)
	r := beatWhile(t, db.URL, `trap 'echo hup' HUP; trap 'echo int' INT; trap 'echo usr1' USR1; trap 'echo term; exit 5' TERM; echo ready
		while :; do read line < /dev/stdin; sleep 0.01; done 2> /dev/null`)
	r.line(t, "ready")
	eventually(t, "it to be seen running", func() bool {
		return answer(t, db, `select last_status from tidemark.heartbeat where executor_id = 'job'`) == "running"
	})
	_ = r.in.Close()
	// A second signal of a kind must not end the beater either.
	for _, s := range []struct {
		signal syscall.Signal
		line   string
	}{{syscall.SIGHUP, "hup"}, {syscall.SIGINT, "int"}, {syscall.SIGINT, "int"}, {syscall.SIGUSR1, "usr1"}, {syscall.SIGTERM, "term"}} {
		if err := r.Process.Signal(s.signal); err != nil {
			t.Fatal(err)
		}
		r.line(t, s.line)
	}
	if got := r.status(t); got != 5 {
		t.Errorf("exit status %d, want 5", got)
	}
	if got := answer(t, db, `select last_status from tidemark.heartbeat where executor_id = 'job'`); got != "failed:5" {
		t.Errorf("the last beat says %q", got)
	}
}

// The database dies while the command runs, and is back before its end.
func TestBeatOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	register(t, db)
	r := beatWhile(t, db.URL, `echo ready; while read line; do echo "$line"; done; exit 3`)
	r.line(t, "ready")
	eventually(t, "it to be seen running", func() bool {
		return answer(t, db, `select last_status from tidemark.heartbeat where executor_id = 'job'`) == "running"
	})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(r.in, "still here\n")
	r.line(t, "still here")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	beats := func() (n int) {
		_ = db.Pool.QueryRow(context.Background(), `select ticks_total from tidemark.heartbeat where executor_id = 'job'`).Scan(&n)
		return n
	}
	eventually(t, "the database to be back", func() bool { return beats() > 0 })
	before := beats()
	eventually(t, "it to beat again", func() bool { return beats() > before })
	_ = r.in.Close()
	if got := r.status(t); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
	if got := answer(t, db, `select last_status from tidemark.heartbeat where executor_id = 'job'`); got != "failed:3" {
		t.Errorf("the last beat says %q", got)
	}
}

// Every kind of finding that the SQL opens is explained, here and in docs/operations.md.
func TestEveryFindingIsExplained(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, file := range sqlFiles(t) {
		all.WriteString(file.Text)
	}
	opened := map[string]bool{}
	for _, m := range regexp.MustCompile(`finding_open\('(\w+)'`).FindAllStringSubmatch(all.String(), -1) {
		opened[m[1]] = true
	}
	reported := regexp.MustCompile(`worker_finding.kind not in \(([^)]*)\)`).FindStringSubmatch(all.String())
	if reported == nil {
		t.Fatal("worker_finding has changed")
	}
	for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(reported[1], -1) {
		opened[m[1]] = true
	}
	for _, kind := range []string{"heartbeat_silent", "cursor_silent_gap"} { // stale_check chooses between them
		if !strings.Contains(all.String(), "'"+kind+"'") {
			t.Errorf("nothing opens %s", kind)
		}
		opened[kind] = true
	}
	for _, m := range regexp.MustCompile(`source_(?:hold|misread)\(\w+, '(\w+)'|\b(?:kind|finding) := '(\w+)'`).FindAllStringSubmatch(all.String(), -1) {
		opened[m[1]+m[2]] = true
	}
	if !opened["source_unreadable"] || !opened["source_misconfigured"] {
		t.Error("source_next, source_hold or source_misread has changed")
	}
	for _, kind := range []string{"cursor_lag", "dead_letter_event", "backlog"} { // never a cause: cause_list folds them
		opened[kind] = false
	}
	kinds := causeKinds(t)
	page := read(t, "../../docs/operations.md")
	for kind, shown := range opened {
		if shown && kinds[kind] == "" {
			t.Errorf("tidemark.cause_kind lacks the finding %s", kind)
		}
		if _, row := opened[kind]; row && kind != "dead_letter_event" && kind != "backlog" && !regexp.MustCompile("\\| `"+kind+"` \\| \\w").MatchString(page) {
			t.Errorf("docs/operations.md does not tell of %s, or not how bad it is", kind)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^select '(\w+)' as kind|^select '(\w+)', `).FindAllStringSubmatch(read(t, "../../sql/code/liveness/queue_health.sql"), -1) {
		kind := m[1] + m[2]
		if folded := kind == "finding" || kind == "backlog" || kind == "dead_letter_event"; !folded && kinds[kind] == "" {
			t.Errorf("tidemark.cause_kind lacks rows of the kind %s", kind)
		}
	}
}

// causeKinds are the rows of tidemark.cause_kind, by cause.
func causeKinds(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?ms)^    \('(\w+)',$(.*?)\)[,)]`).FindAllStringSubmatch(read(t, "../../sql/code/cause/cause_kind.sql"), -1) {
		kinds[m[1]] = m[2]
	}
	if len(kinds) < 40 {
		t.Fatalf("cause_kind has changed: %d causes", len(kinds))
	}
	return kinds
}

// causeCommand is a command that tidemark.cause_kind has, up to its first argument or flag.
var causeCommand = regexp.MustCompile(`'(tidemark [a-z -]*?[a-z])(?: --.*| \{.*)?'`)

// Each cause has a page, and each page is of a cause.
func TestEveryCauseHasAPage(t *testing.T) {
	t.Parallel()
	kinds := causeKinds(t)
	for _, file := range sqlFiles(t) {
		if strings.HasPrefix(file.Path, "code/cause/cause_") && file.Name() != "cause_kind" {
			for _, m := range regexp.MustCompile(`(?:row\(\s*|select |then )'([a-z]+_?[a-z_]+)', |cause := case .* then '(\w+)' else '(\w+)'`).FindAllStringSubmatch(file.Text, -1) {
				for _, cause := range m[1:] {
					if cause != "" && kinds[cause] == "" {
						t.Errorf("%s shows %s, which tidemark.cause_kind lacks", file.Path, cause)
					}
				}
			}
		}
	}
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		cause := strings.TrimSuffix(filepath.Base(page), ".md")
		if kinds[cause] == "" && cause != "README" {
			t.Errorf("%s is of no cause", page)
		}
		commands := causeCommand.FindAllStringSubmatch(kinds[cause], -1)
		delete(kinds, cause)
		if text := read(t, page); cause != "README" {
			_, todo, _ := strings.Cut(text, "\n## What to do\n")
			todo, _, _ = strings.Cut(todo, "\n## ")
			if !strings.Contains(todo, "\n```\n") {
				t.Errorf("%s: what to do has no block of commands", page)
			}
			for _, m := range commands {
				if !strings.Contains(todo, "\n"+strings.TrimSpace(m[1])) {
					t.Errorf("%s: what to do lacks %q, which tidemark.cause shows", page, m[1])
				}
			}
			for _, part := range []string{"## What you see", "## Why", "## What to do", "## How to check", "## How to prevent it"} {
				if !strings.Contains(text, "\n"+part+"\n") {
					t.Errorf("%s lacks %q", page, part)
				}
			}
		}
	}
	for cause := range kinds {
		t.Errorf("docs/runbooks/%s.md is missing", cause)
	}
}

// --watch repeats the status until it is interrupted.
func TestStatusWatch(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	c := program(t, db.URL, "status", "--watch=100ms", "-o", "json")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for range 3 {
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"database":`) {
			t.Fatal(line, err)
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// The screens of the README are the output of the commands, except for the numbers.
func TestReadmeScreens(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`create function send_mail(event jsonb) returns void language sql as ''`,
		`select tidemark.type_set('shop', 'order.created'), tidemark.stage_set('live', 'test')`,
		`select tidemark.route_set('order_mail', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.send_mail", "enabled": true, "dry_run": false}'),
			tidemark.route_set('billing', '{"domain": "shop", "target_kind": "webhook", "target_ref": "https://billing.example/hooks", "options": {"secret": "billing"}, "enabled": true, "dry_run": false}')`,
		`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`,
		`select tidemark.emit('shop', 'order.created') from generate_series(1, 1200)`,
		`select tidemark.route_worker_run()`,
		`select tidemark.maintain()`,
		`update tidemark.cursor_sample set older_at = older_at - interval '99 seconds', older_seen = 0`,
		// Ages of hours: however long the test takes, late things stay late and no other becomes late.
		`update tidemark.setting set value = '1 hour' where key = 'lag.warn'`,
		`update tidemark.setting set value = '1 day' where key = 'lag.bad'`,
		`update tidemark.heartbeat set last_beat_at = last_beat_at + interval '1 hour' where executor_id = 'default/outbox/0'`,
		`select tidemark.heartbeat_register('nightly_export', cadence => '1 hour', threshold => '4 hours')`,
		`select tidemark.heartbeat_write('nightly_export', 'running')`,
		`update tidemark.heartbeat set last_beat_at = last_beat_at - interval '5 hours' where executor_id = 'nightly_export'`,
		`update tidemark.pending set next_attempt_at = next_attempt_at - interval '3 hours', created_at = created_at - interval '3 hours'`,
		`select tidemark.stale_check()`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	rough := func(screen string) string {
		screen = regexp.MustCompile(`(?m)^database .*$`).ReplaceAllString(screen, "database")
		screen = regexp.MustCompile(`[0-9]+`).ReplaceAllString(screen, "0")
		screen = regexp.MustCompile(`\b(0[smhd])+\b`).ReplaceAllString(screen, "0s")
		return regexp.MustCompile(` +`).ReplaceAllString(screen, " ")
	}
	readme := rough(read(t, "../../README.md"))
	for _, name := range []string{"status", "doctor"} {
		var out bytes.Buffer
		c := program(t, db.URL, name)
		c.Stdout = &out
		_ = c.Run() // its exit status is that of a watchdog
		if screen := rough("$ tidemark " + name + "\n" + out.String()); !strings.Contains(readme, screen) {
			t.Errorf("the README does not show this:\n%s", screen)
		}
	}
}
