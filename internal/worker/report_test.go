package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestLogsWhatIsNew(t *testing.T) {
	var log bytes.Buffer
	v := onceLog{log: slog.New(slog.NewTextHandler(&log, nil))}
	refused, gone := errors.New("connection refused"), errors.New("no such host")
	for _, err := range []error{refused, refused, gone, gone, refused, nil} {
		v.once(t.Context(), slog.LevelWarn, "cannot claim", "error", err)
	}
	v.once(t.Context(), slog.LevelInfo, "running", "epoch", int64(1), "detail", "")
	v.once(t.Context(), slog.LevelInfo, "running", "epoch", int64(1))
	v.once(t.Context(), slog.LevelInfo, "running", "epoch", int64(2))

	var got []string
	for line := range strings.Lines(log.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		got = append(got, rest)
	}
	want := []string{
		`"cannot claim" error="connection refused"`, `"cannot claim" error="no such host"`, `"cannot claim" error="connection refused"`, `"cannot claim"`,
		`running epoch=1`, `running epoch=2`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// logged are the lines of a text handler, from their level on.
func logged(log *bytes.Buffer) (lines []string) {
	for line := range strings.Lines(log.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "level=")
		lines = append(lines, rest)
	}
	log.Reset()
	return lines
}

// Under steady work a throttled worker pauses and goes on by turns, and says so once. It says a new phase, what it is held by
// and that this is over, and a pause that comes after a long time without.
func TestTableLogsWhatIsNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := tableStates{log: slog.New(slog.NewTextHandler(&log, nil)), seen: map[string]time.Time{}}
		notes := func(step string, passes []store.Pass, want ...string) {
			t.Helper()
			for _, p := range passes {
				s.note(t.Context(), p)
				time.Sleep(time.Second)
			}
			if got := logged(&log); !slices.Equal(got, want) {
				t.Errorf("%s:\n%s\nwant:\n%s", step, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		seeding, ran := ranPass("seeding"), ranPass("incremental")
		blocked := ranPass("incremental")
		blocked.BlockedBy = "pid 7"
		held := store.Pass{Status: "held", Detail: "the table is not there"}
		var steady []store.Pass
		for n := range 1000 {
			steady = append(steady, ran, store.Pass{Status: "throttled", Detail: fmt.Sprint(n, " sessions wait for locks")}, ran,
				store.Pass{Status: "waiting", Detail: "changes are gathered for 00:00:01"})
		}
		notes("first", []store.Pass{seeding, seeding}, `INFO msg=seeding`)
		notes("steady work", steady, `INFO msg=incremental`, `INFO msg=throttled detail="0 sessions wait for locks"`,
			`INFO msg=waiting detail="changes are gathered for 00:00:01"`)
		notes("blocked", []store.Pass{blocked, blocked, ran}, `INFO msg=incremental detail="pid 7"`, `INFO msg=incremental`)
		notes("held", []store.Pass{held, held, ran, ran, steady[1]}, `WARN msg=held detail="the table is not there"`, `INFO msg=incremental`)
		time.Sleep(newsAfter)
		notes("throttled again", steady[:4], `INFO msg=throttled detail="0 sessions wait for locks"`, `INFO msg=waiting detail="changes are gathered for 00:00:01"`)
	})
}

// An outage is logged once, and the next one again, also if it is of the same kind.
func TestLogsEachOutage(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := reporter{onceLog: onceLog{log: slog.New(slog.NewTextHandler(&log, nil))}}
	r.failing.report = func(context.Context, string, string) error { return nil }
	gone := errors.New("connection refused")
	for range 2 {
		r.failed(t.Context(), "read", gone)
		r.failed(t.Context(), "read", gone)
		r.well(t.Context())
	}
	const line = `WARN msg="read failed" error="connection refused"`
	if got, want := logged(&log), []string{line, line}; !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A worker that waits for another instance's lease says so once, however often that is renewed.
func TestLogsThatItWaitsOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := reporter{onceLog: onceLog{log: slog.New(slog.NewTextHandler(&log, nil))}}
	for n := range 3 {
		r.waits(t.Context(), store.Claim{Status: "busy", Detail: fmt.Sprint("leased by a until ", n)})
	}
	r.waits(t.Context(), store.Claim{Status: "closed", Detail: "routes.enabled"})
	r.waits(t.Context(), store.Claim{Status: "closed", Detail: "routes.enabled"})
	r.waits(t.Context(), store.Claim{Status: "held", Detail: "edited by hand"})
	want := []string{
		`INFO msg=waiting status=busy detail="leased by a until 0"`, `INFO msg=waiting status=closed detail=routes.enabled`,
		`WARN msg=waiting status=held detail="edited by hand"`,
	}
	if got := logged(&log); !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}

func ranPass(phase string) store.Pass {
	return store.Pass{Status: "ran", TablePass: store.TablePass{Phase: phase}}
}
