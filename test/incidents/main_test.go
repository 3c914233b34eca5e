// Package incidents makes what goes wrong at night happen to a real server and a real daemon, and asserts that the operator
// sees its cause in time, that the command on the screen mends it, and that nothing is lost.
package incidents

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var bin string // folder of the binary

func TestMain(m *testing.M) {
	// The incidents wait most of their time: more of them than there are processors go at once.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	tidemarktest.Main(m, func() error {
		chromium.stop()
		return os.RemoveAll(bin)
	})
}

// program builds the command, once for all tests.
var program = sync.OnceValue(func() error {
	var err error
	if bin, err = os.MkdirTemp("", "tidemark-incidents-"); err != nil {
		return err
	}
	// What go build reads, go test does not see: it would repeat an old result. It does see what is looked at here.
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".sql"):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "tidemark"), "../../cmd/tidemark").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// inTime is how long an operator waits for the cause of an incident.
const inTime = 30 * time.Second

// lookEvery is how often the operator looks at the screen.
const lookEvery = time.Second

// night is an installation to which something happens.
type night struct {
	*tidemarktest.DB
	t     *testing.T
	url   string // of the role whose screen it is
	began time.Time
}

func begin(t *testing.T, db *tidemarktest.DB) *night {
	t.Helper()
	if testing.Short() {
		t.Skip("an incident takes up to a minute")
	}
	if err := program(); err != nil {
		t.Fatal(err)
	}
	n := &night{DB: db, t: t, url: db.URL}
	n.exec(`create table public.got (key text, at timestamptz default clock_timestamp());
		create function public.take(event jsonb) returns void language sql as 'insert into public.got (key) values (event ->> ''key'')';
		select tidemark.type_set('shop', 'order.paid');
		select tidemark.stage_set('live', 'test');
		select tidemark.gate_set('routes.enabled', true);
		select tidemark.gate_set('worker.default.enabled', true)`)
	return n
}

func newNight(t *testing.T) *night {
	t.Helper()
	return begin(t, tidemarktest.NewDB(t))
}

// exec runs statements, each in a transaction of its own if the text has only one.
func (n *night) exec(sql string) {
	n.t.Helper()
	conn, err := n.Pool.Acquire(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(n.t.Context(), sql).ReadAll(); err != nil {
		n.t.Fatalf("%s: %v", sql, err)
	}
}

func (n *night) value(sql string) (text string) {
	n.t.Helper()
	if err := n.Pool.QueryRow(n.t.Context(), sql).Scan(&text); err != nil {
		n.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// route sends order.paid to a target.
func (n *night) route(code, kind, ref, more string) {
	n.t.Helper()
	n.exec(fmt.Sprintf(`select tidemark.route_set('%s', '{"domain": "shop", "target_kind": "%s", "target_ref": "%s", "enabled": true, "dry_run": false%s}')`,
		code, kind, ref, more))
}

func (n *night) emit(from, to int) {
	n.t.Helper()
	n.exec(fmt.Sprintf(`select tidemark.emit('shop', 'order.paid', key => i::text, idempotency_key => 'o' || i) from generate_series(%d, %d) i`, from, to))
}

func (n *night) command(line string) *exec.Cmd {
	c := exec.Command("sh", "-c", "exec "+line)
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, calmVariable+"=") }) // the daemon would warn of it
	c.Env = append(own, "TIDEMARK_DATABASE_URL="+n.url, "PATH="+bin+":"+os.Getenv("PATH"))
	return c
}

// start runs a daemon until the test ends.
func (n *night) start(line string) *exec.Cmd {
	n.t.Helper()
	c := n.command(line)
	var log bytes.Buffer
	c.Stderr = &log
	if err := c.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if n.t.Failed() {
			n.t.Logf("%s: %s", line, log.String())
		}
	})
	return c
}

// daemon runs a daemon with this configuration.
func (n *night) daemon(config string) *exec.Cmd {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "tidemark.yaml")
	text := "name: courier\nadmin: {listen: \"\"}\nwebhook: {allow: [127.0.0.0/8]}\n" + config
	if !strings.Contains(config, "lease:") {
		text += "lease: 5s\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	c := n.start("tidemark run --config " + file)
	n.until("the daemon beats", func() bool {
		return n.value(`select count(*)::text from tidemark.heartbeat_health where executor_id = 'daemon/courier' and state = 'alive'`) == "1"
	})
	return c
}

// until polls for what has to come true.
func (n *night) until(what string, ok func() bool) {
	n.t.Helper()
	until(n.t, time.Minute, what, ok)
}

func until(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(most); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", most, what)
		}
	}
}

// login makes the role of a daemon as docs/roles.md has it, and returns its address.
func (n *night) login() string {
	n.t.Helper()
	name := "courier_" + n.Name
	n.exec(fmt.Sprintf(`create role %[1]s login password 'x'; grant tidemark_executor, tidemark_reader to %[1]s; grant insert on public.got to %[1]s`, name))
	n.t.Cleanup(func() { _, _ = n.Pool.Exec(context.Background(), "drop owned by "+name+"; drop role "+name) })
	u, err := url.Parse(n.URL)
	if err != nil {
		n.t.Fatal(err)
	}
	u.User = url.UserPassword(name, "x")
	return u.String()
}

