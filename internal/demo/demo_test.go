package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// With Keep the demo opens the console at the end, and prints its address.
func TestDemoKeepsTheConsole(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := demo.Run(ctx, write, demo.Options{Load: 2 * time.Second, Rate: 100, Keep: true})
		ended <- errors.Join(err, write.Close())
	}()
	lines := bufio.NewScanner(read)
	looked := false
	for lines.Scan() {
		address, is := strings.CutPrefix(lines.Text(), "The console: ")
		if !is {
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, read) }()
		address, _, _ = strings.Cut(address, " ")
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"routes/demo_webhook", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if looked = answer.StatusCode == http.StatusOK; !looked {
			t.Errorf("%s: %s", request.URL, answer.Status)
		}
		break
	}
	cancel()
	if err := <-ended; err != nil || !looked {
		t.Errorf("looked %v: %v", looked, err)
	}
}

// The demo checks itself and fails unless its result is perfect.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, demo.Options{Load: 5 * time.Second, Rate: 150}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	shows(t, &out,
		`events committed +\d{3,}`, `lost +0\n`, `doubled +0\n`, `out of order per unit +0\n`,
		`rolled back +\d{2,}`, `rolled back, but received +0 `, `received after a later number +[1-9]`,
		`the last arrival anywhere`, `evidence: dry_run +\d{3,}`, `evidence: failed +1 `, `attempt [2-9]: sent`,
		`daemon (one|two), which was at work, is stopped; daemon (one|two) took over`,
		`SQL function, exactly once +\d{3,} +0 +0 +0 +0 +\d`,
		`webhook, in order by key +\d{3,} +[1-9]\d* +[1-9]\d* +0 +0 +\d`,
		`webhook, in any order +\d{3,} +[1-9]\d* +[1-9]\d* +not asked for +0 +\d`,
		`NATS JetStream +\d{3,} +\d+ +0 +0 +0 +\d`,
		`Kafka +\d{3,} +\d+ +\d+ +0 +0 +\d`,
		`webhook, dead +0 +[1-9]\d* +\d{3,} wait`,
		`wrong ones: 0\n`, `a finding says why:\n.*connection refused`,
	)
}
