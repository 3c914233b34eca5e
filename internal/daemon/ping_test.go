package daemon_test

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A pinged counts the calls that come.
type pinged struct {
	*httptest.Server
	calls atomic.Int64
}

func newPinged(t *testing.T) *pinged {
	t.Helper()
	p := &pinged{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/ping/s3cret" {
			p.calls.Add(1)
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(p.Close)
	return p
}

// comes waits for another call.
func (p *pinged) comes(t *testing.T, why string) {
	t.Helper()
	before := p.calls.Load()
	eventually(t, "a ping, "+why, func() bool { return p.calls.Load() > before })
}

// stops waits until no call has come for twenty times its interval.
func (p *pinged) stops(t *testing.T, every time.Duration, why string) {
	t.Helper()
	last, at := p.calls.Load(), time.Now()
	eventually(t, "the pings to stop, "+why, func() bool {
		if n := p.calls.Load(); n != last {
			last, at = n, time.Now()
		}
		return time.Since(at) > 20*every
	})
}

func pings(db *tidemarktest.DB, url string) config.Config {
	c := settings(db)
	c.Ping = config.Ping{URL: config.NewSecret(url + "/ping/s3cret"), Every: 50 * time.Millisecond}
	return c
}

// Pings come while nothing stops work. They stop with a cause that does, and come again when it is mended.
func TestPing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := newPinged(t)
	var status atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(target.Close)
	live(t, db, target.URL)
	c := pings(db, p.URL)
	log, stop := runLogged(t, c)
	p.comes(t, "all is well")
	// A warning is no alarm.
	execSQL(t, db, `select tidemark.emit('shop', 'ordr')`)
	eventually(t, "the warning", func() bool { return len(log.lines("cause opened")) == 1 })
	p.comes(t, "with a warning")
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick') from generate_series(1, 5)`)
	eventually(t, "the cause", func() bool { return len(log.lines("cause opened")) == 2 })
	p.stops(t, c.Ping.Every, "since the target is down")
	status.Store(http.StatusOK)
	p.comes(t, "the target is back")
	stop()
	if strings.Contains(log.text.String(), "s3cret") {
		t.Error("the log has the secret")
	}
}

// A daemon whose watch is stuck does not ping, although its process lives.
func TestPingOfAStuckDaemon(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := newPinged(t)
	c := pings(db, p.URL)
	log, _ := runLogged(t, c)
	p.comes(t, "all is well")
	conn := db.Connect(t)
	lock := func(sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	lock(`begin; lock table tidemark.watcher in access exclusive mode`)
	p.stops(t, c.Ping.Every, "since the watch cannot look")
	if n := len(log.lines("cannot watch")); n != 1 {
		t.Errorf("%d lines say that it cannot watch, want 1", n)
	}
	lock(`rollback`)
	p.comes(t, "the watch looks again")
}

// A reload applies the networks and the authorities of webhooks to pings, too.
func TestPingReload(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := newPinged(t)
	secure := httptest.NewTLSServer(p.Config.Handler)
	t.Cleanup(secure.Close)
	c := pings(db, secure.URL)
	c.Webhook.Allow = nil
	c.Webhook.Ports = []int{secure.Listener.Addr().(*net.TCPAddr).Port}
	process := run(t, c)
	c = pings(db, secure.URL)
	c.Webhook.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(c.Webhook.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if restart, err := process.Reload(c); err != nil || len(restart) > 0 {
		t.Errorf("keys %v, %v", restart, err)
	}
	p.comes(t, "its network is allowed, and its authority known")
	c.Webhook.CAFile += ".none"
	if _, err := process.Reload(c); err == nil || !strings.HasPrefix(err.Error(), "ping: ") {
		t.Errorf("a reload without the authority: %v", err)
	}
	p.comes(t, "nothing is changed")
}

// The address is held to the rules of webhooks, and an address that fails is told once, without the URL.
func TestPingIsGuarded(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := newPinged(t)
	c := pings(db, p.URL)
	c.Webhook.Allow = nil
	if _, err := daemon.New(t.Context(), c, daemon.Options{}); err == nil || !strings.HasPrefix(err.Error(), "ping: url begins with http://") {
		t.Errorf("http:// without an allowed network: %v", err)
	}
	c = pings(db, strings.Replace(p.URL, "http://", "https://", 1))
	c.Webhook.Allow = nil
	c.Webhook.Ports = []int{p.Listener.Addr().(*net.TCPAddr).Port}
	log, stop := runLogged(t, c)
	eventually(t, "the line", func() bool { return len(log.lines("cannot ping")) > 0 })
	stop()
	lines := log.lines("cannot ping")
	if text := lines[0]["error"].(string); len(lines) != 1 || !strings.Contains(text, "127.0.0.1 is not public") || strings.Contains(text, "s3cret") {
		t.Errorf("the lines %v", lines)
	}
	if n := p.calls.Load(); n > 0 {
		t.Errorf("%d calls came", n)
	}
}
