package signin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"golang.org/x/crypto/bcrypt"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// door is a server behind a SignIn, which tells who has come in.
type door struct {
	t      *testing.T
	signIn *SignIn
	url    string
	client *http.Client

	mu    sync.Mutex
	notes []string
	now   time.Time
}

func hash(t *testing.T, password string) string {
	t.Helper()
	made, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(made)
}

func newDoor(t *testing.T, o Options) *door {
	t.Helper()
	d := &door{t: t, now: time.Now()}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	o.Note = func(_ context.Context, person, outcome, detail string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.notes = append(d.notes, person+" "+outcome+": "+detail)
		return nil
	}
	server := httptest.NewUnstartedServer(nil)
	if o.OIDC != nil && o.URL == nil {
		o.URL = &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	}
	var err error
	if d.signIn, err = New(o); err != nil {
		t.Fatal(err)
	}
	d.signIn.now = func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now }
	server.Config.Handler = d.signIn.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, known := api.PersonOf(r.Context())
		if !known {
			http.Error(w, "unknown", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "in: %s, %s, %s", p.Name, p.Role, r.URL.RequestURI())
	}))
	server.Start()
	t.Cleanup(server.Close)
	d.url = server.URL + o.Prefix
	jar, _ := cookiejar.New(nil)
	d.client = &http.Client{Jar: jar}
	return d
}

// answered is what a test looks at beside the body.
type answered struct {
	header http.Header
	set    []*http.Cookie // by the answer that led to this one
}

// do makes a request, with headers as name: value, and returns the status, the body and more of the answer.
func (d *door) do(method, path string, form url.Values, headers ...string) (int, string, answered) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		d.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	answer, err := d.client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	more := answered{header: answer.Header}
	if before := answer.Request.Response; before != nil {
		more.set = before.Cookies()
	}
	return answer.StatusCode, strings.TrimSpace(string(text)), more
}

// wants asserts the answer to a request.
func (d *door) wants(status int, text, method, path string, headers ...string) {
	d.t.Helper()
	if got, body, _ := d.do(method, path, nil, headers...); got != status || !strings.Contains(body, text) {
		d.t.Errorf("%s %s %v: %d %s, want %d %s", method, path, headers, got, body, status, text)
	}
}

func (d *door) noted() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.notes, "\n")
}

