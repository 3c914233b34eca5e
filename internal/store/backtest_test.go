package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestRouteBacktest(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	must(t)(db.TypeSet(t.Context(), "shop", "stock", store.Changes{}, ""))
	must(t)(db.RouteSet(t.Context(), "paid", store.Changes{"domain": "shop", "type": "order.*", "target_kind": "webhook", "target_ref": "https://example.com", "options": map[string]any{"unsigned": true}}, "", true))
	for _, e := range []tidemark.Event{
		{Domain: "shop", Type: "order.paid", Key: "7", Payload: json.RawMessage(`{"id":1.50}`)},
		{Domain: "shop", Type: "stock"},
		{Domain: "shop", Type: "order.paid"},
	} {
		emit(t, test, e)
	}

	since := time.Now().Add(-time.Hour)
	groups, err := db.RouteBacktest(t.Context(), "paid", since, time.Time{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	group := store.BacktestGroup{
		Outcome: new("pending"), TargetKind: "webhook", TargetRef: "https://example.com", Events: 2, Keys: new(int64(1)), WithoutKey: new(int64(1)),
		PayloadBytes: new(int64(14)), LargestPayload: new(int64(12)), BusiestEvents: new(int64(2)), Newest: []int64{},
	}
	paid := group
	paid.Domain, paid.Type, paid.Newest = new("shop"), new("order.paid"), []int64{3}
	stock := store.BacktestGroup{
		TargetKind: "webhook", TargetRef: "https://example.com", Domain: new("shop"), Type: new("stock"), Events: 1, Newest: []int64{},
	}
	times := cmpopts.IgnoreFields(store.BacktestGroup{}, "FirstAt", "LastAt", "BusiestMinute", "BusiestEvents") // the minute may end in between
	if diff := cmp.Diff([]store.BacktestGroup{group, paid, stock}, groups, times); diff != "" {
		t.Error(diff)
	}
	if groups[1].FirstAt.Before(since) || groups[1].LastAt.Before(groups[1].FirstAt) || groups[1].BusiestMinute.After(groups[1].LastAt) {
		t.Errorf("times %+v", groups[1])
	}
	if none, err := db.RouteBacktest(t.Context(), "paid", since.Add(-time.Hour), since, 1); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v", none, err)
	}
	_, err = db.RouteBacktest(t.Context(), "never", since, time.Time{}, 1)
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.RouteBacktest(t.Context(), "paid", time.Now().Add(time.Hour), time.Time{}, 1)
	wantError(t, err, tidemark.ErrArgument)
}

func TestLogReach(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	if reach, err := db.LogReach(t.Context(), "default"); err != nil || reach.Begins != nil || reach.Domains != nil {
		t.Errorf("got %v, %v", reach, err)
	}
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid"})
	must(t)(db.WorkerSet(t.Context(), "default", store.Changes{"domains": []string{"bank"}}, "", ""))
	if reach, err := db.LogReach(t.Context(), "default"); err != nil || reach.Begins == nil || !cmp.Equal(reach.Domains, []string{"bank"}) {
		t.Errorf("got %v, %v", reach, err)
	}
}

func TestFullEvents(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	want := []tidemark.Event{
		{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{}`), Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo, Actor: "me", Seq: 2},
		{
			Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"id": 1.50}`), Key: "k", Stream: "s", Lane: tidemark.LaneBatch,
			Severity: tidemark.SeverityHigh, SubjectTable: "orders", SubjectRef: "7", IdempotencyKey: "once",
			Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "me", OccurredAt: time.UnixMicro(1_700_000_000_123_456), Seq: 1,
		},
	}
	for i := len(want) - 1; i >= 0; i-- {
		emit(t, test, want[i])
	}
	events, err := db.FullEvents(t.Context(), store.Route{}, []int64{1, 2, 3})
	if err != nil || len(events) != 2 {
		t.Fatalf("got %v, %v", events, err)
	}
	want[0].OccurredAt = events[0].CreatedAt
	for i, event := range events {
		if diff := cmp.Diff(want[i], event.Event, cmpopts.IgnoreFields(tidemark.Event{}, "ID", "CreatedAt")); diff != "" {
			t.Error(diff)
		}
		var document map[string]any
		if err := json.Unmarshal(event.Document, &document); err != nil || document["event_id"] != event.ID || len(event.ID) != 36 {
			t.Errorf("got %s, %v", event.Document, err)
		}
	}

	conn := test.Connect(t)
	if _, err := conn.Exec(t.Context(), `set role tidemark_reader`); err != nil {
		t.Fatal(err)
	}
	if none, err := store.New(conn).FullEvents(t.Context(), store.Route{}, []int64{1}); err != nil || none != nil {
		t.Errorf("got %v, %v", none, err)
	}
}

// Who changes options holds the route, so that of two who change some neither loses what the other set.
func TestRouteOptions(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	if options, err := db.RouteOptions(t.Context(), "paid"); err != nil || len(options) != 0 || options == nil {
		t.Errorf("got %v, %v", options, err)
	}
	must(t)(db.RouteSet(t.Context(), "paid", store.Changes{
		"domain": "shop", "target_kind": "river", "target_ref": "x", "options": map[string]any{"queue": "q"},
	}, "", true))
	tx, err := test.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	options, err := store.New(tx).RouteOptions(t.Context(), "paid")
	if diff := cmp.Diff(map[string]json.RawMessage{"queue": json.RawMessage(`"q"`)}, options); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err = test.Pool.Exec(t.Context(), `set lock_timeout = '10ms'; update tidemark.outbound_route set options = '{}'`)
	if pgErr := (*pgconn.PgError)(nil); !errors.As(err, &pgErr) || pgErr.Code != "55P03" {
		t.Errorf("got %v, want a lock that is not free", err)
	}
}
