package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestEventsFilterAndOrder(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	must(t)(db.TypeSet(t.Context(), "shop", "order.sent", nil, ""))
	for _, e := range []tidemark.Event{
		{Domain: "shop", Type: "order.paid", Key: "1"},
		{Domain: "shop", Type: "order.sent", Key: "1", Stream: "alert"},
		{Domain: "shop", Type: "order.paid", Key: "2"},
	} {
		emit(t, test, e)
	}
	now := time.Now()
	for _, test := range []struct {
		filter store.EventFilter
		want   []int64
	}{
		{store.EventFilter{}, []int64{3, 2, 1}},
		{store.EventFilter{Limit: 2}, []int64{3, 2}},
		{store.EventFilter{BeforeSeq: 3, Limit: 1}, []int64{2}},
		{store.EventFilter{Domain: "shop", Type: "order.paid"}, []int64{3, 1}},
		{store.EventFilter{Key: "1"}, []int64{2, 1}},
		{store.EventFilter{Stream: "alert"}, []int64{2}},
		{store.EventFilter{Domain: "other"}, nil},
		{store.EventFilter{Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}, []int64{3, 2, 1}},
		{store.EventFilter{Since: now.Add(time.Hour)}, nil},
		{store.EventFilter{Until: now.Add(-time.Hour)}, nil},
	} {
		events, err := db.Events(t.Context(), test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test.filter, diff)
		}
	}
}

// The time in an id is that of its event whatever the fraction of its millisecond.
func TestEventIsFoundByItsID(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	for range 20 {
		id, err := tidemark.Emit(t.Context(), test.Pool, tidemark.Event{Domain: "shop", Type: "order.paid"})
		if err != nil {
			t.Fatal(err)
		}
		if seq, err := db.EventSeq(t.Context(), id); seq == nil || err != nil {
			t.Fatalf("event %s: got %v, %v", id, seq, err)
		}
	}
}

func TestEventAndItsEvidence(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	id, err := tidemark.Emit(t.Context(), test.Pool, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"a": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	open(t, db, "default")
	must(t)(db.RouteWorkerRun(t.Context(), "default", 10))

	seq, err := db.EventSeq(t.Context(), id)
	if err != nil || seq == nil {
		t.Fatal(seq, err)
	}
	event, err := db.Event(t.Context(), *seq)
	if err != nil || event.EventID != id {
		t.Errorf("got %+v, %v", event, err)
	}
	payload, err := db.EventPayload(t.Context(), *seq)
	if string(payload) != `{"a": 1}` || err != nil {
		t.Errorf("got %s, %v", payload, err)
	}
	evidence, err := db.Evidence(t.Context(), *seq)
	if err != nil || len(evidence) != 1 || evidence[0].Outcome != "skipped" || evidence[0].RouteCode != nil {
		t.Errorf("got %+v, %v", evidence, err)
	}

	_, err = db.Event(t.Context(), 99)
	wantError(t, err, tidemark.ErrNotFound)
	if seq, err := db.EventSeq(t.Context(), "0190d7a5-0000-7000-8000-000000000000"); seq != nil || err != nil {
		t.Errorf("got %v, %v", seq, err)
	}
}

// A reader sees everything of an event but its payload.
func TestReaderSeesNoPayload(t *testing.T) {
	t.Parallel()
	test, _ := setup(t)
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"a": 1}`)})
	conn := test.Connect(t)
	if _, err := conn.Exec(t.Context(), "set role tidemark_reader"); err != nil {
		t.Fatal(err)
	}
	reader := store.New(conn)
	if events, err := reader.Events(t.Context(), store.EventFilter{}); err != nil || len(events) != 1 {
		t.Errorf("got %v, %v", events, err)
	}
	if payload, err := reader.EventPayload(t.Context(), 1); payload != nil || err != nil {
		t.Errorf("got %s, %v", payload, err)
	}
	if snapshot, err := reader.DeadLetterSnapshot(t.Context(), 1); snapshot != nil || err != nil {
		t.Errorf("got %s, %v", snapshot, err)
	}
	for name, read := range map[string]func() error{
		"server":       func() error { _, err := reader.Server(t.Context()); return err },
		"overview":     func() error { _, err := reader.Overview(t.Context(), store.Most{Routes: 1}); return err },
		"health":       func() error { _, err := reader.WorkerHealth(t.Context()); return err },
		"gates":        func() error { _, err := reader.Gates(t.Context()); return err },
		"stage":        func() error { _, err := reader.Stage(t.Context()); return err },
		"types":        func() error { _, err := reader.EventTypes(t.Context(), "", store.Part{}); return err },
		"domains":      func() error { _, err := reader.Domains(t.Context()); return err },
		"routes":       func() error { _, err := reader.Routes(t.Context(), store.RouteFilter{}); return err },
		"dead letters": func() error { _, err := reader.DeadLetters(t.Context(), store.LetterFilter{}); return err },
		"evidence":     func() error { _, err := reader.Evidence(t.Context(), 1); return err },
		"findings":     func() error { _, err := reader.OpenFindings(t.Context(), nil, 0); return err },
		"packs":        func() error { _, err := reader.Packs(t.Context()); return err },
		"verify":       func() error { _, err := reader.Verify(t.Context()); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
