package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestTypesAndDomains(t *testing.T) {
	t.Parallel()
	_, db := setup(t)
	schema := map[string]any{"type": "object"}
	set, err := db.TypeSet(t.Context(), "shop", "order.paid", store.Changes{"schema": schema, "version": 2}, "test")
	if err != nil {
		t.Fatal(err)
	}
	want := store.EventType{
		Domain: "shop", Type: "order.paid", Version: 2, Enabled: true, Schema: json.RawMessage(`{"type": "object"}`),
		Unchecked: []string{}, Description: "An order was paid.",
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
	shown, err := db.EventType(t.Context(), "shop", "order.paid")
	if diff := cmp.Diff(want, shown); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if all, err := db.EventTypes(t.Context(), "", store.Part{}); err != nil || len(all) != 4 { // and three of the domain system
		t.Errorf("got %v, %v", all, err)
	}
	if none, err := db.EventTypes(t.Context(), "other", store.Part{}); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v", none, err)
	}
	_, err = db.EventType(t.Context(), "shop", "never")
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.TypeSet(t.Context(), "shop", "order.paid", store.Changes{"colour": "red"}, "")
	wantError(t, err, tidemark.ErrArgument)

	must(t)(db.DomainSet(t.Context(), "shop", store.Changes{"metadata_only": true}, ""))
	domains, err := db.Domains(t.Context())
	mine := []store.Domain{
		{Domain: "shop", MetadataOnly: true, Emitters: []string{}, Types: 1},
		{Domain: "system", MetadataOnly: true, Restricted: true, Emitters: []string{}, Types: 3, Description: "What Tidemark says of itself."},
	}
	if diff := cmp.Diff(mine, domains); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	_, db := setup(t)
	made, err := db.RouteSet(t.Context(), "paid", store.Changes{
		"domain": "shop", "type": "order.*", "target_kind": "notify", "target_ref": "orders",
	}, "test", true)
	if err != nil {
		t.Fatal(err)
	}
	want := store.Route{
		RouteCode: "paid", Worker: "default", Domain: "shop", Type: "order.*", TargetKind: "notify", TargetRef: "orders",
		DryRun: true, FailClosed: true, Ordering: "none", Timeout: "00:00:10", Concurrency: 4,
		Options: json.RawMessage("{}"),
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	shown, err := db.Route(t.Context(), "paid")
	if diff := cmp.Diff(want, shown); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for worker, n := range map[string]int{"": 1, "default": 1, "other": 0} {
		if routes, err := db.Routes(t.Context(), store.RouteFilter{Worker: worker}); err != nil || len(routes) != n {
			t.Errorf("worker %q: got %v, %v", worker, routes, err)
		}
	}
	_, err = db.Route(t.Context(), "never")
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.RouteSet(t.Context(), "never", store.Changes{"enabled": true}, "", false)
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.RouteSet(t.Context(), "paid", store.Changes{"enabled": true, "dry_run": false}, "", false)
	wantError(t, err, tidemark.ErrNotLive)
}

func TestGates(t *testing.T) {
	t.Parallel()
	_, db := setup(t)
	if err := db.GateSet(t.Context(), "worker.default.enabled", true, "because"); err != nil {
		t.Fatal(err)
	}
	got, err := db.Gates(t.Context())
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	who, why := "postgres", "because"
	want := []store.Gate{{Gate: "routes.enabled"}, {Gate: "worker.default.enabled", Open: true, ChangedBy: &who, Reason: &why}, {Gate: "notify.bridge_enabled"}, {Gate: "notify.listeners_enabled"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Gate{}, "ChangedAt")); diff != "" {
		t.Error(diff)
	}
	if got[0].ChangedAt != nil || got[1].ChangedAt == nil {
		t.Error("the times are wrong", got)
	}
	wantError(t, db.GateSet(t.Context(), "worker.never.enabled", true, ""), tidemark.ErrNotFound)
	if gate, err := db.ClosedGate(t.Context(), "default"); gate == nil || *gate != "routes.enabled" || err != nil {
		t.Errorf("got %v, %v", gate, err)
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	wantError(t, db.StageSet(t.Context(), "live", ""), tidemark.ErrArgument)
	if err := db.StageSet(t.Context(), "live", "go"); err != nil {
		t.Fatal(err)
	}
	stage, err := db.Stage(t.Context())
	if err != nil || stage.Stage != "live" || !stage.Armed || stage.Reason != "go" || *stage.Database != test.Name {
		t.Errorf("got %+v, %v", stage, err)
	}
}
