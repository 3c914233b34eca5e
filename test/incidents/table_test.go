package incidents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// captured makes a table whose changes become events.
func (n *night) captured() {
	n.t.Helper()
	n.exec(`create table public.orders (id bigint generated always as identity primary key, name text, total numeric);
		select tidemark.inbound_route_set('orders_in', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop",
			"type": "order.paid", "payload_columns": ["name", "total"], "enabled": true, "dry_run": false}');
		select tidemark.capture_attach('public.orders', 'test')`)
}

// capturedTables are public.t1 and so on, whose inserts become events. No two rows of them have the same key.
func (n *night) capturedTables(tables int) {
	n.t.Helper()
	n.exec(fmt.Sprintf(`do $$ begin
		for i in 1 .. %d loop
			execute format('create table public.t%%s (id bigint generated always as identity (start %%s) primary key, name text)', i, i * 1000);
			perform tidemark.inbound_route_set(format('t%%s_in', i), jsonb_build_object('source_schema', 'public', 'source_table', 't' || i, 'sql_event', 'insert',
				'domain', 'shop', 'type', 'order.paid', 'payload_columns', '["name"]'::jsonb, 'enabled', true, 'dry_run', false));
			perform tidemark.capture_attach(format('public.t%%s', i)::regclass, 'test');
		end loop; end $$`, tables))
}

// Incident 11, in three of 200 captured tables: a trigger is disabled, another is dropped, and a session bypasses a third, as a
// replication tool does, while others write as always.
func TestCaptureDisabled(t *testing.T) {
	t.Parallel()
	// A server without other sessions: the comparison of captured tables would wait for their end.
	server := testserver.New(t, devpg.Options{})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.capturedTables(200)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.exec(`insert into public.t50 (name) select 'a' from generate_series(1, 10); insert into public.t100 (name) values ('a'); insert into public.t150 (name) values ('a')`)
	n.handled(12)
	n.until("the tables have been compared", func() bool {
		// Each step waits a minute. Sessions count what they did after ten seconds.
		n.exec(`select pg_stat_force_next_flush(); update tidemark.capture_round set at = '-infinity'`)
		n.exec(`select tidemark.maintain()`)
		return n.value(`select count(*)::text from tidemark.capture_count c, tidemark.capture_round r where c.base_inserts = 0 and c.status = 'even' and r.compared`) == "200"
	})
	n.exec(`update tidemark.capture_round set noted_at = noted_at - interval '1 minute'`)

	n.happens()
	n.exec(`alter table public.t50 disable trigger user; drop trigger tidemark_capture_insert on public.t100`)
	n.exec(`set session_replication_role = replica; insert into public.t150 (name) select 'b' from generate_series(1, 5); reset session_replication_role`)
	for _, table := range []string{"t50", "t100"} {
		n.exec(`insert into public.` + table + ` (name) select 'b' from generate_series(1, 5)`)
	}
	const missed = `at least 5 inserts .* have no event`
	causes := []shown{
		n.sees("bad", "capture_disabled public.t50", `no insert of public.t50 becomes an event: its trigger tidemark_capture_insert is disabled; `+missed, `, since `),
		n.sees("bad", "capture_disabled public.t100", `no insert of public.t100 becomes an event: its trigger is missing or altered; `+missed),
		n.sees("bad", "capture_gap public.t150", `at least 5 inserts and 0 deletes since .* have no event, although its triggers are enabled: a session has session_replication_role = replica`, `, since `),
	}
	for _, c := range causes {
		n.mend(c)
	}
	n.gone("capture_")
	// The rows without an event get theirs, and further ones too.
	for _, table := range []string{"t50", "t100", "t150"} {
		n.exec(`insert into public.` + table + ` (name) select 'c' from generate_series(1, 5)`)
	}
	n.handled(42)
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
	c := n.sees("warn", "worker_behind greeter/births/0", `\d+ rows are unread, the oldest for 00:0.*; \d+(\.\d)? a second are read, so that it has caught up in 00:0\d:\d\d if no more come`, `, \d+ wait`)
	n.mend(c)
	n.gone("worker_behind")
	n.handled(600)
}

// Incident 9: the sweep finds more late rows than the handler can take in its time.
func TestSweepLags(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.source("declared")
	n.exec(`update tidemark.setting set value = '5 seconds' where key = 'lag.warn';
		select tidemark.source_set('births', '{"sweep_window": "1 hour", "sweep_every": "1 second"}');
		select tidemark.worker_set('greeter', '{"page_size": 50}')`)
	n.exec(`create or replace function public.greet(shown public.births[]) returns jsonb language plpgsql as $$
		begin
			perform pg_sleep(0.02 * cardinality(shown));
			insert into public.got (key) select s.id::text from unnest(shown) s;
			return '{}';
		end $$`)
	n.exec(`insert into public.births (name) values ('n')`)
	n.daemon("")
	n.handled(1)
	n.until("a sweep has ended", func() bool {
		return n.value(`select coalesce(sweep ->> 'done_at', '') from tidemark.worker_cursor where worker = 'greeter'`) != ""
	})
	n.happens()
	n.exec(`insert into public.births (name, at) select 'n', now() - i * interval '5 seconds' from generate_series(1, 700) i`)
	c := n.sees("warn", "sweep_behind greeter/births/0", `the sweep, which reads the last 01:00:00 again, was due 00:00:\d+ ago, and the last whole one ended .*`+
		`: rows that came late wait for it; the one under way has read \d+ % of that time, and ends in 00:0\d:\d+ at this rate`)
	n.mend(c)
	n.gone("sweep_behind")
	n.handled(701)
}

// Incident 10, of a source: the column by which the worker reads has another name.
func TestSourceColumnRenamed(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.source("sequence")
	n.daemon("")
	n.exec(`insert into public.births (name) select 'n' from generate_series(1, 10)`)
	n.handled(10)
	n.happens()
	n.exec(`alter table public.births rename column id to number`)
	n.exec(`insert into public.births (name) select 'n' from generate_series(1, 5)`)
	c := n.sees("bad", "source_changed greeter/births/0", `public.births has no column id`)
	// The command shows what does not fit, and fails.
	if out, err := n.command(c.next[0]).CombinedOutput(); err == nil || !strings.Contains(string(out), `has no column "id"`) {
		t.Errorf("%s: %v: %s", c.next[0], err, out)
	}
	n.exec(`alter table public.births rename column number to id`)
	n.gone("source_changed")
	n.handled(15)
}
