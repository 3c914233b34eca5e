package tidemarktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// failsTest is a test that is to fail, and what it said.
type failsTest struct {
	testing.TB
	said string
}

func (f *failsTest) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}
func (f *failsTest) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// wantFailure wants the test to end with the text.
func wantFailure(t *testing.T, text string, test func(testing.TB)) {
	t.Helper()
	f := &failsTest{TB: t}
	defer func() {
		t.Helper()
		if p := recover(); p != nil && p != f {
			panic(p)
		}
		if !strings.Contains(f.said, text) {
			t.Errorf("got %q, want %q", f.said, text)
		}
	}()
	test(f)
}

func shop(t *testing.T) (*tidemarktest.DB, func(string, ...any)) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`select tidemark.type_set('shop', 'order')`)
	return db, exec
}

func TestRequireEmitted(t *testing.T) {
	t.Parallel()
	db, exec := shop(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	if _, err := tidemark.Emit(t.Context(), db.Pool, tidemark.Event{
		Domain: "shop", Type: "order", Key: "7", Lane: "batch", OccurredAt: at, Actor: "ada", Payload: []byte(`{"a": {"b": 1, "c": null}}`),
	}); err != nil {
		t.Fatal(err)
	}
	found := tidemark.Event{Domain: "shop", Type: "order", Lane: "batch", OccurredAt: at, Actor: "ada", Payload: []byte(`{"a": {"c": null}}`)}
	tidemarktest.RequireEmitted(t, db.Pool, found)
	require := func(e tidemark.Event) func(testing.TB) {
		return func(t testing.TB) { tidemarktest.RequireEmitted(t, db.Pool, e) }
	}
	for _, change := range []func(*tidemark.Event){
		func(e *tidemark.Event) { e.Key = "8" },
		func(e *tidemark.Event) { e.OccurredAt = at.Add(time.Second) },
		func(e *tidemark.Event) { e.Payload = []byte(`{"a": {"c": 1}}`) },
	} {
		other := found
		change(&other)
		wantFailure(t, `the domain has:`+"\n"+`shop/order key 7 {"a": {"b": 1, "c": null}}`, require(other))
	}
	wantFailure(t, "0 events match", require(tidemark.Event{Domain: "bank", Type: "order"}))
	exec(`select tidemark.emit('shop', 'order')`)
	wantFailure(t, "2 events match", require(tidemark.Event{Domain: "shop", Type: "order"}))
}

func TestRequireDelivered(t *testing.T) {
	t.Parallel()
	db, exec := shop(t)
	exec(`create function public.target(e jsonb) returns void language plpgsql as 'begin if e ->> ''key'' = ''bad'' then raise exception ''no''; end if; end'`)
	exec(`select tidemark.route_set('mail', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.target", "retry_policy": {"max_attempts": 1}}')`)
	tidemarktest.GoLive(t, db.Pool)
	emit := func(key string) string {
		id, err := tidemark.Emit(t.Context(), db.Pool, tidemark.Event{Domain: "shop", Type: "order", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	good, bad := emit("good"), emit("bad")
	exec(`select tidemark.route_worker_run()`)
	tidemarktest.RequireDelivered(t, db.Pool, "mail", good)
	wantFailure(t, "It failed for good after one attempt", func(t testing.TB) { tidemarktest.RequireDelivered(t, db.Pool, "mail", bad) })
	wantFailure(t, `TM004: there is no route "nope"`, func(t testing.TB) { tidemarktest.RequireDelivered(t, db.Pool, "nope", bad) })
}

// A daemon delivers to a receiver, again after the time that it waits has been let pass.
func TestReceiver(t *testing.T) {
	t.Parallel()
	db, exec := shop(t)
	receiver := tidemarktest.NewReceiver(t)
	receiver.Answer(http.StatusServiceUnavailable)
	exec(`select tidemark.route_set('hook', jsonb_build_object('domain', 'shop', 'target_kind', 'webhook', 'target_ref', $1::text,
		'options', '{"unsigned": true}'::jsonb, 'retry_policy', '{"base_seconds": 3600}'::jsonb))`, receiver.URL)
	tidemarktest.GoLive(t, db.Pool)
	c := config.Default()
	c.Database.URL = config.NewSecret(db.URL)
	c.Admin.Listen = "127.0.0.1:0"
	c.Webhook.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	d, err := daemon.New(t.Context(), c, daemon.Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	id, err := tidemark.Emit(t.Context(), db.Pool, tidemark.Event{Domain: "shop", Type: "order", Payload: []byte(`{"n": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := receiver.Next(t); !strings.Contains(string(got.Body), id) || got.Header.Get("content-type") == "" {
		t.Errorf("got %s", got.Body)
	}
	receiver.Answer(http.StatusNoContent)
	waits := func() (waits bool) {
		if err := db.Pool.QueryRow(t.Context(), `select exists (select from tidemark.pending where error_count = 1)`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	}
	for poll := time.NewTicker(5 * time.Millisecond); !waits(); <-poll.C {
	}
	tidemarktest.Advance(t, db.Pool, 2*time.Hour)
	receiver.Next(t)
	tidemarktest.RequireDelivered(t, db.Pool, "hook", id)
}

// RequireHandled fails at once, with the handler's error, and where no handler takes the event.
func TestRequireHandled(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `select tidemark.type_set('shop', 'order', '{"schema": {"type": "object", "required": ["n"]}}')`); err != nil {
		t.Fatal(err)
	}
	client, err := consumer.New(db.Pool, consumer.Config{Worker: "ledger", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	client.Handle("shop/order", func(_ context.Context, _ pgx.Tx, e tidemark.Event) error {
		if e.Key == "bad" {
			return errors.New("the books are closed")
		}
		got = append(got, e.Key)
		return nil
	})
	event := func(kind, key, payload string) tidemark.Event {
		return tidemark.Event{Domain: "shop", Type: kind, Key: key, Payload: []byte(payload)}
	}
	tidemarktest.RequireHandled(t, db.Pool, client, event("order", "7", `{"n": 1}`))
	tidemarktest.RequireHandled(t, db.Pool, client, event("order", "8", `{"n": 1}`))
	if want := []string{"7", "8"}; !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
	for text, e := range map[string]tidemark.Event{
		"It has failed once: handler, the books are closed, and is tried again": event("order", "bad", `{"n": 1}`),
		"no handler takes the event": event("refund", "9", `{}`),
		"TM002":                      event("order", "10", `{}`), // the type keeps its schema
	} {
		wantFailure(t, text, func(t testing.TB) { tidemarktest.RequireHandled(t, db.Pool, client, e) })
	}
}
