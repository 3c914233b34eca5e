package incidents

import (
	"testing"
)

// captured makes a table whose changes become events.
func (n *night) captured() {
	n.t.Helper()
	n.exec(`create table public.orders (id bigint generated always as identity primary key, name text, total numeric);
		select tidemark.inbound_route_set('orders_in', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop",
			"type": "order.paid", "payload_columns": ["name", "total"], "enabled": true, "dry_run": false}');
		select tidemark.capture_attach('public.orders', 'test')`)
}

// Incident 11.
func TestCaptureDisabled(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.captured()
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.exec(`insert into public.orders (name) select 'a' from generate_series(1, 10)`)
	n.handled(10)
	n.exec(`select * from tidemark.capture_reconcile()`) // where the next one counts from
	n.happens()
	n.exec(`alter table public.orders disable trigger user`)
	n.exec(`insert into public.orders (name) select 'b' from generate_series(1, 15)`)
	c := n.sees("bad", "capture_disabled public.orders", `insert of public.orders make no events: its trigger tidemark_capture_insert is disabled`)
	n.mend(c)
	n.gone("capture_")
	n.exec(`insert into public.orders (name) select 'c' from generate_series(1, 5)`)
	n.handled(30)
}

// Incident 10, of a capture's contract: the application cannot write.
func TestCapturedColumnDropped(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.captured()
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.happens()
	n.exec(`alter table public.orders drop column total`)
	if _, err := n.Pool.Exec(t.Context(), `insert into public.orders (name) values ('refused')`); err == nil {
		t.Fatal("the write was not refused")
	}
	c := n.sees("bad", "capture_broken orders_in", `public.orders has no column total, .* each insert of it by the application fails now`)
	n.mend(c)
	n.gone("capture_")
	n.exec(`insert into public.orders (name) select 'c' from generate_series(1, 5)`)
	n.handled(5)
}

// Incident 9: rows and time behind, rate, and when it will have caught up.
func TestSlowTableCursor(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.source("sequence")
	n.exec(`update tidemark.setting set value = '5 seconds' where key = 'lag.warn'`)
	n.exec(`create or replace function public.greet(shown public.births[]) returns jsonb language plpgsql as $$
		begin
			perform pg_sleep(0.02 * cardinality(shown));
			insert into public.got (key) select s.id::text from unnest(shown) s;
			return '{}';
		end $$`)
	n.exec(`select tidemark.worker_set('greeter', '{"page_size": 50}')`)
	n.daemon("")
	n.happens()
	n.exec(`insert into public.births (name, at) select 'n', now() - interval '1 minute' from generate_series(1, 600)`)
	c := n.sees("warn", "worker_behind greeter/births/0", `\d+ rows are unread, the oldest for 00:0`, `, \d+ wait`)
	n.mend(c)
	n.gone("worker_behind")
	n.handled(600)
}
