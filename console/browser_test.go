package console

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axe finds what people with disabilities cannot use. https://github.com/dequelabs/axe-core, version 4.14.0, MPL-2.0.
//
//go:embed testdata/axe.min.js
var axe string

// browser starts Chromium. Without one the test is skipped.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("Chromium is not installed: scripts/tools.sh installs it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true)))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // it waits until the browser has ended
		cancel()
	})
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// must does steps in the browser.
func must(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	for i, step := range steps {
		if err := chromedp.Do(ctx, step); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

// run does an action in the browser and returns what it gives.
func run[T any](ctx context.Context, t *testing.T, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// call sends a command to the browser.
func call[P, R any](ctx context.Context, t *testing.T, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

// pagesOf are all pages that a populated site has, by the name of their picture.
func (s *site) pagesOf() map[string]string {
	return map[string]string{
		"overview": "/", "routes": "/routes", "route": "/routes/sql?backtest=1", "events": "/events",
		"event": fmt.Sprintf("/events/%d?why=sql", value[int64](s, `select min(seq) from tidemark.outbox`)), "waiting": "/waiting", "dead-letters": "/dead-letters",
		"dead-letter": fmt.Sprintf("/dead-letters/%d", value[int64](s, `select min(id) from tidemark.dead_letter`)), "workers": "/workers", "worker": "/workers/default",
		"tables": "/sources", "source": "/sources/births", "commands": "/commands", "heartbeats": "/heartbeats", "findings": "/findings", "audit": "/audit",
		"settings": "/settings", "act": "/act/letters-replay?route=sql", "not-found": "/nope",
	}
}

// Every page is usable with a screen reader and a keyboard, in both themes, and fits a telephone. With TIDEMARK_PICTURES a
// picture of each page, theme and width is written there. Those of docs/images are made by TestPictures of test/incidents.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	s.verified()
	pictures := os.Getenv("TIDEMARK_PICTURES")
	pages := s.pagesOf()
	pages["service"] = "/commands/" + s.populateCommands()
	pages["command"] = pages["service"] + "/parked"
	for name, path := range pages {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1440, 390} {
				call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
				})
				must(ctx, t, chromedp.EmulateViewport(width, 900), chromedp.Navigate(s.url+path))
				run(ctx, t, chromedp.Evaluate[chromedp.Void](axe+"\n0"))
				violations := run(ctx, t, chromedp.Evaluate[[]string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(
					r => r.violations.map(v => v.id + ": " + v.help + " " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" | ")))`, chromedp.EvalAwaitPromise))
				if len(violations) > 0 {
					t.Errorf("%s, %s, %d wide: %s", path, theme, width, strings.Join(violations, "\n"))
				}
				if wide := run(ctx, t, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`)); wide > width {
					t.Errorf("%s is %d wide in a window of %d", path, wide, width)
				}
				if pictures != "" {
					file := filepath.Join(pictures, fmt.Sprintf("console-%s-%s-%d.png", name, theme, width))
					if err := os.WriteFile(file, run(ctx, t, chromedp.FullScreenshot(100)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// An operator mends what is wrong from the first screen, by the button there: with the mouse, with the keyboard alone, and
// without JavaScript.
func TestMendInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	const link = `.cause a[href^="/act/letters-replay"]`
	const open = `select count(*) from tidemark.dead_letter where resolved_at is null`
	for _, how := range []string{"mouse", "keyboard", "no script"} {
		s.exec(`create or replace function public.fails(jsonb) returns void language plpgsql as $f$ begin raise exception 'no'; end $f$`)
		s.exec(`select tidemark.emit('shop', 'order')`)
		s.exec(`select tidemark.route_worker_run('default')`)
		if value[int](s, open) == 0 {
			t.Fatal("there is no dead letter")
		}
		s.exec(`create or replace function public.fails(jsonb) returns void language sql as $f$ $f$`) // the target is mended
		// Answers are shared for a moment. Any act forgets them; this one is refused.
		s.request("", http.MethodPost, "/act/letter-replay", url.Values{"id": {"999999"}})
		call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: how == "no script"})
		must(ctx, t, chromedp.Navigate(s.url+"/"))
		if how == "keyboard" {
			tabTo(ctx, t, link)
			must(ctx, t, chromedp.KeyEvent(kb.Enter), chromedp.WaitReady(chromedp.CSS("form.act")))
			tabTo(ctx, t, `input[name="reason"]`)
			must(ctx, t, chromedp.KeyEvent("mended"))
			tabTo(ctx, t, `input[name="typed"]`)
			must(ctx, t, chromedp.KeyEvent("replay"))
			tabTo(ctx, t, `button.do`)
			must(ctx, t, chromedp.KeyEvent(kb.Enter))
		} else {
			must(ctx, t, chromedp.Click(chromedp.CSS(link)), chromedp.WaitReady(chromedp.CSS("form.act")),
				chromedp.Click(chromedp.CSS(`input[name="reason"]`)), chromedp.KeyEvent("mended"),
				chromedp.Click(chromedp.CSS(`input[name="typed"]`)), chromedp.KeyEvent("replay"), chromedp.Click(chromedp.CSS("button.do")))
		}
		must(ctx, t, chromedp.WaitReady(chromedp.CSS(".done")))
		if n := value[int](s, open); n != 0 {
			t.Errorf("%s: %d dead letters are open", how, n)
		}
		must(ctx, t, chromedp.Navigate(s.url+"/"), chromedp.WaitNotPresent(chromedp.CSS(link)))
	}
}

// tabTo presses Tab until the element has the focus.
func tabTo(ctx context.Context, t *testing.T, selector string) {
	t.Helper()
	for range 200 {
		if run(ctx, t, chromedp.Evaluate[bool](fmt.Sprintf(`!!document.activeElement && document.activeElement.matches(%q)`, selector))) {
			return
		}
		must(ctx, t, chromedp.KeyEvent(kb.Tab))
	}
	t.Fatalf("Tab does not lead to %s", selector)
}

// What is shown follows the database by itself, and stays where it was scrolled to.
func TestRefresh(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	must(ctx, t, chromedp.EmulateViewport(390, 900), chromedp.Navigate(s.url+"/events"))
	const scrolled = `document.querySelector(".wide").scrollLeft`
	run(ctx, t, chromedp.Evaluate[int](scrolled+` = 60`))
	const shown = `document.body.innerText.includes("fresh-key")`
	if run(ctx, t, chromedp.Evaluate[bool](shown)) {
		t.Fatal("the event is there before it is emitted")
	}
	s.exec(`select tidemark.emit('shop', 'order', key => 'fresh-key')`)
	if !run(ctx, t, chromedp.Poll[bool](shown, chromedp.WithPollingTimeout(time.Minute))) {
		t.Error("the page stays as it was")
	}
	if at := run(ctx, t, chromedp.Evaluate[int](scrolled)); at != 60 {
		t.Errorf("a table that was scrolled to 60 is at %d", at)
	}
}

// A change is shown within two seconds or so, long before the timer would ask. A page in the background does not listen, nor one whose
// switch is off. Without server-sent events, or where they are kept back, the timer asks.
func TestChangesInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	c, _ := s.served()
	listening := func(n int) {
		t.Helper()
		for {
			c.changes.mu.Lock()
			now := len(c.changes.listeners)
			c.changes.mu.Unlock()
			if now == n {
				return
			}
			must(ctx, t, chromedp.Sleep(20*time.Millisecond)) // until the test's deadline
		}
	}
	shows := func(key string, within time.Duration) {
		t.Helper()
		s.exec(`select tidemark.emit('shop', 'order', key => '` + key + `')`)
		if !run(ctx, t, chromedp.Poll[bool](`document.body.innerText.includes("`+key+`")`, chromedp.WithPollingTimeout(within))) {
			t.Errorf("%s is not shown", key)
		}
	}
	must(ctx, t, chromedp.Navigate(s.url+"/events"))
	listening(1)
	run(ctx, t, chromedp.Poll[bool](`heard > 0`))
	run(ctx, t, chromedp.Evaluate[bool](`due = 0, asked = Infinity, window.loaded = true`)) // the timer asks for nothing
	shows("told-key", time.Minute)
	if !run(ctx, t, chromedp.Evaluate[bool](`window.loaded === true`)) {
		t.Error("the page was loaded again")
	}
	const hide = `Object.defineProperty(document, "hidden", {value: %t, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`
	run(ctx, t, chromedp.Evaluate[bool](fmt.Sprintf(hide, true)))
	listening(0)
	run(ctx, t, chromedp.Evaluate[bool](fmt.Sprintf(hide, false)))
	listening(1)
	run(ctx, t, chromedp.Evaluate[bool](`document.querySelector("#live").click(), true`))
	listening(0)

	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `delete window.EventSource`}); err != nil {
		t.Fatal(err)
	}
	must(ctx, t, chromedp.Navigate(s.url+"/events"))
	run(ctx, t, chromedp.Evaluate[bool](`due = 0; !window.EventSource`))
	shows("timer-key", time.Minute)
	listening(0)
}

