package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// signedBy tells which of the keys signed a request, by Standard Webhooks.
func signedBy(r *http.Request, body []byte, keys map[string]string) string {
	for name, key := range keys {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
		if err != nil {
			return err.Error()
		}
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
		if strings.Contains(r.Header.Get("webhook-signature"), base64.StdEncoding.EncodeToString(mac.Sum(nil))) {
			return name
		}
	}
	return "nobody"
}

// A4: at SIGHUP the daemon reads its configuration again. It keeps its leases, an invalid configuration changes nothing, and
// the log names the keys that need a restart.
func TestReload(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	for _, name := range []string{"old", "new"} {
		keys[name] = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))
	}
	var mu sync.Mutex
	var signers []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		signers = append(signers, signedBy(r, body, keys))
	}))
	t.Cleanup(receiver.Close)
	at, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}

	db := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`select tidemark.type_set('test', 'tick')::text`, `select tidemark.stage_set('live', 'test')::text`,
		fmt.Sprintf(`select tidemark.route_set('app', '{"domain": "test", "target_kind": "webhook", "target_ref": "%s", "options": {"secret": "app"},
			"enabled": true, "dry_run": false}')::text`, receiver.URL),
		`select tidemark.gate_set('routes.enabled', true)::text`, `select tidemark.gate_set('worker.default.enabled', true)::text`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	file, secret, log := filepath.Join(dir, "tidemark.yaml"), filepath.Join(dir, "secret"), filepath.Join(dir, "log")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const common = "name: a\nadmin: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\nconsole: {listen: \"127.0.0.1:0\"}\nsecrets: {app: [\"${file:%s}\"]}\n"
	allowed := fmt.Sprintf("webhook: {allow: [127.0.0.0/8], ports: [%s]}\n", at.Port())
	write(secret, keys["old"])
	write(file, fmt.Sprintf(common, secret))

	c := program(t, db.URL, "run", "--config", file)
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stderr = out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	logged := func(text string) int {
		all, _ := os.ReadFile(log)
		return strings.Count(string(all), text)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		all, _ := os.ReadFile(log)
		t.Logf("%s", all)
	})
	const lease = `select concat_ws(' ', lease_owner, lease_epoch) from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	eventually(t, "a lease", func() bool { return strings.HasPrefix(answer(t, db, lease), "a/") })
	owner := answer(t, db, lease)
	arrived := func(want ...string) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), `select tidemark.emit_strict('test', 'tick', '{}')`); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the events to arrive", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(signers) >= len(want)
		})
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(signers) != fmt.Sprint(want) {
			t.Errorf("signed by %v, want %v", signers, want)
		}
	}
	hangup := func(says string) {
		t.Helper()
		before := logged(says)
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the log to say "+says, func() bool { return logged(says) > before })
	}

	// The address is refused, until the configuration allows it.
	if _, err := db.Pool.Exec(t.Context(), `select tidemark.emit_strict('test', 'tick', '{}')`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal of the address", func() bool {
		return answer(t, db, `select ((select count(*) from tidemark.pending) + (select count(*) from tidemark.dead_letter))::text`) == "1"
	})
	if _, err := db.Pool.Exec(t.Context(), `update tidemark.pending set next_attempt_at = clock_timestamp() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	write(file, fmt.Sprintf(common, secret)+allowed)
	hangup(`"msg":"reloaded"`)
	arrived("old")

	// A changed secret file is read again too.
	write(secret, keys["new"])
	hangup(`"msg":"reloaded"`)
	arrived("old", "new")

	write(file, fmt.Sprintf(common, secret)+allowed+"lease: 5s\nbatch: {max: 7}\n")
	hangup(`"keys":"lease, batch"`)
	arrived("old", "new", "new")

	write(file, fmt.Sprintf(common, secret)+allowed+"lease: never\nno_such_key: 1\n")
	hangup(`"msg":"not reloaded: the configuration is not valid, the old one stays"`)
	for _, problem := range []string{"no_such_key", "lease"} {
		if logged(problem) == 0 {
			t.Errorf("the log does not name %s", problem)
		}
	}
	arrived("old", "new", "new", "new")
	// The console of the daemon tests the target with the secrets of now, once for each Idempotency-Key.
	all, _ := os.ReadFile(log)
	console := regexp.MustCompile(`"the console listens","url":"([^"]+)"`).FindSubmatch(all)
	if console == nil {
		t.Fatal("the console does not listen")
	}
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, string(console[1])+"api/v1/routes/app/test", strings.NewReader(`{"reason": "new key"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "one")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || !strings.Contains(string(text), `"outcome":"delivered"`) {
			t.Errorf("%v: %s", err, text)
		}
	}
	arrived("old", "new", "new", "new", "new", "new") // the test, and one event more
	admin := regexp.MustCompile(`"admin":"([^"]+)"`).FindSubmatch(all)
	if admin == nil {
		t.Fatal("the admin server does not listen")
	}
	scrape, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+string(admin[1])+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := http.DefaultClient.Do(scrape)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(metrics.Body)
	_ = metrics.Body.Close()
	if want := `tidemark_console_requests_total{page="POST /api/v1/routes/{route}/test",status="200"} 2`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: the daemon's metrics are without %s", err, want)
	}
	if now := answer(t, db, lease); now != owner {
		t.Errorf("the lease was of %s, and is of %s: it was given up", owner, now)
	}
	if logged(keys["old"])+logged(keys["new"]) > 0 {
		t.Error("the log shows a key")
	}
}

// A4: a second daemon on one host names the port that is taken, and the setting that chooses another.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte("admin: {listen: "+taken.Addr().String()+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, tidemarktest.NewDB(t).URL, "run", "--config", file)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	done := make(chan error, 1)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- c.Wait() }()
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		_ = c.Process.Kill()
		err = <-done
	}
	var exit *exec.ExitError
	said := stderr.String()
	if !errors.As(err, &exit) || exit.ExitCode() != cli.StatusFailed {
		t.Errorf("%v", err)
	}
	if !strings.Contains(said, "admin.listen: "+taken.Addr().String()+" is taken") || strings.Contains(said, "database") {
		t.Errorf("it says %q", said)
	}
}
