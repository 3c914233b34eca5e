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

// defaultTimeout is below that of supervisors, most of which wait for a second or more.
const defaultTimeout = time.Second

// Check is a question about the daemon's health.
type Check struct {
	// Name in what is answered, unique among those of its kind. Needed.
	Name string

	// Timeout is how long Run may take. Default: 1s.
	Timeout time.Duration

	// Advisory: a failure is shown and changes nothing. Default: it fails the whole.
	Advisory bool

	// Run is nil where all is well; the error is shown as it is. It may be called from
	// several goroutines, but never again while one call has not returned. Needed.
	Run func(context.Context) error
}

// Live adds a check of /livez: whether the process must be started anew. It must depend
// on nothing outside of the process, which starting anew cannot repair. One of the same
// name is replaced.
func (s *Server) Live(c Check) { s.live.add(c) }

// Ready adds a check of /readyz: whether the daemon can do its work. One of the same name
// is replaced.
func (s *Server) Ready(c Check) { s.ready.add(c) }

// Remove takes the check of this name out of /readyz.
func (s *Server) Remove(name string) { s.ready.remove(name) }

// checks are those of one page.
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

// answer is what a check came to.
type answer struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Advisory bool   `json:"advisory,omitempty"`
	Error    string `json:"error,omitempty"`
}

// report is the answer as a whole.
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

// run gives up a call that does not obey its context. Such a call is joined and not
// repeated by later ones: else each probe would leave one more behind.
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
		// What it reports may have been too late for something else.
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
			_ = encoder.Encode(found) // a client that is gone
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprint(w, found.text(r.URL.Query().Has("verbose")))
	})
}

// text is a line for each check and one for all; those that are fine only if verbose.
func (r report) text(verbose bool) string {
	var out strings.Builder
	var failed []string
	for _, a := range r.Checks {
		switch {
		case a.OK && verbose:
			fmt.Fprintf(&out, "[+]%s ok\n", a.Name)
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
