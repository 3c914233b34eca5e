package tidemark_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Every field arrives, by each way to emit.
func TestEmitEveryField(t *testing.T) {
	t.Parallel()
	test := newShop(t)
	event := tidemark.Event{
		Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"id": 7}`), Key: "k", Stream: "s",
		Lane: tidemark.LaneBatch, Severity: tidemark.SeverityHigh, SubjectTable: "public.orders", SubjectRef: "7",
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "ann",
		OccurredAt: time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC),
	}
	one := func(emit func(context.Context, tidemark.Querier, []tidemark.Event) ([]string, error)) func(context.Context, tidemark.Querier, tidemark.Event) (string, error) {
		return func(ctx context.Context, tx tidemark.Querier, e tidemark.Event) (string, error) {
			ids, err := emit(ctx, tx, []tidemark.Event{e})
			if len(ids) != 1 {
				t.Fatalf("%d ids, %v", len(ids), err)
			}
			return ids[0], err
		}
	}
	ways := map[string]func(context.Context, tidemark.Querier, tidemark.Event) (string, error){
		"emit": tidemark.EmitIfRegistered, "emit_strict": tidemark.Emit,
		"emit_many": one(tidemark.EmitManyIfRegistered), "emit_many_strict": one(tidemark.EmitMany),
	}
	for name, emit := range ways {
		event.IdempotencyKey = name
		id, err := emit(t.Context(), test.Pool, event)
		if err != nil || id == "" {
			t.Fatal(name, id, err)
		}
		again, err := emit(t.Context(), test.Pool, event)
		if err != nil || again != id {
			t.Errorf("%s: the same idempotency key gave %v, %v", name, again, err)
		}
		var got map[string]any
		const row = `select to_jsonb(o) - '{seq,event_id,created_at}'::text[] from tidemark.outbox o where o.event_id = $1`
		if err := test.Pool.QueryRow(t.Context(), row, id).Scan(&got); err != nil {
			t.Fatal(name, err)
		}
		want := map[string]any{
			"domain": "shop", "type": "order.paid", "payload": map[string]any{"id": 7.0}, "key": "k", "stream": "s",
			"lane": "batch", "severity": "high", "subject_table": "public.orders", "subject_ref": "7",
			"idempotency_key": name, "trace": event.Trace, "actor": "ann", "emitted_by": "postgres", "inbound_id": nil, "occurred_at": "2026-01-31T12:00:00.123456+00:00",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
	}
}

// What is left out takes the database's default; empty texts are null.
func TestEmitDefaults(t *testing.T) {
	t.Parallel()
	test := newShop(t)
	event := tidemark.Event{Domain: "shop", Type: "order.paid"}
	if _, err := tidemark.Emit(t.Context(), test.Pool, event); err != nil {
		t.Fatal(err)
	}
	if _, err := tidemark.EmitMany(t.Context(), test.Pool, []tidemark.Event{event}); err != nil {
		t.Fatal(err)
	}

	got, err := store.New(test.Pool).Events(t.Context(), store.EventFilter{})
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	for _, e := range got {
		want := store.StoredEvent{Lane: "immediate", Severity: "info", Domain: "shop", Type: "order.paid", Actor: "postgres", EmittedBy: "postgres"}
		if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(want, "Seq", "EventID", "CreatedAt", "OccurredAt")); diff != "" {
			t.Error(diff)
		}
		if e.OccurredAt != e.CreatedAt {
			t.Errorf("occurred at %s, created at %s", e.OccurredAt, e.CreatedAt)
		}
	}
}

// An event that is refused is refused in every way; of a type that is not registered nothing is stored where Emit is not strict.
func TestEmitRefusals(t *testing.T) {
	t.Parallel()
	test := newShop(t)
	if _, err := test.Pool.Exec(t.Context(), `select tidemark.type_set('shop', 'strict', '{"schema": {"required": ["id"]}}'),
		tidemark.domain_set('meta', '{"metadata_only": true}'), tidemark.type_set('meta', 't')`); err != nil {
		t.Fatal(err)
	}
	for want, event := range map[error]tidemark.Event{
		tidemark.ErrUnknownType:  {Domain: "shop", Type: "never"},
		tidemark.ErrPayload:      {Domain: "shop", Type: "strict"},
		tidemark.ErrForbiddenKey: {Domain: "meta", Type: "t", Payload: json.RawMessage(`{"a": [{"Pass-Word": 1}]}`)},
	} {
		known := tidemark.Event{Domain: "shop", Type: "order.paid"}
		if _, err := tidemark.Emit(t.Context(), test.Pool, event); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if _, err := tidemark.EmitMany(t.Context(), test.Pool, []tidemark.Event{known, event}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		id, err := tidemark.EmitIfRegistered(t.Context(), test.Pool, event)
		ids, errMany := tidemark.EmitManyIfRegistered(t.Context(), test.Pool, []tidemark.Event{known, event})
		if want == tidemark.ErrUnknownType {
			if id != "" || err != nil || len(ids) != 2 || ids[0] == "" || ids[1] != "" || errMany != nil {
				t.Errorf("emit of an unknown type: %v %v %v %v", id, err, ids, errMany)
			}
		} else if !errors.Is(err, want) || !errors.Is(errMany, want) {
			t.Errorf("got %v and %v, want %v", err, errMany, want)
		}
		var misfits tidemark.Misfits
		if found := errors.As(errMany, &misfits); found != (want == tidemark.ErrPayload) || found && (len(misfits) != 1 || misfits[0].Position != 2) {
			t.Errorf("%v: got misfits %v", want, misfits)
		}
	}
	events, err := store.New(test.Pool).Events(t.Context(), store.EventFilter{})
	if err != nil || len(events) != 1 {
		t.Errorf("%d events stored, want the one beside the unknown type; %v", len(events), err)
	}
}

// A text in another encoding is refused in each way: its bytes are not replaced, which would make one key of two.
func TestEmitNotUTF8(t *testing.T) {
	t.Parallel()
	test := newShop(t)
	db := stdlib.OpenDBFromPool(test.Pool)
	t.Cleanup(func() { _ = db.Close() })
	good := tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"name": "Müller"}`)}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[tidemark.Event]()) {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		bad := good
		switch field {
		case "-", "occurred_at":
			continue
		case "payload":
			bad.Payload = json.RawMessage("{\"name\": \"M\xfcller\"}")
		default:
			reflect.ValueOf(&bad).Elem().FieldByIndex(f.Index).SetString("M\xfcller")
		}
		refused := func(place string, err error) {
			t.Helper()
			var e *tidemark.Error
			if !errors.Is(err, tidemark.ErrArgument) || !errors.As(err, &e) || e.Message != place+field+" is not UTF-8" {
				t.Errorf("%s: got %v", field, err)
			}
		}
		_, err := tidemark.Emit(t.Context(), test.Pool, bad)
		refused("", err)
		_, err = tidemark.EmitSQL(t.Context(), db, bad)
		refused("", err)
		_, err = tidemark.EmitMany(t.Context(), test.Pool, []tidemark.Event{good, bad})
		refused("event 2: ", err)
		_, err = tidemark.EmitManySQL(t.Context(), db, []tidemark.Event{good, bad})
		refused("event 2: ", err)
	}
	if events, err := store.New(test.Pool).Events(t.Context(), store.EventFilter{}); err != nil || len(events) != 0 {
		t.Errorf("%d events stored, want none; %v", len(events), err)
	}
}

// newShop gives a database with the domain shop and its type order.paid.
func newShop(t *testing.T) *tidemarktest.DB {
	t.Helper()
	test := tidemarktest.NewDB(t)
	if _, err := test.Pool.Exec(t.Context(), `select tidemark.type_set('shop', 'order.paid')`); err != nil {
		t.Fatal(err)
	}
	return test
}