// The result of an act stays: a refresh would put the act itself in its place, for all dead letters.
func TestResultsStayInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	must(ctx, t, chromedp.Navigate(s.url+"/act/letter-replay?id=1"), chromedp.WaitReady(chromedp.CSS("form.act")))
	run(ctx, t, chromedp.Evaluate[bool](`document.querySelector("input[name=reason]").value = "mended", document.querySelector("button.do").click(), true`))
	must(ctx, t, chromedp.WaitReady(chromedp.CSS(".done")), chromedp.Sleep(8*time.Second))
	if !run(ctx, t, chromedp.Evaluate[bool](`!!document.querySelector(".done") && !document.querySelector("form.act")`)) {
		t.Errorf("the result became %s", run(ctx, t, chromedp.Evaluate[string](`document.querySelector("main").innerText`)))
	}
}

// Tab leads to each link, button and field of every page, and shows where it is.
func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	s.verified()
	pages := s.pagesOf()
	pages["form"] = "/act/heartbeat-register?"
	for _, path := range pages {
		must(ctx, t, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(s.url+path))
		all := run(ctx, t, chromedp.Evaluate[int](`(() => {
			const live = document.querySelector("#live");
			if (live) live.checked = false; // the page stays as it is
			window.left = new Set([...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility()));
			window.hidden = [];
			return left.size;
		})()`))
		const step = `(() => {
			const at = document.activeElement;
			left.delete(at);
			const style = getComputedStyle(at);
			if (at !== document.body && style.outlineStyle === "none") hidden.push(at.outerHTML);
			return left.size;
		})()`
		for range all + 40 { // a field for a time takes several
			must(ctx, t, chromedp.KeyEvent(kb.Tab))
			if run(ctx, t, chromedp.Evaluate[int](step)) == 0 {
				break
			}
		}
		if missed := run(ctx, t, chromedp.Evaluate[[]string](`[...left].map(e => e.outerHTML)`)); len(missed) > 0 || all < 12 {
			t.Errorf("%s: Tab does not lead to %d of %d: %s", path, len(missed), all, strings.Join(missed, "\n"))
		}
		if hidden := run(ctx, t, chromedp.Evaluate[[]string](`hidden`)); len(hidden) > 0 {
			t.Errorf("%s does not show that the focus is on %s", path, strings.Join(hidden, "\n"))
		}
	}
}