func (d *door) sleep(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Prefix: "/tm", Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}, "vera": {hash(t, "battery"), api.Viewer}}})
	d.wants(200, "<h1>Tidemark</h1>", "GET", "/routes") // the sign-in page
	// A form of a session that is over changes nothing, and leads back to its page.
	d.wants(401, `name="to" value="/tm/act/x?route=a&amp;b=1"`, "POST", "/act/x", "Referer: "+d.url+"/act/x?route=a&b=1")
	for _, from := range []string{"", "Referer: https://evil.example.com//evil", "Referer: https://evil.example.com/other", "Referer: %"} {
		d.wants(401, "The session is over, and nothing was changed", "POST", "/act/x", "X-Test: 1", cmp.Or(from, "X-Test: 2"))
		d.wants(401, `name="to" value="/tm/"`, "POST", "/act/x", "X-Test: 1", cmp.Or(from, "X-Test: 2"))
	}
	d.wants(401, "unknown", "GET", "/api/v1/status")

	status, body, _ := d.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {"wrong"}})
	if status != 401 || !strings.Contains(body, "wrong") {
		t.Errorf("%d %s", status, body)
	}
	status, body, answer := d.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {"right horse"}, "to": {"/tm/routes?x=1"}})
	if status != 200 || body != "in: ada, admin, /tm/routes?x=1" {
		t.Errorf("%d %s", status, body)
	}
	made := answer.set
	if len(made) != 2 || made[0].Name != cookieName || made[1].Name != deviceCookie {
		t.Fatalf("%+v", made)
	}
	for _, c := range made {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/tm/" || strings.Contains(c.Value, "right") {
			t.Errorf("%+v", c)
		}
	}
	d.wants(200, "in: ada", "GET", "/routes") // with both
	if !strings.Contains(d.noted(), "ada refused: wrong name or password, from 127.0.0.1") || !strings.Contains(d.noted(), "ada signed in: user, from 127.0.0.1") {
		t.Error(d.noted())
	}

	// A session is as good as its signature, its time, its user and the user's password.
	ada, vera := d.signIn.mark(d.signIn.Users["ada"]), d.signIn.mark(d.signIn.Users["vera"])
	later := d.now.Add(time.Hour).Unix()
	for what, cookie := range map[string]string{
		"changed": "x" + made[0].Value, "of another kind": d.signIn.sign("attempt", ticket{"ada", "admin", "user", later, ada}),
		"over": d.signIn.sign("session", ticket{"ada", "admin", "user", d.now.Unix(), ada}), "gone": d.signIn.sign("session", ticket{"eve", "admin", "user", later, ada}),
		"of another password": d.signIn.sign("session", ticket{"ada", "admin", "user", later, vera}), "of no password": d.signIn.sign("session", ticket{"ada", "admin", "user", later, ""}),
		"of a provider that is gone": d.signIn.sign("session", ticket{"ada", "admin", "provider", later, ""}), "of none": d.signIn.sign("session", ticket{"ada", "admin", "", later, ada}),
		"empty": "", "a dot": ".",
	} {
		d.client.Jar, _ = cookiejar.New(nil)
		if status, _, _ := d.do("GET", "/api/v1/status", nil, "Cookie: "+cookieName+"="+cookie); status != 401 {
			t.Errorf("a session that is %s is let in: %d", what, status)
		}
	}
	// A role that was taken away is gone at once.
	promoted := d.signIn.sign("session", ticket{"vera", "admin", "user", later, vera})
	d.wants(200, "in: vera, viewer", "GET", "/", "Cookie: "+cookieName+"="+promoted)
	d.wants(200, "in: ada", "GET", "/", "Cookie: "+cookieName+"="+made[0].Value)
	d.sleep(session)
	d.wants(401, "unknown", "GET", "/api/v1/status", "Cookie: "+cookieName+"="+made[0].Value)

	d.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {"right horse"}})
	d.wants(200, "in: ada", "GET", "/")
	d.do("POST", "/sign-out", url.Values{})
	d.wants(401, "unknown", "GET", "/api/v1/status")
	if !strings.Contains(d.noted(), "ada signed out") {
		t.Error(d.noted())
	}
}

// Ten refusals a minute, for a client and for a name; then even the right password has to wait.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}}, Tokens: map[string]Token{"ci": {sum("t0ken"), api.Viewer}}})
	try := func(password string) int {
		status, _, _ := d.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {password}})
		return status
	}
	for i := range tryLimit {
		if status := try(fmt.Sprint("guess", i)); status != 401 {
			t.Fatalf("guess %d: %d", i, status)
		}
	}
	if status := try("right horse"); status != 429 {
		t.Errorf("guess 11, the right one: %d", status)
	}
	d.sleep(18 * time.Second)
	for path, kind := range map[string]string{"/api/v1/status": "application/problem+json", "/": "text/html; charset=utf-8"} {
		status, text, answer := d.do("GET", path, nil, "Authorization: Bearer guess")
		if status != 429 || answer.header.Get("Content-Type") != kind || answer.header.Get("Retry-After") != "42" || !strings.Contains(text, "Try again in 42 s.") {
			t.Errorf("%s: %d %v %s", path, status, answer.header, text)
		}
	}
	if status, text, answer := d.do("POST", "/sign-in", url.Values{"name": {"ada"}}); status != 429 || answer.header.Get("Retry-After") != "42" || !strings.Contains(text, "Try again in 42 s.") {
		t.Errorf("%d %v %s", status, answer.header, text)
	}
	d.wants(200, "in: ci", "GET", "/", "Authorization: Bearer t0ken") // strangers behind the same proxy lock no program out
	if n := strings.Count(d.noted(), "refused"); n != tryLimit {
		t.Errorf("%d refusals are noted: the audit must not be flooded", n)
	}
	d.sleep(tryPeriod)
	if status := try("right horse"); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}

