package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A journal is the log of a daemon that runs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines returns the lines with this message.
func (j *journal) lines(message string) (found []map[string]any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) == nil && l["msg"] == message {
			found = append(found, l)
		}
	}
	return found
}

// runLogged runs a daemon whose log can be read meanwhile.
func runLogged(t *testing.T, c config.Config) (log *journal, stop func()) {
	t.Helper()
	log = &journal{}
	d, err := daemon.New(t.Context(), c, daemon.Options{Log: slog.New(slog.NewJSONHandler(log, nil)), Stdout: io.Discard, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		t.Log(log.text.String())
	})
	t.Cleanup(stop)
	return log, stop
}

// Each cause has a line when it begins and one when it is over, and each dead letter has one. A restart repeats none of them, and
// says in one line what is open. Nothing of a payload is in the log.
func TestLogOfCauses(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	var status atomic.Int64
	status.Store(http.StatusBadRequest)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.Copy(w, r.Body) // an error that quotes the payload
	}))
	t.Cleanup(target.Close)
	live(t, db, target.URL)
	log, stop := runLogged(t, settings(db))
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{"card": "4111"}', trace => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')`)
	eventually(t, "the lines", func() bool { return len(log.lines("dead letter")) == 1 && len(log.lines("cause opened")) == 1 })

	var event string
	if err := db.Pool.QueryRow(t.Context(), `select event_id::text from tidemark.outbox where domain = 'test'`).Scan(&event); err != nil {
		t.Fatal(err)
	}
	letter, cause := log.lines("dead letter")[0], log.lines("cause opened")[0]
	delete(letter, "time")
	want := map[string]any{
		"level": "WARN", "msg": "dead letter", "letter": 1.0, "event_id": event, "route": "app", "worker": "default", "code": "http_400",
		"attempts": 1.0, "trace_id": "0af7651916cd43dd8448eb211c80319c",
	}
	if diff := cmp.Diff(want, letter); diff != "" {
		t.Errorf("the line of the dead letter (-want +got)\n%s", diff)
	}
	since, err := time.Parse(time.RFC3339, cause["since"].(string))
	if err != nil || time.Since(since).Abs() > 5*time.Minute {
		t.Errorf("since %v: %v", cause["since"], err)
	}
	if found := cause["found"].(string); !strings.HasPrefix(found, "1 dead letter, the latest ") {
		t.Errorf("found %q", found)
	}
	for _, field := range []string{"time", "since", "found"} {
		delete(cause, field)
	}
	want = map[string]any{
		"level": "WARN", "msg": "cause opened", "cause": "dead_letters", "subject": "app", "status": "warn", "finding": cause["finding"],
		"runbook": "https://github.com/tidemarkhq/tidemark/blob/main/docs/runbooks/dead_letters.md",
	}
	if diff := cmp.Diff(want, cause); diff != "" || cause["finding"] == nil {
		t.Errorf("the line of the cause (-want +got)\n%s", diff)
	}

	stop()
	if strings.Contains(log.text.String(), "4111") {
		t.Error("the log quotes the payload")
	}
	log, _ = runLogged(t, settings(db))
	eventually(t, "the line of what is open", func() bool { return len(log.lines("causes are open since before")) == 1 })
	if diff := cmp.Diff([]any{"dead_letters app"}, log.lines("causes are open since before")[0]["causes"]); diff != "" {
		t.Error(diff)
	}
	status.Store(http.StatusOK)
	execSQL(t, db, `select tidemark.dead_letter_replay(1)`)
	eventually(t, "the end", func() bool { return len(log.lines("cause closed")) == 1 })
	if l := log.lines("cause closed")[0]; l["cause"] != "dead_letters" || l["subject"] != "app" || l["level"] != "INFO" {
		t.Errorf("the line of its end: %v", l)
	}
	if n := len(log.lines("cause opened")) + len(log.lines("dead letter")); n > 0 {
		t.Errorf("the restart repeats %d lines", n)
	}
}

// A look that takes long holds up no poll, and ends.
func TestLookThatTakesLong(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `alter function tidemark.findings_over() rename to findings_over_at_once;
		create function tidemark.findings_over() returns setof tidemark.finding language plpgsql as $$
		begin perform pg_sleep(4); return query select * from tidemark.findings_over_at_once(); end $$;
		grant execute on function tidemark.findings_over() to tidemark_owner`)
	execSQL(t, db, `select tidemark.gate_set('worker.default.enabled', true), tidemark.finding_open('disk', 'x', 'high', 'it is full')`)
	log, stop := runLogged(t, settings(db))
	one := func(sql string) (n int) {
		if err := db.Pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const (
		looking = `select count(*) from pg_stat_activity where datname = current_database() and query like '%tidemark.watch(%' and state = 'active' and pid <> pg_backend_pid()`
		ticks   = `select ticks_total from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	)
	eventually(t, "the look", func() bool { return one(looking) == 1 })
	before := one(ticks)
	eventually(t, "a tick of the worker asleep, beside the look", func() bool { return one(ticks) > before })
	if one(looking) != 1 {
		t.Error("the worker ticked after the look, and not beside it")
	}
	eventually(t, "the cause", func() bool { return len(log.lines("cause opened")) == 1 })
	stop()
	if n := len(log.lines("cannot watch")) + len(log.lines("cannot beat")); n > 0 {
		t.Errorf("%d lines say that something failed", n)
	}
}
