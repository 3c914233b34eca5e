package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	checks, err := db.Verify(t.Context())
	if err != nil || len(checks) == 0 {
		t.Fatal(checks, err)
	}
	for _, c := range checks {
		if c.Status == "fail" {
			t.Errorf("a fresh installation fails: %+v", c)
		}
	}
	must(t)(db.Maintain(t.Context()))
	exec(t, test, `select tidemark.finding_open('cursor_holes', 'default', 'high', 'the cursor waits')`)
	findings, err := db.OpenFindings(t.Context(), nil, 0)
	if err != nil || len(findings) != 1 || findings[0].Kind != "cursor_holes" || findings[0].Count != 1 {
		t.Errorf("got %+v, %v", findings, err)
	}
	server, err := db.Server(t.Context())
	if err != nil || server.Database != test.Name || server.Role != "postgres" || server.InStandby {
		t.Errorf("got %+v, %v", server, err)
	}
	emit(t, test, tidemark.Event{Domain: "shop", Type: "order.paid"})
	seen, err := db.Overview(t.Context(), store.Most{})
	counts := seen.Counts
	if err != nil || counts.NewestEventAt == nil || seen.Storage.LogBytes == 0 || seen.Storage.Connections == 0 || seen.Storage.OldestAt == nil {
		t.Fatal(seen, err)
	}
	counts.NewestEventAt = nil
	if diff := cmp.Diff(store.Counts{LastSeq: 1, EventTypes: 2, Cursors: 1, OpenFindings: 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestInstallPackIsOneTransaction(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	install := func(sql string) error {
		return pgx.BeginFunc(t.Context(), test.Pool, func(tx pgx.Tx) error {
			_, err := store.New(tx).InstallPack(t.Context(), "p", "1.0.0", "sum", sql)
			return err
		})
	}
	if err := install(`create table public.mine (n int); select tidemark.gate_set('worker.never.enabled', true)`); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := install(`create table if not exists public.mine (n int); insert into public.mine values (1)`); err != nil {
			t.Fatal(err)
		}
	}
	packs, err := db.Packs(t.Context())
	want := []store.Pack{{Pack: "p", Version: "1.0.0", Checksum: "sum", InstalledBy: "postgres"}}
	if diff := cmp.Diff(want, packs, cmpopts.IgnoreFields(store.Pack{}, "InstalledAt")); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
