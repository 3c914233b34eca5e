package consoleserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// nginx runs nginx with the location that docs/console.md shows, in front of a console, and returns its address.
func nginx(t *testing.T, console string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: scripts/tools.sh installs it")
	}
	page, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	location := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(page)
	if location == nil {
		t.Fatal("docs/console.md shows no nginx")
	}
	dir := t.TempDir()
	file, address := filepath.Join(dir, "nginx.conf"), fmt.Sprintf("127.0.0.1:%d", testserver.FreePort(t))
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/c;
	server { listen %[2]s; server_name tidemark.example.com; %[3]s }
}
`, dir, address, strings.ReplaceAll(string(location[1]), "http://127.0.0.1:9322", console))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-c", file, "-e", "stderr")
	c.Stdout, c.Stderr = t.Output(), t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Behind a real nginx people sign in, see pages below the prefix and act; the console knows their addresses.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("right horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, config.Console{
		URL: "http://tidemark.example.com/tidemark/", Users: map[string]config.ConsoleUser{"ada": {PasswordHash: config.NewSecret(string(hash)), Role: "admin"}},
		Proxy: config.ConsoleProxy{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	}, db.URL)
	proxy := nginx(t, at)
	jar, _ := cookiejar.New(nil)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}} // the client's address
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	client := http.Client{Jar: jar, Transport: transport}
	do := func(method, path string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+proxy+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "tidemark.example.com"
		r.Header.Set("X-Forwarded-For", "6.6.6.6") // made up by the client
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "http://tidemark.example.com")
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if status, text := do("GET", "/tidemark/sign-in", nil); status != 200 || !strings.Contains(text, `action="/tidemark/sign-in"`) {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := do("POST", "/tidemark/sign-in", url.Values{"name": {"ada"}, "password": {"right horse"}}); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := do("GET", "/tidemark/", nil); status != 200 || !strings.Contains(text, "ada, admin") || !strings.Contains(text, `href="/tidemark/routes"`) {
		t.Errorf("%d %s", status, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+proxy+"/tidemark/changes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "tidemark.example.com"
	stream, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	told := bufio.NewScanner(stream.Body) // the proxy keeps nothing back
	heard := func(event string) {
		t.Helper()
		for told.Scan() {
			if told.Text() == "event: "+event {
				return
			}
		}
		t.Fatalf("no %s comes through: %v", event, told.Err())
	}
	heard("beat")
	form := url.Values{"gate": {"routes.enabled"}, "typed": {"routes.enabled"}, "reason": {"behind a proxy"}}
	if status, text := do("POST", "/tidemark/act/gate-open", form); status != http.StatusSeeOther {
		t.Errorf("%d %s", status, text)
	}
	heard("change")
	var noted, person string
	if err := db.Pool.QueryRow(t.Context(), `select (select reason from tidemark.audit where action = 'sign_in_note'),
		(select person from tidemark.audit where reason = 'behind a proxy')`).Scan(&noted, &person); err != nil {
		t.Fatal(err)
	}
	if noted != "user, from 127.0.0.2" || person != "ada" {
		t.Errorf("the audit has a sign-in %q, and an act of %q", noted, person)
	}
}
