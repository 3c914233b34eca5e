package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// The settle of a page that was to deliver nothing inside the database delivers nothing there, whatever has become due meanwhile: its
// time is bounded by what was known. The next page brings it.
func TestDueInsideAfterTheRead(t *testing.T) {
	t.Parallel()
	test, _, c := paged(t, func(*pgxpool.Config) {})
	exec(t, test, `create table taken (seq bigint)`)
	exec(t, test, `create function take(event jsonb) returns void language sql as $$ insert into taken select (event ->> 'seq')::bigint $$`)
	exec(t, test, `select tidemark.route_set('inside', '{"domain": "shop", "type": "note", "target_kind": "sql", "target_ref": "public.take",
		"enabled": true, "dry_run": false}')`)
	exec(t, test, `select tidemark.emit('shop', 'note')`)
	page := read(t, c, store.Ask{Limit: 100})
	if page.Inside == 0 || len(page.Items) != 1 {
		t.Fatalf("inside %s, %d items", page.Inside, len(page.Items))
	}
	// A gate that is closed as the page is settled leaves it pending.
	exec(t, test, `select tidemark.route_pause('inside', 'test')`)
	settle := func() {
		t.Helper()
		var results []store.Result
		for _, item := range page.Items {
			results = append(results, store.Result{Route: item.Routes[0], Seq: item.Seq, Fresh: item.Fresh, Outcome: store.Sent})
		}
		must(t)(nil, c.Settle(t.Context(), nil, page, results))
		c.Settled(page)
	}
	taken := func(want int) {
		t.Helper()
		var n int
		must(t)(nil, test.Pool.QueryRow(t.Context(), `select count(*) from taken`).Scan(&n))
		if n != want {
			t.Fatalf("%d deliveries, want %d", n, want)
		}
	}
	settle()
	taken(0)
	exec(t, test, `select tidemark.emit('shop', 'order.paid')`)
	if page = read(t, c, store.Ask{Limit: 100}); page.Inside != 0 || len(page.Items) == 0 {
		t.Fatalf("inside %s, %d items", page.Inside, len(page.Items))
	}
	exec(t, test, `select tidemark.route_resume('inside', 'test')`)
	settle()
	taken(0)
	if page = read(t, c, store.Ask{Limit: 100}); page.Inside == 0 {
		t.Fatal("nothing is to be delivered inside")
	}
	settle()
	taken(1)
	var failed int
	must(t)(nil, test.Pool.QueryRow(t.Context(), `select (select count(*) from tidemark.pending) + count(*) from tidemark.verify() where status = 'fail'`).Scan(&failed))
	if failed != 0 {
		t.Error("an event is pending, or verify fails")
	}
}
