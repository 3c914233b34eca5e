package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Pages that are settled together leave the cursor, the evidence and the counters as one settle each does: pages with events that
// came late, with a dry run and without.
func TestPagesSettledTogether(t *testing.T) {
	t.Parallel()
	left := map[bool][]string{}
	for _, together := range []bool{false, true} {
		test, pool, c := paged(t, func(*pgxpool.Config) {})
		late, err := test.Pool.Begin(t.Context())
		must(t)(nil, err)
		defer late.Rollback(t.Context())
		must(t)(late.Exec(t.Context(), emitMany))
		exec(t, test, emitMany)
		settle := func(page *store.Page, results []store.Result) {
			t.Helper()
			must(t)(nil, c.Settle(t.Context(), nil, page, results))
			c.Settled(page)
		}
		var last, joined *store.Page
		var all []store.Result
		for n, limit := range []int{7, 100, 400, 1000, 1} {
			switch n {
			case 2:
				must(t)(nil, late.Commit(t.Context()))
			case 4:
				exec(t, test, `select tidemark.emit('shop', 'elsewhere'), tidemark.emit('shop', 'order.shipped')`)
			}
			page := read(t, c, store.Ask{Limit: limit, After: last, NothingPending: true})
			var results []store.Result
			for _, item := range page.Items {
				for _, route := range item.Routes {
					results = append(results, store.Result{Route: route, Seq: item.Seq, Fresh: true, Outcome: store.Sent})
				}
			}
			if !together {
				settle(page, results)
				continue
			}
			if last, all = page, append(all, results...); joined == nil {
				joined = page
			} else {
				joined = joined.Then(page)
			}
		}
		if together {
			settle(joined, all)
		}
		if page := read(t, c, store.Ask{Limit: 1000}); page.Events != 0 {
			t.Errorf("%d events are left", page.Events)
		}
		rows, _ := pool.Query(t.Context(), `
			select concat_ws(' ', a.seq, a.route_code, a.attempt_no, a.outcome, a.reason) from tidemark.route_attempt a
			union all
			select concat_ws(' ', watermark_id, decided_through, holes, fenced, events_seen, attempts_written, dead_lettered) from tidemark.worker_cursor
			union all
			select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'
			order by 1`)
		left[together], err = pgx.CollectRows(rows, pgx.RowTo[string])
		must(t)(nil, err)
	}
	if diff := cmp.Diff(left[false], left[true]); diff != "" || len(left[true]) < 600 {
		t.Errorf("%d lines; -apart +together: %s", len(left[true]), diff)
	}
}
