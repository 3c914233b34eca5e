package test

import "testing"

const partitioned = `create table orders (id int, shop text, state text, primary key (id, shop)) partition by list (shop);
	create table a partition of orders for values in ('a'); create table b partition of orders for values in ('b');
	create function refuses() returns trigger language plpgsql as $$ begin if new.id in (2, 4) then return null; end if; return new; end $$;
	create trigger refuses before insert on b for each row execute function refuses();
	insert into orders select n, 'a', 'old' from generate_series(1, 5) n`

// An update moves rows to another partition, where a trigger refuses some: these are deleted, and the others' events are their own.
func TestCaptureOfRowsRefusedByTheirNewPartition(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"change", "transaction"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := captured(t, "orders", partitioned)
			s.exec(`select tidemark.inbound_route_set(r.route_code, '{"idempotency_policy": "` + policy + `"}') from tidemark.inbound_route r`)
			s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["state"]}') from tidemark.inbound_route r where r.sql_event = 'delete'`)
			s.exec(`select tidemark.capture_refresh()`)
			s.wantWay(`update orders set shop = 'b' where id = 1`, false)
			s.wantEvents(`update 1,b ["shop"] was {"id": 1, "shop": "a"}`)
			s.exec(`update orders set shop = 'b', state = case id when 1 then state else 'new' end`)
			s.wantRows(`select concat_ws(' ', id, shop, state) from orders order by id`, "1 b old", "3 b new", "5 b new")
			s.wantEvents(`update 3,b ["shop", "state"] was {"id": 3, "shop": "a"}`, `update 5,b ["shop", "state"] was {"id": 5, "shop": "a"}`,
				`delete 2,a {"state": "old"}`, `delete 4,a {"state": "old"}`)
			s.exec(`alter table b disable trigger refuses; insert into orders values (2, 'a', 'old'), (4, 'a', 'old'); alter table b enable trigger refuses`)
			s.wantEvents("insert 2,a", "insert 4,a")

			// All of them; and one, where deletes are not captured.
			s.exec(`update orders set shop = 'b' where id = 4`)
			s.wantEvents(`delete 4,a {"state": "old"}`)
			s.exec(`update tidemark.inbound_route set enabled = false where sql_event = 'delete'`)
			s.exec(`update orders set shop = 'b' where id = 2`)
			s.wantEvents()
			s.wantRows(`select reason from tidemark.captured`)
		})
	}
}

// Where the keys leave it unclear which rows were refused, the statement fails, or is on record.
func TestCaptureOfRowsRefusedUnclearly(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", partitioned)
	const unclear, why = `update orders set shop = 'b', id = id + 1`, "a trigger refused rows in their new partition, and by the primary keys it is unclear which"
	s.refused("TM005", why, unclear)
	s.exec(`update tidemark.inbound_route set fail_closed = false`)
	s.begin()
	s.exec(unclear)
	s.wantEvents()
	s.wantRows(`select concat_ws(' ', outcome, rows, reason) from tidemark.captured`, "failed 5 "+why)
	s.rollback()
	s.exec(`update tidemark.inbound_route set fail_closed = true; alter table orders drop constraint orders_pkey; select tidemark.capture_refresh()`)
	s.refused("TM005", why, `update orders set shop = 'b'`)
	s.exec(`update orders set shop = 'b' where id = 3; update orders set shop = 'b' where id = 4`)
	s.wantEvents(`update null ["shop"]`, "delete null")
}

// PostgreSQL (15.18 at least) hands a row that a MERGE moves by an update to no trigger for updates, and to those for deletes and inserts
// only if the MERGE has such actions. The check warns, and the comparison finds the row under its new key.
func TestCaptureOfRowsMovedByMerge(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int, shop text, primary key (id, shop)) partition by list (shop);
		create table a partition of orders for values in ('a'); create table b partition of orders for values in ('b');
		insert into orders select n, 'a' from generate_series(1, 3) n`)
	s.wantRows(`select concat_ws('|', status, problem) from tidemark.capture_check()`,
		"warn|a MERGE that moves a row of public.orders to another partition makes no event of its update")
	s.wantRows(`select status from tidemark.verify() where "check" = 'captures' and status <> 'ok'`) // nothing mends it
	s.exec(reconciled)
	s.exec(`merge into orders o using (values (1)) v (id) on v.id = o.id when matched then update set shop = 'b'`)
	s.wantRows(`select key from tidemark.outbox`)
	s.wantRows(reconciled, `gap {"1,b"}`)
	s.wantRows(emitGap, "1 t")
	s.wantRows(`select concat_ws(' ', type, key) from tidemark.outbox`, "insert 1,b")
	s.exec(`merge into orders o using (values (2, 0), (9, 1), (3, 2)) v (id, n) on v.id = o.id
		when matched and v.n = 2 then delete when matched then update set shop = 'b' when not matched then insert values (v.id, 'a')`)
	s.wantRows(`select concat_ws(' ', type, key) from tidemark.outbox where seq > (select max(seq) from tidemark.outbox where payload ? 'reconciled') order by type, key`,
		"delete 2,a", "delete 3,a", "insert 2,b", "insert 9,a")
}