// happens begins the time in which the cause must be seen.
func (n *night) happens() { n.began = time.Now() }

// shown is a cause on the screen.
type shown struct {
	status, title, found string
	next                 []string
}

// screen is tidemark status, as a terminal shows it, and its exit status.
func (n *night) screen() (causes []shown, text string, exit int) {
	n.t.Helper()
	c := n.command("tidemark status")
	var out, remarks bytes.Buffer
	c.Stdout, c.Stderr = &out, &remarks
	err := c.Run()
	var status *exec.ExitError
	if errors.As(err, &status) {
		exit = status.ExitCode()
	} else if err != nil {
		n.t.Fatal(err)
	}
	if exit > 2 {
		n.t.Fatalf("status: %s", remarks.String())
	}
	head := regexp.MustCompile(`^(bad|warn|unknown) +(.*)$`)
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if m := head.FindStringSubmatch(line); m != nil {
			causes = append(causes, shown{status: m[1], title: m[2]})
			continue
		}
		if len(causes) == 0 || len(line) < 9 || line[0] != ' ' {
			if strings.HasPrefix(line, "database") {
				break // the causes are on top
			}
			continue
		}
		last := &causes[len(causes)-1]
		switch strings.TrimSpace(line[:9]) {
		case "found":
			last.found = line[9:]
		case "next", "":
			last.next = append(last.next, line[9:])
		}
	}
	return causes, out.String() + remarks.String(), exit
}

// sees waits until the screen shows the cause, in time, with the exit status that belongs to it, and with these facts.
func (n *night) sees(status, title string, facts ...string) shown {
	n.t.Helper()
	for tick := time.NewTicker(lookEvery); ; <-tick.C {
		causes, text, exit := n.screen()
		took := time.Since(n.began)
		for _, c := range causes {
			if c.status != status || !regexp.MustCompile("^"+regexp.QuoteMeta(title)+"($|[, ])").MatchString(c.title) {
				continue
			}
			if slices.ContainsFunc(facts, func(fact string) bool {
				return !regexp.MustCompile(fact).MatchString(c.title + "\n" + c.found)
			}) {
				continue // not yet all
			}
			// The exit status is that of the worst, which is on top.
			if want := map[string]int{"bad": 1, "unknown": 2, "warn": 0}[causes[0].status]; exit != want {
				n.t.Errorf("exit status %d, want %d:\n%s", exit, want, text)
			}
			if len(c.next) == 0 || len(c.next) > 2 {
				n.t.Errorf("%d commands for %s, want one or two: %q", len(c.next), c.title, c.next)
			}
			n.t.Logf("seen after %s:\n%s", took.Round(100*time.Millisecond), strings.Join(append([]string{c.status + " " + c.title, c.found}, c.next...), "\n"))
			return c
		}
		if took > inTime {
			n.t.Fatalf("not seen within %s: %s %s, with %q\n%s", inTime, status, title, facts, text)
		}
	}
}

// mend runs the commands on the screen as they are; with -browser it does what they do in the console.
func (n *night) mend(c shown) {
	n.t.Helper()
	if len(c.next) == 0 {
		n.t.Fatalf("no command for %s", c.title)
	}
	for _, line := range c.next {
		switch {
		case *inBrowser && n.press(c, line):
		case strings.HasPrefix(line, "tidemark run"):
			n.start(line)
		case strings.HasPrefix(line, "tidemark "):
			if out, err := n.command(line).CombinedOutput(); err != nil {
				n.t.Fatalf("%s: %v: %s", line, err, out)
			}
		default:
			n.psql(line)
		}
	}
}

// psql runs a statement outside of any transaction.
func (n *night) psql(line string) {
	n.t.Helper()
	n.psqlAt(n.t.Context(), line)
}

func (n *night) psqlAt(ctx context.Context, line string) {
	n.t.Helper()
	conn, err := pgx.Connect(ctx, n.URL)
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(ctx, line).ReadAll(); err != nil {
		n.t.Fatalf("%s: %v", line, err)
	}
}

// gone waits until the screen no longer shows the cause.
func (n *night) gone(cause string) {
	n.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(lookEvery); ; <-tick.C {
		causes, text, _ := n.screen()
		left := false
		for _, c := range causes {
			left = left || strings.HasPrefix(c.title, cause)
		}
		if !left {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s is still there:\n%s", cause, text)
		}
	}
}

// handled waits until the SQL target has got events 1 to last, each once.
func (n *night) handled(last int) {
	n.t.Helper()
	n.until(fmt.Sprintf("%d events are handled", last), func() bool {
		return n.value(`select count(distinct key)::text from public.got`) == fmt.Sprint(last)
	})
	if got := n.value(`select count(*)::text from public.got`); got != fmt.Sprint(last) {
		n.t.Errorf("%s effects of %d events", got, last)
	}
}
