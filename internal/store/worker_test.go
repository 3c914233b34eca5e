package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestWorkers(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	made, err := db.WorkerSet(t.Context(), "w", store.Changes{"domains": []string{"shop"}, "read_order": "strict"}, "test", "")
	want := store.Worker{
		Worker: "w", Source: "outbox", Handler: "route", PayloadColumns: []string{}, Domains: []string{"shop"}, ReadOrder: "strict",
		HoleLimit: 10000, Shards: 1, PageSize: 5000, PageTimeout: "00:00:05", PeakPause: "00:00:01",
	}
	if diff := cmp.Diff(want, made); diff != "" || err != nil {
		t.Error(err, diff)
	}

	pass, err := db.RouteWorkerRun(t.Context(), "w", 100)
	noSummary := cmpopts.IgnoreFields(store.Pass{}, "Summary")
	if diff := cmp.Diff(store.Pass{Worker: "w", Status: "closed", Gate: "routes.enabled"}, pass, noSummary); diff != "" || err != nil {
		t.Error(err, diff)
	}
	open(t, db, "w")
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid"})
	pass, err = db.RouteWorkerRun(t.Context(), "w", 100)
	ran := store.Pass{Worker: "w", Status: "ran", Events: 1, Decided: map[string]int{"skipped": 1}, Watermark: 1}
	if diff := cmp.Diff(ran, pass, noSummary); diff != "" || err != nil {
		t.Error(err, diff)
	}
	health, err := db.WorkerHealthOf(t.Context(), "w")
	if err != nil || health.Status != "idle" || *health.Watermark != 1 || health.EventsSeen != 1 || health.LastRunAt == nil {
		t.Errorf("got %+v, %v", health, err)
	}
	if all, err := db.WorkerHealth(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
	for _, dryRun := range []bool{true, false} {
		got, err := db.WorkerRewind(t.Context(), "w", 0, "test", dryRun)
		want := []store.Rewound{
			{Was: 1, Outcome: to("skipped"), Events: 1, Decided: to(true), Complete: true},
			{Was: 1, Events: 1, Complete: true},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}

	_, err = db.WorkerHealthOf(t.Context(), "never")
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.RouteWorkerRun(t.Context(), "never", 100)
	wantError(t, err, tidemark.ErrNotFound)
	_, err = db.WorkerRewind(t.Context(), "w", 0, "", false)
	wantError(t, err, tidemark.ErrArgument)
	for _, limit := range []int{0, -1, 50001} {
		_, err = db.RouteWorkerRun(t.Context(), "w", limit)
		wantError(t, err, tidemark.ErrArgument)
	}
}

func TestWorkerRefusesOtherIsolationLevels(t *testing.T) {
	t.Parallel()
	test, _ := setup(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		tx, err := test.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.New(tx).RouteWorkerRun(t.Context(), "default", 100)
		wantError(t, err, tidemark.ErrIsolation)
		_ = tx.Rollback(t.Context())
	}
}

func to[T any](v T) *T { return &v }
