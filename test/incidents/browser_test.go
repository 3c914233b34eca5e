package incidents

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// Each incident is mended by the commands on the screen of tidemark status; with this flag by the console's buttons instead.
var inBrowser = flag.Bool("browser", false, "mend incidents in the console, with Chromium")

// chromium is one browser for all incidents. One uses it at a time: a tab in the background draws nothing, and takes no clicks.
var chromium browser

type browser struct {
	mu     sync.Mutex
	once   sync.Once
	ctx    context.Context
	cancel func()
}

func (b *browser) start() error {
	var err error
	b.once.Do(func() {
		var path string
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if path, err = exec.LookPath(name); err == nil {
				break
			}
		}
		if err != nil {
			return
		}
		b.ctx, b.cancel = chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.Flag("disable-dev-shm-usage", true)))
		err = chromedp.Do(b.ctx, chromedp.Navigate("about:blank"))
	})
	if err == nil && b.ctx == nil {
		return exec.ErrNotFound
	}
	return err
}

func (b *browser) stop() {
	if b.cancel != nil {
		_ = chromedp.Cancel(b.ctx)
		b.cancel()
	}
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) find(pattern string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := regexp.MustCompile(pattern).FindSubmatch(o.text.Bytes()); m != nil {
		return string(m[1])
	}
	return ""
}

// console runs a console of the installation until the test ends, and returns its address.
func (n *night) console() (address string) {
	n.t.Helper()
	c := n.command("tidemark console --listen 127.0.0.1:0 --database-url '" + n.URL + "'")
	var out output
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if n.t.Failed() {
			n.t.Logf("console: %s", out.find(`(?s)(.*)`))
		}
	})
	n.until("the console listens", func() bool {
		address = out.find(`the console is at (\S+)`)
		return address != ""
	})
	return address
}

// pasted are commands that have no button: they start a process on a host of the operator's choice. SQL has none either: it changes
// tables or sessions of others.
var pasted = regexp.MustCompile(`^tidemark (run|worker run)\b`)

// aftermath is what stands behind the name of a cause on the screen.
var aftermath = regexp.MustCompile(`( \(finding \d+\))?(, .*)?$`)

// about is what a cause is about, and withoutReason a command as far as its reason.
func (c shown) about() string {
	_, subject, _ := strings.Cut(aftermath.ReplaceAllString(c.title, ""), " ")
	return strings.Join(strings.Fields(subject), " ")
}

func withoutReason(line string) string {
	command, _, _ := strings.Cut(line, " --reason ")
	return command
}

// offered tells whether the terminal still shows a command for what the cause is about. Incidents wait for the one browser, and
// meanwhile a daemon's upkeep may have done it, or the incident may have passed.
func (n *night) offered(c shown, line string) bool {
	n.t.Helper()
	causes, _, _ := n.screen()
	return slices.ContainsFunc(causes, func(now shown) bool {
		return now.about() == c.about() && slices.ContainsFunc(now.next, func(next string) bool { return withoutReason(next) == withoutReason(line) })
	})
}

// press finds a command of a cause on the first page of the console, where it can be copied, and presses its button. False: it has
// none, or is not shown any more, and is to be pasted into a terminal.
func (n *night) press(c shown, line string) bool {
	n.t.Helper()
	if err := chromium.start(); err != nil {
		n.t.Fatalf("Chromium: %v: scripts/tools.sh installs it", err)
	}
	address := n.console()
	chromium.mu.Lock()
	defer chromium.mu.Unlock()
	tab, cancel := chromedp.NewContext(chromium.ctx)
	defer cancel()
	tab, cancel = context.WithTimeout(tab, 2*time.Minute)
	defer cancel()
	type found struct{ Text, Link string }
	var at found
	gone := false
	// A command before may have turned the cause into another one of the same subject, such as a gap of a capture that works again,
	// whose command gives another reason.
	n.until(fmt.Sprintf("the console shows %s with %s", c.title, line), func() bool {
		n.do(tab, chromedp.Navigate(address))
		at = eval[found](tab, n, fmt.Sprintf(`(() => {
			for (const cause of document.querySelectorAll("li.cause")) {
				const subject = cause.querySelector("h3").innerText.trim().split(/\s+/).slice(2).join(" ");
				for (const p of subject === %q ? cause.querySelectorAll("p.mend") : []) {
					if (p.querySelector("code.copy").textContent.split(" --reason ")[0] === %q) return {Text: p.innerText, Link: p.querySelector("a.button")?.href ?? ""};
				}
			}
			return {Text: "", Link: ""};
		})()`, c.about(), withoutReason(line)))
		gone = at.Text == "" && !n.offered(c, line)
		return at.Text != "" || gone
	})
	if gone {
		n.t.Logf("not shown any more: %s", line)
		return false
	}
	if at.Link == "" {
		if strings.HasPrefix(line, "tidemark ") && !pasted.MatchString(line) {
			n.t.Errorf("the console has no button for: %s", line)
		}
		return false
	}
	n.t.Logf("pressed: %s", at.Text)
	n.do(tab, chromedp.Navigate(at.Link))
	if !strings.Contains(at.Link, "/act/") {
		return true // a page to look at
	}
	n.do(tab, chromedp.WaitReady(chromedp.CSS("form.act")))
	eval[bool](tab, n, `(() => {
		const form = document.querySelector("form.act");
		if (form.elements.reason) form.elements.reason.value = "at night";
		if (form.elements.typed) form.elements.typed.value = form.elements.typed.closest("label").querySelector("code").textContent;
		return true;
	})()`)
	n.do(tab, chromedp.Click(chromedp.CSS("button.do")), chromedp.WaitReady(chromedp.CSS(".done, .problem")))
	if problem := eval[string](tab, n, `document.querySelector(".problem")?.innerText ?? ""`); problem != "" {
		n.t.Fatalf("%s: %s", at.Text, problem)
	}
	return true
}

func (n *night) do(tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	n.t.Helper()
	for _, step := range steps {
		if err := chromedp.Do(tab, step); err != nil {
			n.t.Fatal(err)
		}
	}
}

func eval[T any](tab context.Context, n *night, js string) T {
	n.t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](js))
	if err != nil {
		n.t.Fatal(err)
	}
	return v
}
