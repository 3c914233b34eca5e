package console

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// apiWrites are all writes of the API: method and path, with a name for each parameter.
func apiWrites(t *testing.T) (all [][2]string) {
	t.Helper()
	text, err := os.ReadFile("../internal/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			if method != "get" {
				all = append(all, [2]string{strings.ToUpper(method), path})
			}
		}
	}
	return all
}

// raw makes a request with headers, as name: value, and follows no redirect.
func (s *site) raw(method, path, body string, headers ...string) (int, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL.Opaque = "//" + r.URL.Host + path // as it is written
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode, answer.Header
}

// A page of another site makes no browser do anything: not by a form, with or without Sec-Fetch-Site, and not by a request of the API that
// needs no leave, such as one with a body of text/plain.
func TestOtherSitesDoNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	wantNoEntry := s.audited()
	writes := apiWrites(t)
	for name := range acts {
		writes = append(writes, [2]string{"POST", "/act/" + name})
	}
	for _, w := range writes {
		path := parameter.ReplaceAllStringFunc(w[1], func(p string) string { return anyParameters.Get(p[1 : len(p)-1]) })
		form := url.Values{"reason": {"test"}, "typed": {"routes.enabled"}}
		for name, v := range anyParameters {
			form[name] = v
		}
		for _, from := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null", "Origin: http://127.0.0.1.evil.example"} {
			body, kind, answered := form.Encode(), "Content-Type: application/x-www-form-urlencoded", "text/html; charset=utf-8"
			if strings.HasPrefix(path, "/api/") {
				body, kind, answered = `{"reason": "x", "open": false}`, "Content-Type: text/plain", "application/problem+json"
			}
			if status, h := s.raw(w[0], path, body, kind, from); status != http.StatusForbidden || h.Get("Content-Type") != answered {
				t.Errorf("%s %s with %s: %d %v", w[0], path, from, status, h)
			}
		}
	}
	wantNoEntry()
	if len(writes) < 100 {
		t.Errorf("only %d writes", len(writes))
	}
}

// No answer can be framed, guessed to be of another kind, or kept by a proxy; no script of another site or of the page itself runs.
func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	pages := []string{"/nope", "/act/nope", "/act/gate-close?gate=routes.enabled", "/api/v1/me", "/api/v1/nope", "/static/app.js", "/static/nope", "/events/find?event=1"}
	for _, path := range s.pagesOf() {
		pages = append(pages, path)
	}
	for _, path := range pages {
		for _, role := range []string{"admin", "stranger"} {
			_, h := s.raw("GET", path, "", "Test-Role: "+role)
			for name, want := range map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
				if !strings.Contains(h.Get(name), want) {
					t.Errorf("%s for %s: %s is %q", path, role, name, h.Get(name))
				}
			}
			if csp := h.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self'") {
				t.Errorf("%s for %s: %s", path, role, csp)
			}
			if cache := h.Get("Cache-Control"); cache != "no-store" && !strings.HasPrefix(path, "/static/") {
				t.Errorf("%s for %s: Cache-Control is %q", path, role, cache)
			}
		}
	}
}