// Strangers who guess at a name, from her address or others, lock no one out of a browser in which she has signed in before. The
// guesses in that browser are limited too, and it opens no other name.
func TestStrangersLockNoOneOut(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}, "eve": {hash(t, "red pear"), api.Viewer}}})
	browser := func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Jar: jar}
	}
	try := func(in *http.Client, name, password string) int {
		d.client = in
		status, _, _ := d.do("POST", "/sign-in", url.Values{"name": {name}, "password": {password}})
		return status
	}
	adas, eves, stranger := browser(), browser(), browser()
	for _, in := range []struct {
		client         *http.Client
		name, password string
	}{{adas, "ada", "right horse"}, {eves, "eve", "red pear"}} {
		if status := try(in.client, in.name, in.password); status != 200 {
			t.Fatalf("%s: %d", in.name, status)
		}
		if status, _, _ := d.do("POST", "/sign-out", url.Values{}); status != 200 {
			t.Fatalf("%s signs out: %d", in.name, status)
		}
	}
	for range tryLimit {
		try(stranger, "ada", "guess")
	}
	for name, in := range map[string]*http.Client{"a new browser": browser(), "a stranger": stranger, "another person's browser": eves} {
		if status := try(in, "ada", "right horse"); status != 429 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status := try(adas, "ada", "right horse"); status != 200 {
		t.Errorf("her own browser: %d", status)
	}
	for range tryLimit {
		try(adas, "ada", "guess")
	}
	if status := try(adas, "ada", "right horse"); status != 429 {
		t.Errorf("her own browser after guesses in it: %d", status)
	}
}

// Behind a proxy a client is who the proxy says; what the client says of itself, and what others than the proxy say, does not count.
func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	users := map[string]User{"ada": {hash(t, "right horse"), api.Admin}}
	behind := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		behind   []netip.Prefix
		passed   []string // X-Forwarded-For
		from     string
		remarked string
	}{
		{nil, []string{"1.2.3.4"}, "127.0.0.1", "of no proxy"},
		{behind, nil, "127.0.0.1", "says nothing"},
		{behind, []string{"1.2.3.4"}, "1.2.3.4", "one proxy"},
		{behind, []string{"6.6.6.6, 1.2.3.4", "10.1.1.1"}, "1.2.3.4", "two proxies, and what the client made up"},
		{behind, []string{"nonsense, 10.1.1.1"}, "10.1.1.1", "malformed"},
		{behind, []string{"::ffff:1.2.3.4"}, "1.2.3.4", "mapped"},
	} {
		d := newDoor(t, Options{Users: users, Behind: c.behind})
		var headers []string
		for _, p := range c.passed {
			headers = append(headers, "X-Forwarded-For: "+p)
		}
		d.do("POST", "/sign-in", url.Values{"name": {"x"}, "password": {"guess"}}, headers...)
		if got := d.noted(); !strings.HasSuffix(got, ", from "+c.from) {
			t.Errorf("%s: noted %q, want from %s", c.remarked, got, c.from)
		}
	}
	d := newDoor(t, Options{Users: users, Behind: behind})
	for i := range tryLimit {
		d.do("POST", "/sign-in", url.Values{"name": {fmt.Sprint("n", i)}, "password": {"guess"}}, "X-Forwarded-For: 1.2.3.4")
	}
	d.wants(429, "Try again in", "GET", "/", "X-Forwarded-For: 1.2.3.4", "Authorization: Basic YWRhOnJpZ2h0IGhvcnNl")
	d.wants(200, "in: ada", "GET", "/", "X-Forwarded-For: 1.2.3.5", "Authorization: Basic YWRhOnJpZ2h0IGhvcnNl")
}

