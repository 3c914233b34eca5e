package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// setup is a live installation with a route "app" to the target "app".
func setup(t *testing.T, options string) (*tidemarktest.DB, targets) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	exec(t, db, `select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test')`)
	route(t, db, "app", options)
	exec(t, db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	return db, targets{"app": newTarget()}
}

func route(t *testing.T, db *tidemarktest.DB, code, options string) {
	t.Helper()
	exec(t, db, `select tidemark.route_set($1, $2::jsonb || jsonb_build_object('target_ref', $1::text))`, code,
		`{"domain": "test", "target_kind": "stdout", "enabled": true, "dry_run": false`+options+`}`)
}

func exec(t *testing.T, db *tidemarktest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// emit emits events, each given as its key and number: "a1".
func emit(t *testing.T, db *tidemarktest.DB, events ...string) {
	t.Helper()
	for _, e := range events {
		exec(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $2::text), key => nullif($1, ''))`, e[:1], e)
	}
}

func texts(t *testing.T, db *tidemarktest.DB, sql string) []string {
	t.Helper()
	rows, err := db.Pool.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// eventually waits until the query gives what is wanted.
func eventually(t *testing.T, db *tidemarktest.DB, sql string, want ...string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		got := texts(t, db, sql)
		if cmp.Equal(want, got) || len(want)+len(got) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\n(-want +got)\n%s", sql, cmp.Diff(want, got))
		}
	}
}

// evidence is every attempt, one a line.
const evidence = `select concat_ws(' ', coalesce(route_code, '-'), seq, attempt_no, outcome, reason) from tidemark.route_attempt order by seq, route_code, attempt_no`

const settled = `select (c.watermark_id::bigint >= (select max(seq) from tidemark.outbox) and isempty(c.holes + c.fenced)
	and not exists (select from tidemark.pending))::text from tidemark.worker_cursor c where worker = 'default'`

// numbers of what arrived: "a1 b1 a2".
func arrivedAs(deliveries []sink.Delivery) string {
	var all []string
	for _, d := range deliveries {
		text := strings.TrimSuffix(strings.TrimPrefix(string(d.Event.Payload), `{"n": "`), `"}`)
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
