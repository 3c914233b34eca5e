package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Every field arrives, by each of the three ways to emit.
func TestEmitEveryField(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	event := tidemark.Event{
		Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"id": 7}`), Key: "k", Stream: "s",
		Lane: tidemark.LaneBatch, Severity: tidemark.SeverityHigh, SubjectTable: "public.orders", SubjectRef: "7",
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "ann",
		OccurredAt: time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC),
	}
	ways := map[string]func(tidemark.Event) (*string, error){
		"emit":        func(e tidemark.Event) (*string, error) { return db.Emit(t.Context(), e) },
		"emit_strict": func(e tidemark.Event) (*string, error) { return db.EmitStrict(t.Context(), e) },
		"emit_many": func(e tidemark.Event) (*string, error) {
			ids, err := db.EmitMany(t.Context(), []tidemark.Event{e})
			if len(ids) != 1 {
				t.Fatalf("%d ids, %v", len(ids), err)
			}
			return ids[0], err
		},
	}
	for name, emit := range ways {
		event.IdempotencyKey = name
		id, err := emit(event)
		if err != nil || id == nil {
			t.Fatal(name, id, err)
		}
		again, err := emit(event)
		if err != nil || again == nil || *again != *id {
			t.Errorf("%s: the same idempotency key gave %v, %v", name, again, err)
		}
		var got map[string]any
		const row = `select to_jsonb(o) - '{seq,event_id,created_at}'::text[] from tidemark.outbox o where o.event_id = $1`
		if err := test.Pool.QueryRow(t.Context(), row, *id).Scan(&got); err != nil {
			t.Fatal(name, err)
		}
		want := map[string]any{
			"domain": "shop", "type": "order.paid", "payload": map[string]any{"id": 7.0}, "key": "k", "stream": "s",
			"lane": "batch", "severity": "high", "subject_table": "public.orders", "subject_ref": "7",
			"idempotency_key": name, "trace": event.Trace, "actor": "ann", "emitted_by": "postgres", "occurred_at": "2026-01-31T12:00:00.123456+00:00",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
	}
}

// What is left out takes the database's default; empty texts are null.
func TestEmitDefaults(t *testing.T) {
	t.Parallel()
	_, db := setup(t)
	event := tidemark.Event{Domain: "shop", Type: "order.paid"}
	must(t)(db.Emit(t.Context(), event))
	must(t)(db.EmitMany(t.Context(), []tidemark.Event{event}))

	got, err := db.Events(t.Context(), store.EventFilter{})
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

func TestEmitRefusals(t *testing.T) {
	t.Parallel()
	_, db := setup(t)
	must(t)(db.TypeSet(t.Context(), "shop", "strict", store.Changes{
		"schema": map[string]any{"required": []string{"id"}},
	}, ""))
	must(t)(db.DomainSet(t.Context(), "meta", store.Changes{"metadata_only": true}, ""))
	must(t)(db.TypeSet(t.Context(), "meta", "t", nil, ""))

	for want, event := range map[error]tidemark.Event{
		tidemark.ErrUnknownType:  {Domain: "shop", Type: "never"},
		tidemark.ErrPayload:      {Domain: "shop", Type: "strict"},
		tidemark.ErrForbiddenKey: {Domain: "meta", Type: "t", Payload: json.RawMessage(`{"a": [{"Pass-Word": 1}]}`)},
	} {
		_, err := db.EmitStrict(t.Context(), event)
		wantError(t, err, want)
		id, err := db.Emit(t.Context(), event)
		ids, errMany := db.EmitMany(t.Context(), []tidemark.Event{{Domain: "shop", Type: "order.paid"}, event})
		if want == tidemark.ErrUnknownType {
			if id != nil || err != nil || len(ids) != 2 || ids[0] == nil || ids[1] != nil || errMany != nil {
				t.Errorf("emit of an unknown type: %v %v %v %v", id, err, ids, errMany)
			}
			continue
		}
		wantError(t, err, want)
		wantError(t, errMany, want)
	}
	events, err := db.Events(t.Context(), store.EventFilter{})
	if err != nil || len(events) != 1 {
		t.Errorf("%d events stored, want the one beside the unknown type; %v", len(events), err)
	}
}