// A proxy that the configuration does not name is logged, once.
func TestUnnamedProxyIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for behind, want := range map[string]int{"10.0.0.0/8": 1, "192.0.2.0/24": 0} { // httptest's requests are from 192.0.2.1
		log.Reset()
		s, err := New(Options{Behind: []netip.Prefix{netip.MustParsePrefix(behind)}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
		s.client(r)
		if log.Len() > 0 {
			t.Errorf("there is no proxy: %s", log.String())
		}
		r.Header.Set("X-Forwarded-For", "1.2.3.4")
		s.client(r)
		s.client(r)
		if got := strings.Count(log.String(), "console.proxy.from does not name"); got != want {
			t.Errorf("behind %s: logged %d times, want %d: %s", behind, got, want, log.String())
		}
	}
}

// Clients without number take the limit off neither a name nor the refusals that are noted, and lock no one out.
func TestManyClients(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{
		Users:  map[string]User{"ada": {hash(t, "right horse"), api.Admin}, "vera": {hash(t, "battery"), api.Viewer}},
		Behind: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	try := func(name, password, from string) int {
		d.client.Jar, _ = cookiejar.New(nil)
		status, _, _ := d.do("POST", "/sign-in", url.Values{"name": {name}, "password": {password}}, "X-Forwarded-For: "+from)
		return status
	}
	// A host has all addresses of a /64.
	for i := range tryLimit {
		d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer guess", fmt.Sprintf("X-Forwarded-For: 2001:db8::%x", i+1))
	}
	d.wants(429, "too many", "GET", "/api/v1/status", "Authorization: Bearer guess", "X-Forwarded-For: 2001:db8::ffff:1")
	d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer guess", "X-Forwarded-For: 2001:db8:0:1::1")

	for i := range triesKept {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
		r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)
		_, _ = d.signIn.token(r, "guess")
	}
	for i := range tryLimit {
		if status := try("ada", fmt.Sprint("guess", i), fmt.Sprintf("192.0.2.%d", i)); status != 401 {
			t.Fatalf("guess %d: %d", i, status)
		}
	}
	if status := try("ada", "right horse", "192.0.2.100"); status != 429 {
		t.Errorf("guess 11, the right one: %d", status)
	}
	if status := try("vera", "battery", "192.0.2.101"); status != 200 {
		t.Errorf("a person that no one has guessed at: %d", status)
	}
	before := len(d.noted())
	d.wants(429, "too many", "GET", "/api/v1/status", "Authorization: Bearer guess", "X-Forwarded-For: 192.0.2.102")
	if len(d.noted()) != before {
		t.Error("a refusal that is not counted is noted: the audit must not be flooded")
	}
}

// Guesses that come at once are limited like those that come one by one.
func TestBruteForceAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}}})
	var compared atomic.Int64
	var guesses sync.WaitGroup
	for range 20 * tryLimit {
		guesses.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/sign-in", http.NoBody)
			if _, err := d.signIn.check(r, "ada", "guess"); errors.Is(err, errUnknown) {
				compared.Add(1)
			}
		})
	}
	guesses.Wait()
	if n := compared.Load(); n != tryLimit {
		t.Errorf("%d guesses were compared", n)
	}
}

// A session ends with the password that it began with, although another server with the same key knows the user.
func TestSessionsEndWithThePassword(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, 32)
	with := func(password string) *door {
		return newDoor(t, Options{Key: key, Users: map[string]User{"ada": {hash(t, password), api.Admin}}})
	}
	before := with("right horse")
	_, _, answer := before.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {"right horse"}})
	cookie := "Cookie: " + cookieName + "=" + answer.set[0].Value
	before.wants(200, "in: ada", "GET", "/api/v1/status", cookie)
	with("left mule").wants(401, "unknown", "GET", "/api/v1/status", cookie)
}

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

func TestTokens(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Tokens: map[string]Token{"ci": {sum("t0ken"), api.Operator}}})
	d.wants(200, "in: ci, operator, /api/v1/status", "GET", "/api/v1/status", "Authorization: Bearer t0ken")
	d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer t0ke")
	d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer ")
	d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer "+sum("t0ken"))
	d.wants(200, "People cannot sign in here", "GET", "/")
}