// Paths lead to nothing but pages, and redirects to no other site.
func TestPathsLeadNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{
		"/static/../console.go", "/static/%2e%2e/console.go", "/static/..%2fpages%2flayout.html", "/static/%2e%2e%2f%2e%2e%2fgo.mod", "/static/..%5c..%5cgo.mod", "/pages/layout.html",
		"/static//etc/passwd", "/static/%00", "/api/v1/../../act/maintain", "/events/..%2f..%2fact%2fmaintain", "/routes/..%2f..", "//evil.example/", "//evil.example/%2e%2e", "/%5cevil.example",
		"/events/find?event=//evil.example/", "/events/find?event=%2f%5cevil.example", "/events/find?event=..", "/events/find?event=https://evil.example", "/events/find?event=1%0d%0aSet-Cookie:%20a=b",
		"///evil.example/..", "/act//evil.example", "/.//evil.example",
	} {
		status, h := s.raw("GET", path, "")
		to := h.Get("Location")
		resolved, err := url.Parse(s.url + "/")
		if err != nil {
			t.Fatal(err)
		}
		if to != "" {
			if resolved, err = resolved.Parse(strings.ReplaceAll(to, `\`, "/")); err != nil { // a browser takes \ for /
				t.Errorf("%s leads to %q: %v", path, to, err)
				continue
			}
		}
		if !strings.HasPrefix(resolved.String(), s.url+"/") || h.Get("Set-Cookie") != "" {
			t.Errorf("%s leads to %q: %s", path, to, resolved)
		}
		if status == http.StatusOK {
			t.Errorf("%s is answered: %d", path, status)
		}
	}
}

// hostileNames puts hostile text wherever the database takes it: names, keys, texts of errors, reasons.
func (s *site) hostileNames() {
	s.t.Helper()
	q := "'" + strings.ReplaceAll(hostile, "'", "''") + "'"
	s.exec(`select tidemark.heartbeat_register(` + q + `, 'external_worker', '{}', '10 seconds')`)
	s.exec(`select tidemark.heartbeat_write(` + q + `, ` + q + `)`)
	s.exec(`select tidemark.finding_open('disk', ` + q + `, 'high', ` + q + `)`)
	s.exec(`select tidemark.route_set('sql', jsonb_build_object('description', ` + q + `, 'key_filter', ` + q + `), ` + q + `)`)
	s.exec(`select tidemark.source_set('births', jsonb_build_object('description', ` + q + `))`)
	s.exec(`select tidemark.worker_set('default', jsonb_build_object('description', ` + q + `))`)
	s.exec(`update tidemark.dead_letter set error_code = ` + q + `, error_detail = ` + q)
	s.exec(`update tidemark.pending set last_error = ` + q + ` || ': ' || ` + q)
	s.exec(`update tidemark.worker_cursor set last_run_summary = jsonb_build_object('status', ` + q + `, 'detail', ` + q + `, 'decided', jsonb_build_object(` + q + `, 7))`)
	s.exec(`update tidemark.heartbeat set lease_owner = ` + q)
	s.exec(`alter table tidemark.outbound_route drop constraint route_code_is_a_plain_name; set session_replication_role = replica; update tidemark.outbound_route set route_code = ` + q + ` where route_code = 'hook'`)
	s.exec(`set session_replication_role = replica; update tidemark.outbound_route set target_ref = ` + q + ` where route_code = 'sql'`)
	s.exec(`insert into tidemark.audit (actor, person, action, object, reason, before, after) values (` + strings.Repeat(q+", ", 5) + `jsonb_build_object(` + q + `, ` + q + `), jsonb_build_object(` + q + `, ` + q + `))`)
	s.exec(`update tidemark.letter_job set reason = ` + q + `, requested_by = ` + q)
}

// Whatever text is stored, and wherever it is shown, it is never a part of a page: also in titles and in the labels of charts.
func TestHostileNamesInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	pages := s.pagesOf()
	service := s.populateCommands()
	s.hostileNames()
	s.exec(`update tidemark.command_claim set tenant = '<img src=x onerror=alert(1)>', producer = '"><script>alert(1)</script>', idempotency_key = idempotency_key`)
	pages["service"], pages["command"] = "/commands/"+service, "/commands/"+service+"/parked"
	pages["hostile route"] = "/routes/" + segment(hostile) + "?hours=1"
	pages["hostile search"] = "/events?" + url.Values{"key": {hostile}, "type": {`"><svg onload=alert(1)>`}}.Encode()
	pages["hostile letters"] = "/dead-letters?" + url.Values{"code": {hostile}, "route": {hostile}}.Encode()
	pages["hostile act"] = "/act/route-disable?" + url.Values{"route": {hostile}, hostile: {hostile}}.Encode()
	pages["hostile page"] = "/" + segment(hostile)
	shown := 0
	for name, path := range pages {
		_, text := s.get("", path)
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img src=x") || strings.Contains(text, "<svg onload") || strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s takes stored text for its own: %s", name, text)
		}
		shown += strings.Count(html.UnescapeString(text), hostile)
		must(ctx, t, chromedp.Navigate(s.url+path))
		if n := run(ctx, t, chromedp.Evaluate[int](`document.querySelectorAll("script:not([src]), img, svg [onload], [onerror], [onload], iframe, object, embed, base").length`)); n != 0 {
			t.Errorf("%s has %d elements that no page of ours has", name, n)
		}
	}
	if shown < 60 {
		t.Errorf("hostile text is shown only %d times", shown)
	}
	must(ctx, t, chromedp.Navigate(s.url+pages["hostile route"]))
	if title := run(ctx, t, chromedp.Evaluate[string](`document.title`)); !strings.Contains(title, hostile) {
		t.Errorf("the title is %q", title)
	}
	labels := run(ctx, t, chromedp.Evaluate[[]string](`[...document.querySelectorAll(".plot")].map(p => p.getAttribute("aria-label") + p.textContent)`))
	if len(labels) != 3 {
		t.Errorf("charts: %s", fmt.Sprint(labels))
	}
	must(ctx, t, chromedp.Sleep(6*time.Second)) // a refresh puts stored text into the page too
	if n := run(ctx, t, chromedp.Evaluate[int](`document.querySelectorAll("main script:not([src]), main img, main [onerror]").length`)); n != 0 {
		t.Errorf("a refresh has put %d elements into the page", n)
	}
}
