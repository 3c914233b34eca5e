package incidents

import (
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

// onItsOwn is an installation whose server has no other sessions, for whose end the comparison of captured tables would wait.
// It has a captured table, which was compared with its events a while ago.
func onItsOwn(t *testing.T) *night {
	t.Helper()
	server := testserver.New(t, devpg.Options{})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.captured()
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.exec(`insert into public.orders (name) select 'a' from generate_series(1, 10)`)
	n.handled(10)
	n.until("the table has been compared", func() bool {
		// Each step waits a minute. Sessions count what they did after ten seconds.
		n.exec(`select pg_stat_force_next_flush(); update tidemark.capture_round set at = '-infinity'`)
		n.exec(`select tidemark.maintain()`)
		return n.value(`select count(*)::text from tidemark.capture_count c, tidemark.capture_round r where c.base_inserts = 0 and c.status = 'even' and r.compared`) == "1"
	})
	n.exec(`update tidemark.capture_round set noted_at = noted_at - interval '1 minute'`)
	return n
}

// captureMended mends a capture: the 15 rows without an event get theirs, and further ones too.
func (n *night) captureMended(c shown) {
	n.t.Helper()
	n.mend(c)
	n.gone("capture_")
	n.exec(`insert into public.orders (name) select 'c' from generate_series(1, 5)`)
	n.handled(30)
}

// Incident 11.
func TestCaptureDisabled(t *testing.T) {
	t.Parallel()
	n := onItsOwn(t)
	n.happens()
	n.exec(`alter table public.orders disable trigger user`)
	n.exec(`insert into public.orders (name) select 'b' from generate_series(1, 15)`)
	c := n.sees("bad", "capture_disabled public.orders", `no insert of public.orders becomes an event: its trigger tidemark_capture_insert is disabled; at least 15 inserts .* have no event`, `, since `)
	n.captureMended(c)
}

// Incident 11: the trigger was dropped.
func TestCaptureTriggerDropped(t *testing.T) {
	t.Parallel()
	n := onItsOwn(t)
	n.happens()
	n.exec(`drop trigger tidemark_capture_insert on public.orders`)
	n.exec(`insert into public.orders (name) select 'b' from generate_series(1, 15)`)
	c := n.sees("bad", "capture_disabled public.orders", `no insert of public.orders becomes an event: its trigger is missing or altered; at least 15 inserts .* have no event`)
	n.captureMended(c)
}

// Incident 11: a session bypasses the trigger, as a replication tool does, while others write as always.
func TestCaptureBypassed(t *testing.T) {
	t.Parallel()
	n := onItsOwn(t)
	n.happens()
	n.exec(`set session_replication_role = replica; insert into public.orders (name) select 'b' from generate_series(1, 15); reset session_replication_role`)
	c := n.sees("bad", "capture_gap public.orders", `at least 15 inserts and 0 deletes since .* have no event, although its triggers are enabled: a session has session_replication_role = replica`, `, since `)
	n.captureMended(c)
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
