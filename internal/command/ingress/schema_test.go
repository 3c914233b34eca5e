package ingress_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/command/ingress"
)

// before does something before the first batch is sent: a command runs in one.
type before struct {
	once sync.Once
	do   func()
}

func (*before) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*before) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*before) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*before) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (b *before) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	b.once.Do(b.do)
	return ctx
}

// CM1: a payload is held to the whole of the schema of now: also where that changes after the server has read it, and where a record that was
// kept is replayed.
func TestIngressSchemaChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	change := func(pattern string) {
		w.exec(`select tidemark.command_set($1, 'make', 1, jsonb_build_object('payload_schema', $2::text::jsonb))`, w.service, strings.Replace(payloadSchema, "^[a-z]", pattern, 1))
	}
	config := w.db.Pool.Config()
	config.ConnConfig.Tracer = &before{do: func() { change("^b") }}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.url = w.serve(pool, ingress.Options{})
	if got := w.send(w.post("k", `{"id": 1, "name": "abc"}`)); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" {
		t.Errorf("meanwhile: %+v", got)
	}
	if got := w.send(w.post("k", `{"id": 1, "name": "abc"}`)); got.Status+" "+got.Code != "rejected contract.payload_invalid" {
		t.Errorf("again: %+v", got)
	}
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"dry_run": true}')`, w.service)
	if got := w.send(w.post("k", `{"id": 1, "name": "bb"}`)); got.Status != "processed" {
		t.Errorf("in dry run: %+v", got)
	}
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"dry_run": false}')`, w.service)
	change("^c")
	const replay = `select (tidemark.command_replay($1, reason => 'why')).outcomes::text`
	if got := w.text(replay, w.service); got != `{"schema_changed": 1}` {
		t.Error("changed since", got)
	}
	change("^b")
	if got := w.text(replay, w.service); got != `{"runs": 1}` {
		t.Error("as it was", got)
	}
	if got := w.text(`select coalesce(string_agg(id::text, ' '), '') from app.effect`); got != "" {
		t.Error("effects", got)
	}
}
