package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

const clientSecret = "hunter2/hunter2 ü"

// issuer is a token endpoint. It issues t1, t2, … for an hour each.
type issuer struct {
	mu      sync.Mutex
	asked   []string // the body of each request
	expires string
	answer  func(w http.ResponseWriter) // instead of a token
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, strings.TrimSpace(fmt.Sprint(r.Method, " ", user, ":", password, " ", string(body))))
	if i.answer != nil {
		i.answer(w)
		return
	}
	fmt.Fprintf(w, `{"access_token": "t%d", "token_type": "Bearer", "expires_in": %s}`, len(i.asked), i.expires)
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.asked)
}

func newIssuer(t *testing.T) (*issuer, webhook.TokenOptions) {
	t.Helper()
	i := &issuer{expires: "3600"}
	return i, webhook.TokenOptions{URL: server(t, i.ServeHTTP) + "/token", ClientID: "id", ClientSecret: clientSecret, Allow: loopback}
}

func tokens(t *testing.T, o webhook.TokenOptions) *webhook.Tokens {
	t.Helper()
	made, err := webhook.NewTokens(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

// guarded starts a target that accepts only requests with one of the tokens, and records all tokens that it sees.
func guarded(t *testing.T, good ...string) (url string, seen func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	url = server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got := r.Header.Get("Authorization")
		all = append(all, got)
		for _, g := range good {
			if got == "Bearer "+g {
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "not with %s", got)
	})
	return url, func() []string { mu.Lock(); defer mu.Unlock(); return append([]string{}, all...) }
}

func authorized(t *testing.T, url string, from *webhook.Tokens) *webhook.Sink {
	t.Helper()
	return open(t, webhook.Options{URL: url, Tokens: map[string]*webhook.Tokens{"authorization": from}})
}

// A token is fetched once, shared by sinks, and used until shortly before it expires.
func TestTokenIsKept(t *testing.T) {
	t.Parallel()
	i, o := newIssuer(t)
	o.Scopes, o.Audience = []string{"read", "write"}, "https://crm"
	made := tokens(t, o)
	now := time.Now()
	made.SetNow(func() time.Time { return now })
	url, seen := guarded(t, "t1", "t2")
	a, b := authorized(t, url, made), authorized(t, url, made)
	for _, s := range []*webhook.Sink{a, b, a} {
		check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
	}
	now = now.Add(time.Hour - 31*time.Second)
	check(t, deliver(t, a, paid()), sink.Result{Status: sink.Delivered})
	now = now.Add(2 * time.Second)
	check(t, deliver(t, a, paid()), sink.Result{Status: sink.Delivered})
	if diff := cmp.Diff([]string{"Bearer t1", "Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"}, seen()); diff != "" {
		t.Error(diff)
	}
	one := "POST id:hunter2%2Fhunter2+%C3%BC audience=https%3A%2F%2Fcrm&grant_type=client_credentials&scope=read+write"
	if diff := cmp.Diff([]string{one, one}, i.asked); diff != "" {
		t.Error(diff)
	}
}

func TestTokenByPost(t *testing.T) {
	t.Parallel()
	i, o := newIssuer(t)
	o.Post = true
	if got, err := tokens(t, o).Value(t.Context()); got != "Bearer t1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if want := "POST : client_id=id&client_secret=hunter2%2Fhunter2+%C3%BC&grant_type=client_credentials"; i.asked[0] != want {
		t.Errorf("got %s", i.asked[0])
	}
}

// Concurrent deliveries fetch one token together.
func TestTokenIsGotOnce(t *testing.T) {
	t.Parallel()
	i, o := newIssuer(t)
	made := tokens(t, o)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := made.Value(t.Context()); got != "Bearer t1" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if i.count() != 1 {
		t.Errorf("%d requests", i.count())
	}
}

// After a 401 the sink fetches a new token, once for each delivery. The second answer decides, and the detail shows no token.
func TestTokenIsRefused(t *testing.T) {
	t.Parallel()
	_, o := newIssuer(t)
	url, seen := guarded(t, "t2")
	s := authorized(t, url, tokens(t, o))
	check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
	if diff := cmp.Diff([]string{"Bearer t1", "Bearer t2"}, seen()); diff != "" {
		t.Error(diff)
	}
}

// A target that also refuses fresh tokens costs one request for each event and one token a minute. Another target that
// shares the tokens still gets a new one.
func TestTokenIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	i, o := newIssuer(t)
	shared := tokens(t, o)
	url, seen := guarded(t, "never")
	s := authorized(t, url, shared)
	now := time.Now()
	s.SetNow(func() time.Time { return now })
	refused := sink.Result{Status: sink.Retry, Refused: true, Code: "http_401", Detail: "401 Unauthorized: not with …"}
	want := func(requests, got int) {
		t.Helper()
		check(t, deliver(t, s, paid()), refused)
		if len(seen()) != requests || i.count() != got {
			t.Errorf("%d requests, %d tokens; want %d, %d", len(seen()), i.count(), requests, got)
		}
	}
	want(2, 2)
	want(3, 2)
	want(4, 2)
	now = now.Add(time.Minute - time.Second)
	want(5, 2)
	other, _ := guarded(t, "t3")
	check(t, deliver(t, authorized(t, other, shared), paid()), sink.Result{Status: sink.Delivered})
	want(6, 3)
	now = now.Add(time.Second)
	want(8, 4)
	want(9, 4)
}