// The header counts in requests of the proxy alone.
func TestProxy(t *testing.T) {
	t.Parallel()
	o := Options{Proxy: &Proxy{Header: "X-Forwarded-User", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Roles: map[string]api.Role{"ada": api.Admin}, Role: api.Viewer}}
	d := newDoor(t, o)
	d.wants(200, "in: ada, admin", "GET", "/", "X-Forwarded-User: ada")
	d.wants(200, "in: eve, viewer", "GET", "/", "X-Forwarded-User: eve")
	d.wants(401, "unknown", "GET", "/api/v1/status", "X-Forwarded-User: ada", "X-Forwarded-User: eve")
	d.wants(401, "unknown", "GET", "/api/v1/status")
	o.Proxy.From = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	d.wants(401, "unknown", "GET", "/api/v1/status", "X-Forwarded-User: ada", "X-Forwarded-For: 10.0.0.1", "X-Real-IP: 10.0.0.1")
	o.Proxy.From, o.Proxy.Role = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 0
	d.wants(401, "unknown", "GET", "/api/v1/status", "X-Forwarded-User: eve")
}

// Neither another site's page nor another site's name for this address gets in, and no link leads out.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{})
	d.wants(200, "in: local, admin", "GET", "/")
	d.wants(403, "cross-origin", "POST", "/act/x", "Sec-Fetch-Site: cross-site")
	d.wants(403, "cross-origin", "POST", "/act/x", "Origin: https://evil.example")
	d.wants(403, "console.url", "GET", "/", "Host: evil.example")
	for path, kind := range map[string]string{"/api/v1/status": "application/problem+json", "/act/x": "text/html; charset=utf-8"} {
		for _, why := range []struct{ header, hint string }{
			{"Host: evil.example", "Set console.url"},
			{"Sec-Fetch-Site: cross-site", map[string]string{"/act/x": "Open the page in this console", "/api/v1/status": "Programs send no Origin"}[path]},
		} {
			status, text, answer := d.do("POST", path, nil, why.header)
			if status != 403 || answer.header.Get("Content-Type") != kind || !strings.Contains(text, why.hint) || answer.header.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s with %s: %d %v %s", path, why.header, status, answer.header, text)
			}
		}
	}
	d.wants(200, "in: local", "GET", "/", "Host: localhost:1")
	_, _, answer := d.do("GET", "/", nil)
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
		if got := answer.header.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	s, err := New(Options{Prefix: "/tm"})
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		"/tm/routes?x=1": "/tm/routes?x=1", "https://evil.example/": "/tm/", "//evil.example": "/tm/", "/tm//evil": "/tm//evil", `/\evil.example`: "/tm/",
		"/tm/\\evil": "/tm/", "javascript:alert(1)": "/tm/", "/other": "/tm/", "": "/tm/", "/tm/sign-out": "/tm/", "/tm/\r\nX: y": "/tm/", "https:/tm/x": "/tm/",
	} {
		if got := s.local(to); got != want {
			t.Errorf("%q leads to %q", to, got)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Users: map[string]User{"ada": {"secret", api.Admin}}}, {Tokens: map[string]Token{"ci": {"secret", api.Admin}}}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// A whole sign-in at a real provider.
func TestProvider(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	issuer := "http://" + server.Listener.Addr().String() + "/"
	client := &storage.Client{} // known once the console has an address
	users := storage.NewUserStore(issuer)
	provider := exampleop.SetupServer(issuer, storage.NewStorageWithClients(users, map[string]*storage.Client{"web": client}), nil, false)
	server.Config.Handler = provider
	server.Start()
	t.Cleanup(server.Close)
	host, _, _ := strings.Cut(strings.TrimPrefix(issuer, "http://"), ":")
	name := "test-user@" + host

	o := Options{Key: bytes.Repeat([]byte{7}, 32), OIDC: &OIDC{
		Issuer: issuer, ClientID: "web", ClientSecret: "secret", Claim: "preferred_username", Roles: map[string]api.Role{name: api.Operator},
		Client: &http.Client{Timeout: 10 * time.Second},
	}}
	d := newDoor(t, o)
	*client = *storage.WebClient("web", "secret", d.url+"/sign-in/callback")

	d.wants(200, "identity provider", "GET", "/routes")
	user := users.GetUserByUsername(name)
	signIn := func() (status int, text, query string) {
		t.Helper()
		d.client.Jar, _ = cookiejar.New(nil)
		_, page, _ := d.do("GET", "/sign-in/provider?to=/routes", nil)
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(page)
		if id == nil {
			t.Fatalf("the provider shows %s", page)
		}
		answer, err := d.client.PostForm(issuer+"login/username", url.Values{"id": {id[1]}, "username": {name}, "password": {"verysecure"}})
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		all, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, html.UnescapeString(string(all)), answer.Request.Response.Request.URL.RawQuery
	}
	// People may choose their preferred_username: it names them only where the operator says so.
	for _, c := range []struct {
		claim    string
		verified bool
		want     string
	}{
		{"", false, "in: id1 at " + strings.Trim(strings.TrimPrefix(issuer, "http:"), "/") + ", operator, /routes"},
		{"sub", true, "in: id1, operator"},
		{"preferred_username", true, "in: " + name + ", operator"},
		{"email", true, "in: " + user.Email + ", operator"},
		{"email", false, "has not verified your e-mail address"},
		{"nickname", true, `does not tell "nickname" of you`},
		{"", true, "in: " + user.Email + ", operator, /routes"},
	} {
		o.OIDC.Name, user.EmailVerified = c.claim, c.verified
		if status, text, _ := signIn(); !strings.Contains(text, c.want) {
			t.Errorf("named by %q: %d %s, want %q", c.claim, status, text, c.want)
		}
	}
	_, _, query := signIn()

	// A session does not outlive its provider, nor the client there.
	at, _ := url.Parse(d.url + "/")
	cookie := d.client.Jar.Cookies(at)[0]
	if cookie.Name != cookieName {
		t.Fatalf("the browser has %v", cookie)
	}
	for _, c := range []struct {
		issuer, client string
		status         int
		want           string
	}{{issuer, "web", 200, "in: " + user.Email}, {"https://other.example", "web", 401, "unknown"}, {issuer, "other", 401, "unknown"}} {
		again := newDoor(t, Options{Key: o.Key, OIDC: &OIDC{Issuer: c.issuer, ClientID: c.client}})
		again.wants(c.status, c.want, "GET", "/api/v1/status", "Cookie: "+cookie.String())
	}

	// What was not begun here is refused: a forged answer of the provider, and one that is used twice.
	d.wants(403, "not begun here", "GET", "/sign-in/callback?"+query)
	d.client.Jar, _ = cookiejar.New(nil)
	d.wants(403, "not begun here", "GET", "/sign-in/callback?code=x&state=y")
	d.do("GET", "/sign-in/provider", nil)
	d.wants(403, "not begun here", "GET", "/sign-in/callback?code=x&state=y")
	d.wants(401, "unknown", "GET", "/api/v1/status")

	before := strings.Count(d.noted(), "refused")
	for range 3 * tryLimit {
		d.wants(403, "not begun here", "GET", "/sign-in/callback?code=x&state=y")
	}
	if n := strings.Count(d.noted(), "refused") - before; n > tryLimit {
		t.Errorf("%d refusals are noted: the audit must not be flooded", n)
	}

	server.Close()
	other := newDoor(t, o)
	other.wants(502, "cannot be reached", "GET", "/sign-in/provider")
}

// While the provider does not answer, all wait for one question, and no longer than they want to. That it failed counts for a while.
func TestProviderThatHangs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	came, release := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		came <- struct{}{}
		<-release
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	fail := sync.OnceFunc(func() { close(release) })
	t.Cleanup(fail)
	d := newDoor(t, Options{OIDC: &OIDC{Issuer: server.URL, ClientID: "web", Client: server.Client()}})

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := d.signIn.discover(ctx)
		left <- err
	}()
	<-came
	leave()
	if err := within10s(t, left); !errors.Is(err, context.Canceled) {
		t.Errorf("one who has left waits for the provider: %v", err)
	}
	const others = 20
	answers := make(chan error, others)
	for range others {
		go func() {
			_, err := d.signIn.discover(t.Context())
			answers <- err
		}()
	}
	fail()
	for range others {
		if err := within10s(t, answers); err == nil {
			t.Error("a provider that is down has a configuration")
		}
	}
	d.wants(502, "cannot be reached", "GET", "/sign-in/provider")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	d.sleep(failureKept)
	d.wants(502, "cannot be reached", "GET", "/sign-in/provider")
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times after a while", n)
	}
}

