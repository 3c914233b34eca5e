package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO12: a route begins with the rows of a table, and goes on with what is inserted: each row that was committed comes once,
// while writers commit late and roll back, and the worker is paused and its passes are cut short.
func TestBackfillThenLive(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "worker")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s.exec(`create table orders (id bigint generated always as identity primary key, customer text);
		insert into orders (customer) select 'c' || n % 5 from generate_series(1, 3000) n;
		create table got (at bigint generated always as identity, id bigint, customer text);
		create function take(events tidemark.outbox[]) returns void language sql as $$
			insert into got (id, customer) select (e.payload ->> 'id')::bigint, e.key from unnest(events) e order by e.seq $$;
		select tidemark.stage_set('live', 'test'), tidemark.type_set('shop', 'order.row');
		select tidemark.route_set('search', '{"domain": "shop", "type": "order.row", "ordering": "key", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}');
		select tidemark.source_set('orders', '{"table": "public.orders", "id_column": "id", "safety": "sequence", "key_columns": ["customer"]}', 'test');
		select tidemark.worker_set('rows', '{"source": "table", "handler": "emit", "handler_ref": "shop/order.row"}', 'test');
		select tidemark.worker_source_add('rows', 'orders', 'test');
		select tidemark.gate_set(g, true) from unnest(array['routes.enabled', 'worker.default.enabled', 'worker.rows.enabled']) g`)

	var writers sync.WaitGroup
	for n := range 3 {
		conn := db.Connect(t)
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		writers.Go(func() {
			for range 60 {
				end := "commit"
				if r.IntN(4) == 0 {
					end = "rollback"
				}
				if _, err := conn.Exec(context.Background(), fmt.Sprintf(`begin; insert into orders (customer) select 'c' || %d from generate_series(1, %d);
					savepoint a; insert into orders (customer) values ('c9'); %s a; select pg_sleep(%f); %s`,
					r.IntN(5), 1+r.IntN(5), []string{"release", "rollback to"}[r.IntN(2)], r.Float64()*0.02, end)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()

	r := rand.New(rand.NewPCG(seed, 9))
	pass := func() (more bool) {
		more = one[bool](s, `select coalesce((tidemark.worker_run('rows', page => $1) ->> 'more')::boolean, false)`, 1+r.IntN(200))
		return s.pass().Events > 0 || more
	}
	for during := true; during; {
		select {
		case <-written:
			during = false
		default:
		}
		paused := r.IntN(5) == 0
		s.exec(`select tidemark.worker_pause('rows', $1, 'test')`, paused)
		pass()
	}
	s.exec(`select tidemark.worker_pause('rows', false, 'test')`)
	const missing = `select count(*)::int from orders o where not exists (select from got g where g.id = o.id)`
	for tries := 0; pass() || one[int](s, missing) > 0; tries++ {
		if tries > 1000 {
			t.Fatal("it does not end")
		}
	}
	s.wantRows(`select concat_ws(' ', 'row', o.id, 'came', count(g.id)) from orders o left join got g on g.id = o.id group by o.id having count(g.id) <> 1`)
	s.wantRows(`select 'no row ' || id from got where id not in (select id from orders)`)
	s.wantRows(`select 'row ' || id || ' of another key' from got join orders o using (id) where got.customer <> o.customer`)
	s.wantRows(`select "check" || ': ' || detail from tidemark.verify() where status = 'fail'`)
	if n := one[int](s, `select count(*)::int from orders`); n < 3050 {
		t.Errorf("%d rows: too few were written meanwhile to prove anything", n)
	}
}
