package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// paged is a claimed cursor of a log whose events leave by two routes: orders by both, every third by one, every seventh by none
// and later by one after all. Others wait.
func paged(t *testing.T, change func(*pgxpool.Config)) (*tidemarktest.DB, *pgxpool.Pool, *store.Cursor) {
	t.Helper()
	test, db := setup(t)
	exec(t, test, `select tidemark.stage_set('live', 'test'), tidemark.type_set('shop', 'note'), tidemark.type_set('shop', 'other')`)
	open(t, db, "default")
	for code, typ := range map[string]string{"b": "*", "a": "order.paid", "dry": "other"} {
		must(t)(db.RouteSet(t.Context(), code, store.Changes{
			"domain": "shop", "type": typ, "target_kind": "kafka", "target_ref": code, "enabled": true, "dry_run": code == "dry",
		}, "test", true))
	}
	must(t)(db.RouteSet(t.Context(), "b", store.Changes{"type": "note"}, "test", false))
	must(t)(db.RouteSet(t.Context(), "all", store.Changes{
		"domain": "shop", "type": "order.*", "target_kind": "kafka", "target_ref": "all", "enabled": true, "dry_run": false,
	}, "test", true))
	config := test.Pool.Config().Copy()
	config.MaxConns = 1
	change(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t)(nil, err)
	t.Cleanup(pool.Close)
	c := store.NewCursor(pool, "default", 0, "x", time.Minute)
	if got, err := c.Claim(t.Context()); err != nil || got.Status != "claimed" {
		t.Fatal(got, err)
	}
	return test, pool, c
}

const emitMany = `select tidemark.emit('shop', case when n % 3 = 0 then 'note' when n % 7 = 0 then 'other' else 'order.paid' end,
	jsonb_build_object('n', n), key => (n % 10)::text, stream => 's', subject_ref => n::text, trace => 't') from generate_series(1, 300) n`

func read(t *testing.T, c *store.Cursor, ask store.Ask) *store.Page {
	t.Helper()
	page, err := c.Read(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// A page whose rows come straight from the log has what any other has, however the pool sends statements: events of several
// routes and of none, late ones, pending ones, those of a page behind another.
func TestPageApart(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			test, _, c := paged(t, func(config *pgxpool.Config) { config.ConnConfig.DefaultQueryExecMode = mode })
			same := func(ask store.Ask, items int) *store.Page {
				t.Helper()
				ask.Limit = 1000
				want := read(t, c, ask)
				ask.Apart = true
				got := read(t, c, ask)
				if diff := cmp.Diff(want.Items, got.Items); diff != "" || items >= 0 && len(got.Items) != items || got.Events != want.Events {
					t.Fatalf("%d items, want %d, of %d events: %s", len(got.Items), items, got.Events, diff)
				}
				return got
			}
			same(store.Ask{}, 0)
			late, err := test.Pool.Begin(t.Context())
			must(t)(nil, err)
			defer late.Rollback(t.Context())
			must(t)(late.Exec(t.Context(), emitMany))
			exec(t, test, emitMany)
			first := same(store.Ask{}, 272)
			if routes := first.Items[0].Routes; len(routes) != 2 || !slices.IsSorted(routes) {
				t.Errorf("event %d leaves by the routes %d", first.Items[0].Seq, routes)
			}
			exec(t, test, emitMany)
			same(store.Ask{After: first, NothingPending: true}, 272)

			var results []store.Result
			for _, item := range first.Items {
				for _, route := range item.Routes {
					outcome := store.Sent
					if item.Seq%5 == 0 {
						outcome = store.Pending
					}
					results = append(results, store.Result{Route: route, Seq: item.Seq, Fresh: true, Outcome: outcome})
				}
			}
			must(t)(nil, c.Settle(t.Context(), nil, first, results))
			c.Settled(first)
			must(t)(nil, late.Commit(t.Context()))
			same(store.Ask{NothingPending: true}, 2*272)
			next := same(store.Ask{}, -1)
			if fresh, pending := next.Items[0], next.Items[len(next.Items)-1]; !fresh.Fresh || fresh.Seq > 300 || pending.Fresh {
				t.Errorf("the first one is %+v, the last one %+v", fresh, pending)
			}
			same(store.Ask{Bytes: 1}, -1)
		})
	}
}

// The rows come by the index, whatever the planner thinks of the log.
func TestPageApartByIndex(t *testing.T) {
	t.Parallel()
	test, pool, c := paged(t, func(config *pgxpool.Config) { config.ConnConfig.RuntimeParams["random_page_cost"] = "1000000" })
	exec(t, test, emitMany)
	if page := read(t, c, store.Ask{Limit: 1000, Apart: true}); len(page.Items) != 272 {
		t.Fatalf("%d items", len(page.Items))
	}
	must(t)(pool.Exec(t.Context(), `select pg_stat_force_next_flush()`))
	var scans int
	must(t)(nil, pool.QueryRow(t.Context(), `select sum(seq_scan) from pg_stat_user_tables where relname like 'outbox%'`).Scan(&scans))
	if scans != 0 {
		t.Errorf("%d scans of the whole log", scans)
	}
}