func within10s[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
	}
	return v
}

// Who has no role does not come in.
func TestRolesOfGroups(t *testing.T) {
	t.Parallel()
	o := OIDC{Name: "sub", Roles: map[string]api.Role{"ops": api.Operator, "root": api.Admin}}
	for claims, want := range map[string]api.Person{
		"":          {Name: "s1"},
		"ops":       {Name: "s1", Role: api.Operator},
		"root,ops":  {Name: "s1", Role: api.Admin},
		"strangers": {Name: "s1"},
	} {
		var groups []any
		for _, g := range strings.Split(claims, ",") {
			groups = append(groups, g)
		}
		if got, err := o.person("s1", map[string]any{"sub": "s1", "groups": groups}); got != want || err != nil {
			t.Errorf("%s: %+v, %v", claims, got, err)
		}
	}
	if p, err := o.person("s1", map[string]any{"sub": "s1", "groups": "ops"}); err != nil || p != (api.Person{Name: "s1", Role: api.Operator}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A session that a stranger has put into the browser before the sign-in is not the one that the person gets, and does not become hers.
func TestSessionsAreNotFixed(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}, "eve": {hash(t, "red pear"), api.Viewer}}})
	_, _, answer := d.do("POST", "/sign-in", url.Values{"name": {"eve"}, "password": {"red pear"}})
	planted := cookieName + "=" + answer.set[0].Value
	d.client.Jar, _ = cookiejar.New(nil)
	d.wants(200, "in: eve, viewer", "GET", "/", "Cookie: "+planted)
	status, body, answer := d.do("POST", "/sign-in", url.Values{"name": {"ada"}, "password": {"right horse"}}, "Cookie: "+planted)
	if status != 200 || !strings.Contains(body, "in: ada, admin") || len(answer.set) == 0 || cookieName+"="+answer.set[0].Value == planted {
		t.Errorf("%d %s %v", status, body, answer.set)
	}
	d.client.Jar, _ = cookiejar.New(nil)
	d.wants(200, "in: eve, viewer", "GET", "/", "Cookie: "+planted)
}

// A refusal is answered before the body has come, which it need never do.
func TestBodiesOfRefusedAreNotRead(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Tokens: map[string]Token{"ci": {SHA256: sum("a token"), Role: api.Viewer}}})
	for range tryLimit {
		d.wants(401, "unknown", "GET", "/api/v1/status", "Authorization: Bearer guess")
	}
	address := strings.TrimPrefix(d.url, "http://")
	for headers, want := range map[string]int{
		"Host: " + address + "\r\nAuthorization: Bearer guess":       http.StatusTooManyRequests,
		"Host: " + address + "\r\nOrigin: https://elsewhere.example": http.StatusForbidden,
		"Host: elsewhere.example":                                    http.StatusForbidden,
	} {
		for _, path := range []string{"/api/v1/workers/default/pause", "/routes"} {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\n%s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path, headers)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s to %s: %v", headers, path, err)
			}
			if answer.StatusCode != want {
				t.Errorf("%s to %s: %s", headers, path, answer.Status)
			}
			answer.Body.Close()
		}
	}
}
