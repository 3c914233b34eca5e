package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func fine(context.Context) error { return nil }

func failing(text string) func(context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

func asJSON(r *http.Request) { r.Header.Set("Accept", "application/json") }

func TestHealth(t *testing.T) {
	t.Parallel()
	down := []Check{
		{Name: "database", Run: fine},
		{Name: "worker default", Run: failing("closed by\n<routes.enabled>"), Advisory: true},
		{Name: "worker other", Run: failing("no lease")},
	}
	for _, test := range []struct {
		name    string
		checks  []Check
		status  int
		text    string
		verbose string
		json    string
	}{
		{"nothing to check", nil, 200, "ok\n", "ok\n", `{"ok":true,"checks":[]}` + "\n"},
		{
			"with a detail",
			[]Check{{Name: "kafka", Detail: func() string { return "3 behind" }, Run: fine}},
			200, "ok\n", "[+]kafka ok: 3 behind\nok\n",
			`{"ok":true,"checks":[{"name":"kafka","ok":true,"detail":"3 behind"}]}` + "\n",
		},
		{
			"all is well", down[:1], 200, "ok\n", "[+]database ok\nok\n",
			`{"ok":true,"checks":[{"name":"database","ok":true}]}` + "\n",
		},
		{
			"only advice", down[:2], 200, "ok\n", "[+]database ok\n[-]worker default: closed by <routes.enabled>\nok\n",
			`{"ok":true,"checks":[{"name":"database","ok":true},{"name":"worker default","ok":false,"advisory":true,"error":"closed by\n<routes.enabled>"}]}` + "\n",
		},
		{
			"one fails", down, 503, "[-]worker other: no lease\nfailed: worker other\n",
			"[+]database ok\n[-]worker default: closed by <routes.enabled>\n[-]worker other: no lease\nfailed: worker other\n",
			`{"ok":false,"checks":[{"name":"database","ok":true},{"name":"worker default","ok":false,"advisory":true,"error":"closed by\n<routes.enabled>"},{"name":"worker other","ok":false,"error":"no lease"}]}` + "\n",
		},
		{
			"something else was late",
			[]Check{{Name: "worker", Run: func(context.Context) error { return fmt.Errorf("event 7: %w", context.DeadlineExceeded) }}},
			503,
			"[-]worker: event 7: context deadline exceeded\nfailed: worker\n", "[-]worker: event 7: context deadline exceeded\nfailed: worker\n",
			`{"ok":false,"checks":[{"name":"worker","ok":false,"error":"event 7: context deadline exceeded"}]}` + "\n",
		},
	} {
		s := setup(t, Options{})
		for path, add := range map[string]func(Check){"/livez": s.Live, "/readyz": s.Ready} {
			for _, c := range test.checks {
				add(c)
			}
			for query, want := range map[string]string{"": test.text, "?verbose": test.verbose} {
				if status, _, body := get(t, s, path+query); status != test.status || body != want {
					t.Errorf("%s: %s%s: %d\n%s", test.name, path, query, status, body)
				}
			}
			status, header, body := get(t, s, path, asJSON)
			if status != test.status || body != test.json || header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s: %d\n%s%v", test.name, path, status, body, header)
			}
		}
	}
}

func TestLivenessIsNotReadiness(t *testing.T) {
	t.Parallel()
	s := setup(t, Options{})
	s.Ready(Check{Name: "database", Run: failing("down")})
	if status, _, _ := get(t, s, "/livez"); status != http.StatusOK {
		t.Error("/livez fails because /readyz does")
	}
	s.Live(Check{Name: "loop", Run: failing("stuck")})
	s.Ready(Check{Name: "database", Run: fine})
	if status, _, _ := get(t, s, "/readyz?verbose"); status != http.StatusOK {
		t.Error("the check was not replaced")
	}
	if status, _, _ := get(t, s, "/livez"); status != http.StatusServiceUnavailable {
		t.Error("/livez passes while its check fails")
	}
	s.Ready(Check{Name: "worker", Run: failing("down")})
	s.Remove("worker")
	if _, _, body := get(t, s, "/readyz?verbose"); body != "[+]database ok\nok\n" {
		t.Error(body)
	}
}

// Each check waits for the other, so neither ends unless both run at the same time.
func TestChecksRunAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c checks
		meet := make(chan struct{})
		c.add(Check{Name: "a", Run: func(context.Context) error { meet <- struct{}{}; return nil }})
		c.add(Check{Name: "b", Run: func(context.Context) error { <-meet; return nil }})
		if r := c.run(); !r.OK {
			t.Error(r)
			<-meet
		}
	})
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c checks
		obeys := func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("asking: %w", ctx.Err())
		}
		c.add(Check{Name: "default", Run: obeys})
		c.add(Check{Name: "own", Run: obeys, Timeout: 3 * time.Second})
		start := time.Now()
		r := c.run()
		if r.Checks[0].Error != "no answer within 1s" || r.Checks[1].Error != "no answer within 3s" || time.Since(start) != 3*time.Second {
			t.Error(r, time.Since(start))
		}
	})
}

func TestStuckCheckIsGivenUpAndNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c checks
		var calls atomic.Int32
		release := make(chan struct{})
		c.add(Check{Name: "stuck", Run: func(context.Context) error {
			calls.Add(1)
			<-release
			return nil
		}})
		for range 3 {
			if r := c.run(); r.OK || r.Checks[0].Error != "no answer within 1s" {
				t.Error(r)
			}
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls are stuck", calls.Load())
		}
		close(release)
		synctest.Wait()
		if r := c.run(); !r.OK || calls.Load() != 2 {
			t.Error(r, calls.Load())
		}
	})
}

func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	var c checks
	c.add(Check{Name: "bad", Run: func(context.Context) error { panic("oh") }})
	if r := c.run(); r.OK || r.Checks[0].Error != "panic: oh" {
		t.Error(r)
	}
}
