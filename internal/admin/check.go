package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// defaultTimeout is not above the timeout of most supervisors, which is a second or more.
const defaultTimeout = time.Second

// Check is a question about the daemon's health.
type Check struct {
	// Name of the check in the answer, unique on its page. Required.
	Name string

	// Timeout is how long Run may take. Default: 1s.
	Timeout time.Duration

	// Advisory: a failure is shown, but the page still answers 200. Default: false, a
	// failure makes the page answer 503.
	Advisory bool

	// Detail is shown beside the name when all is well. Default: nothing is shown. It must not wait for anything.
	Detail func() string

	// Run returns nil if all is well. Its error is shown as it is. The server never calls it
	// again before the last call has returned. Required.
	Run func(context.Context) error
}

// Live adds a check to /livez: whether the process must be restarted. It must not depend
// on anything outside the process, which a restart cannot repair. It replaces a check of
// the same name.
func (s *Server) Live(c Check) { s.live.add(c) }

// Ready adds a check to /readyz: whether the daemon can do its work. It replaces a check of
// the same name.
func (s *Server) Ready(c Check) { s.ready.add(c) }

// Remove removes the check of this name from /readyz.
func (s *Server) Remove(name string) { s.ready.remove(name) }

// checks holds the checks of one page.
type checks struct {
	mu  sync.Mutex
	all []*check
}

type check struct {
	Check
	running singleflight.Group
}

func (c *checks) add(one Check) {
	if one.Timeout <= 0 {
		one.Timeout = defaultTimeout
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.all, func(other *check) bool { return other.Name == one.Name }); i >= 0 {
		c.all[i] = &check{Check: one}
		return
	}
	c.all = append(c.all, &check{Check: one})
}

func (c *checks) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(one *check) bool { return one.Name == name })
}

// answer is the result of one check.
type answer struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Advisory bool   `json:"advisory,omitempty"`
	Error    string `json:"error,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// report is the result of all checks of a page.
type report struct {
	OK     bool     `json:"ok"`
	Checks []answer `json:"checks"`
}

func (c *checks) run() report {
	c.mu.Lock()
	all := slices.Clone(c.all)
	c.mu.Unlock()
	r := report{OK: true, Checks: make([]answer, len(all))}
	var wait sync.WaitGroup
	for i, one := range all {
		wait.Go(func() {
			a := answer{Name: one.Name, OK: true, Advisory: one.Advisory}
			if err := one.run(); err != nil {
				a.OK, a.Error = false, err.Error()
			} else if one.Detail != nil {
				a.Detail = one.Detail()
			}
			r.Checks[i] = a
		})
	}
	wait.Wait()
	for _, a := range r.Checks {
		r.OK = r.OK && (a.OK || a.Advisory)
	}
	return r
}

// run gives up on a call that ignores its context. Later probes join such a call instead of
// making another: otherwise each probe would leave one more goroutine behind.
func (c *check) run() error {
	noAnswer := fmt.Errorf("no answer within %s", c.Timeout)
	done := c.running.DoChan("", func() (_ any, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		// A deadline error without ctx being done comes from another deadline, and is reported as it is.
		if err = c.Run(ctx); ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, noAnswer
		}
		return nil, err
	})
	late := time.NewTimer(c.Timeout)
	defer late.Stop()
	select {
	case result := <-done:
		return result.Err
	case <-late.C:
		return noAnswer
	}
}

func (c *checks) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := c.run()
		status := http.StatusOK
		if !found.OK {
			status = http.StatusServiceUnavailable
		}
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			encoder := json.NewEncoder(w)
			encoder.SetEscapeHTML(false)
			_ = encoder.Encode(found) // fails only if the client is gone
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprint(w, found.text(r.URL.Query().Has("verbose")))
	})
}

// prefixed is empty for an empty text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// text returns a line for each check and a last line for all. Without verbose it lists only failures that count.
func (r report) text(verbose bool) string {
	var out strings.Builder
	var failed []string
	for _, a := range r.Checks {
		switch {
		case a.OK && verbose:
			fmt.Fprintf(&out, "[+]%s ok%s\n", a.Name, prefixed(": ", a.Detail))
		case !a.OK && (verbose || !a.Advisory):
			fmt.Fprintf(&out, "[-]%s: %s\n", a.Name, strings.Join(strings.Fields(a.Error), " "))
		}
		if !a.OK && !a.Advisory {
			failed = append(failed, a.Name)
		}
	}
	if r.OK {
		out.WriteString("ok\n")
	} else {
		fmt.Fprintf(&out, "failed: %s\n", strings.Join(failed, ", "))
	}
	return out.String()
}