// Without a token nothing is sent, and the detail shows no secret.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"refused": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error": "invalid_client", "error_description": "hunter2"}`)
		}, ": 400 invalid_client"},
		"another error": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": "hunter2"}`)
		}, ": 401 Unauthorized"},
		"redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://x/?hunter2")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, ": 307 Temporary Redirect"},
		"no JSON":  {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "hunter2") }, ": the answer has no access_token"},
		"no token": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"token_type": "Bearer"}`) }, ": the answer has no access_token"},
		"another type": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"access_token": "hunter2", "token_type": "mac"}`)
		}, ": its type is not Bearer"},
		"a line break": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"access_token": "hun\r\nter2", "token_type": "bearer"}`)
		}, ": it has characters that no header holds, or too many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, o := newIssuer(t)
			i.answer = c.answer
			url, seen := guarded(t)
			host := strings.TrimSuffix(strings.TrimPrefix(o.URL, "http://"), "/token")
			check(t, deliver(t, authorized(t, url, tokens(t, o)), paid()), sink.Result{Status: sink.Retry, Code: "token", Detail: "no token from " + host + c.want})
			if len(seen()) != 0 {
				t.Errorf("a request was sent: %v", seen())
			}
		})
	}
}

// The token endpoint has the same guard as targets: addresses, ports, no plain http to public addresses.
func TestTokenEndpointIsGuarded(t *testing.T) {
	t.Parallel()
	_, o := newIssuer(t)
	o.URL = "https://inside.test/token"
	o.Allow = nil
	made, err := webhook.NewResolvingTokens(o, resolver("169.254.169.254"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	if got, err := made.Value(t.Context()); err == nil || !strings.Contains(err.Error(), "169.254.169.254 is not public") {
		t.Errorf("got %q, %v", got, err)
	}
	for url, want := range map[string]string{
		"http://login.test/token":          "token url begins with http://, which is for networks in allow only; use https://",
		"https://id:hunter2@login.test/":   "token url holds a user; put an Authorization header into headers",
		"ftp://login.test/hunter2":         "token url must begin with https:// or http://",
		"https://login.test:99999/hunter2": "token url has a port that is not from 1 to 65535",
	} {
		o.URL = url
		if _, err := webhook.NewTokens(o); err == nil || err.Error() != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := webhook.NewTokens(webhook.TokenOptions{URL: "https://login.test"}); err == nil {
		t.Error("NewTokens accepts missing credentials")
	}
}

// A stop ends the wait for a token, also if another delivery fetches it.
func TestTokenIsGivenUp(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 2), make(chan struct{})
	url := server(t, func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release })
	defer close(release)
	made := tokens(t, webhook.TokenOptions{URL: url, ClientID: "id", ClientSecret: clientSecret, Allow: loopback})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := made.Value(ctx)
			done <- err
		}()
	}
	<-asked
	cancel()
	for range 2 {
		if err := <-done; err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzHeaders checks that no header breaks a request and that no error repeats a value.
func FuzzHeaders(f *testing.F) {
	for name, value := range map[string]string{
		"X-A": "b", "authorization": "Bearer hunter2", "X\r\nY": "z", "": "", "Host": "x", "X-B": "a\r\nEvil: 1", "X-C": "\x00", "X-D": "ünï", "ce-id": "1",
	} {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		const secretly = "hunter2hunter2"
		_, err := webhook.New(webhook.Options{URL: "https://shop.test", Secrets: []string{secret}, Headers: map[string]string{name: value + secretly + "\n"}})
		if err == nil || strings.Contains(err.Error(), secretly) && !strings.Contains(name, secretly) {
			t.Errorf("%q: %v", name, err)
		}
		s, err := webhook.New(webhook.Options{URL: "https://shop.test", Secrets: []string{secret}, Headers: map[string]string{name: value}})
		if err != nil {
			return
		}
		defer func() { _ = s.Close() }()
		d := paid()
		request, err := s.Written(&d)
		if err != nil {
			t.Fatalf("%q: %q: %v", name, value, err)
		}
		read, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			t.Fatalf("%q: %q: %v", name, value, err)
		}
		body, err := io.ReadAll(read.Body)
		if err != nil || !bytes.HasPrefix(body, []byte(`{"specversion"`)) || read.Header.Get("Webhook-Signature") == "" ||
			read.Header.Get(name) != strings.Trim(value, " \t") || len(read.Header.Values("Evil")) > 0 && !strings.EqualFold(name, "evil") {
			t.Errorf("%q: %q arrives as %q", name, value, request)
		}
	})
}
