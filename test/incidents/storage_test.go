package incidents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Incident 13: a worker that was paused and forgotten holds the log.
func TestRetentionHeld(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	// The first partitions are large. The partitions after them are small.
	n.exec(`update tidemark.setting set value = '1000' where key = 'outbox.partition_events';
		select setval('tidemark.outbox_seq_seq', 2999000);
		update tidemark.worker_cursor set watermark_id = '2999000', decided_through = '2999000';
		select tidemark.worker_pause('default', true, 'on holiday')`)
	n.exec(`select tidemark.maintain()`)
	n.emit(1, 2500)
	n.exec(`select tidemark.maintain()`)
	n.exec(`update tidemark.setting set value = '1 second' where key = 'outbox.retention'`)
	n.daemon("")
	n.happens()
	c := n.sees("warn", "retention_held default", `are kept for number 2999001 by the cursor of worker default, which is paused`, `the oldest event is 00:\d\d:\d\d old, and they take \d+ [kM]B`)
	n.mend(c)
	n.gone("retention_held")
	n.handled(2500)
}

// A route that was paused: its events wait at once, and hold the log in the end.
func TestRouteIsPaused(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.exec(`update tidemark.setting set value = '1000' where key = 'outbox.partition_events';
		select setval('tidemark.outbox_seq_seq', 2999000);
		update tidemark.worker_cursor set watermark_id = '2999000', decided_through = '2999000';
		select tidemark.route_pause('orders', 'the shop moves')`)
	n.exec(`select tidemark.maintain()`)
	n.daemon("")
	n.emit(1, 2500)
	n.until("they wait", func() bool { return n.value(`select count(*)::text from tidemark.pending`) == "2500" })
	n.exec(`select tidemark.maintain()`)
	n.happens()
	n.sees("warn", "route_paused orders", `, 2500 wait`, `by postgres, reason: the shop moves; the oldest of what waits is 00:\d\d:\d\d old`)
	n.exec(`update tidemark.setting set value = '1 second' where key = 'outbox.retention'`)
	c := n.sees("warn", "retention_held orders", `are kept for number 2999001 by a pending delivery of route orders, which is paused`)
	n.mend(c)
	n.gone("retention_held")
	n.gone("route_paused")
	n.handled(2500)
}

// Incident 7.
func TestRestoredClone(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	daemon := n.daemon("")
	n.emit(1, 5)
	n.handled(5)
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	n.emit(6, 9)
	clone := n.clone()
	clone.exec(`update tidemark.heartbeat set last_beat_at = last_beat_at - interval '1 hour'`) // a backup is older than a heartbeat
	clone.happens()
	clone.sees("warn", "disarmed "+clone.Name, `this is a copy, and delivers nothing: database `+n.Name+` of cluster \d+ was made live by \w+ \(test\), and this is database `+clone.Name)
	// A daemon that runs on it is a mistake.
	clone.daemon("")
	clone.happens()
	c := clone.sees("bad", "disarmed "+clone.Name, `it is run by daemon/courier`)
	clone.mend(c)
	clone.gone("disarmed")
	if got := clone.value(`select count(*)::text from public.got`); got != "5" {
		t.Errorf("the copy has handled %s events, of which 5 are the original's", got)
	}
	n.daemon("")
	n.handled(9)
}

// clone copies the database.
func (n *night) clone() *night {
	n.t.Helper()
	name := n.Name + "_clone"
	admin := tidemarktest.NewEmptyDB(n.t).Connect(n.t)
	n.Pool.Reset()
	n.until("no session uses the database", func() bool {
		_, ended := admin.Exec(n.t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", n.Name)
		_, made := admin.Exec(n.t.Context(), fmt.Sprintf("create database %s template %s", name, n.Name))
		return ended == nil && made == nil
	})
	copied := &tidemarktest.DB{URL: strings.Replace(n.URL, n.Name, name, 1), Name: name}
	var err error
	if copied.Pool, err = pgxpool.New(n.t.Context(), copied.URL); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		copied.Pool.Close()
		n.psqlAt(context.Background(), fmt.Sprintf("drop database %s with (force)", name))
	})
	return &night{DB: copied, t: n.t, url: copied.URL}
}

// Incident 16.
func TestForgottenReplicationSlot(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"wal_level": "replica", "max_replication_slots": "4"}})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.happens()
	n.exec(`select pg_create_physical_replication_slot('standby_7', true)`)
	for i := range 5 {
		n.exec(fmt.Sprintf(`create table public.filler_%d (); select pg_switch_wal()`, i))
	}
	c := n.sees("warn", "replication_slot standby_7", `physical replication slot standby_7 is used by no one, and keeps \d+ MB of WAL`)
	n.mend(c)
	n.gone("replication_slot")
}

// Incident 16: a forgotten transaction on a standby.
func TestStandbyKeepsRows(t *testing.T) {
	t.Parallel()
	primary := testserver.New(t, devpg.Options{Settings: map[string]string{"wal_level": "replica", "max_wal_senders": "2"}})
	n := begin(t, tidemarktest.NewDBAt(t, primary.URL("postgres")))
	standby := testserver.Standby(t, primary, "reports", map[string]string{"hot_standby_feedback": "on", "wal_receiver_status_interval": "1s"})
	n.Pool.Reset() // the primary was restarted
	n.happens()
	reports, err := pgx.Connect(t.Context(), standby.URL(n.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reports.Close(context.Background()) })
	if _, err := reports.Exec(t.Context(), `begin isolation level repeatable read; select count(*) from public.got`); err != nil {
		t.Fatal(err)
	}
	n.until("the standby has told its horizon", func() bool {
		return n.value(`select (count(backend_xmin) > 0)::text from pg_stat_replication`) == "true"
	})
	// Each row is written by a transaction within the transaction, which uses up a number.
	n.exec(`create temp table used (); do $$ begin for i in 1 .. 1000100 loop begin insert into used default values; exception when division_by_zero then end; end loop; end $$`)
	n.happens()
	c := n.sees("warn", "standby_transaction reports", `standby reports at 127.0.0.1 keeps the row versions of the last \d{7} transactions`)
	if len(c.next) != 1 || !strings.HasSuffix(c.next[0], "-- on the standby") {
		t.Fatalf("%q", c.next)
	}
	other, err := pgx.Connect(t.Context(), standby.URL(n.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	if _, err := other.Exec(t.Context(), c.next[0], pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	n.gone("standby_transaction")
}

// Incident 15. No connection is left, and the daemon that runs watches on.
func TestConnectionsTaken(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"max_connections": "30", "superuser_reserved_connections": "5"}})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	own, login := n.url, n.login()
	n.url = login + "&pool_max_conn_lifetime=3s" // an hour by default
	n.daemon("")
	n.url = own
	n.happens()
	take := func() {
		for !n.refused(login) {
			conn := n.forgotten(`select 1`)
			if _, err := conn.Exec(t.Context(), "commit"); err != nil {
				t.Fatal(err)
			}
		}
	}
	take()
	n.sees("warn", "connections 30", `2\d of 2\d connections are taken: \d\d of them by application "checkout", user \w+, of which \d\d are idle`)
	n.exec(`revoke pg_read_all_stats from tidemark_owner`)
	c := n.sees("warn", "connections 30", `2\d of 2\d connections are taken: \d\d of them by application "checkout", user \w+, and how many of these are idle is not shown to tidemark_owner`)
	until(t, inTime, "the watch tells of it", func() bool {
		take() // what the daemon gives back
		return n.value(`select count(*)::text from tidemark.finding where kind = 'connections' and told = 'opened'`) == "1"
	})
	n.mend(c)
	n.gone("connections")
}

// Incident 20.
func TestPartitionDropped(t *testing.T) {
	t.Parallel()
	n, target := newNight(t), newReceiver(t)
	n.exec(`update tidemark.setting set value = '1000' where key = 'outbox.partition_events';
		select setval('tidemark.outbox_seq_seq', 2999000);
		update tidemark.worker_cursor set watermark_id = '2999000', decided_through = '2999000'`)
	n.exec(`select tidemark.maintain()`)
	n.route("billing", "webhook", target.URL, billing)
	n.emit(1, 30)
	n.exec(`select tidemark.route_worker_run()`) // stages them for a daemon
	n.exec(`select tidemark.emit('shop', 'order.paid') from generate_series(1, 1000)`)
	first := n.value(`select first_seq::text from tidemark.partitions('tidemark.outbox') where 2999001 between first_seq and end_seq - 1`)
	n.happens()
	n.exec(`drop table tidemark.outbox_p` + first)
	c := n.sees("bad", "partition_missing", `numbers `+first+` to `, `deliveries that wait for their events: billing \(\d+\)`)
	n.daemon(billingSecret)
	n.happens()
	letters := n.sees("warn", "dead_letters billing", `event_missing`)
	n.mend(letters)
	n.gone("dead_letters")
	n.mend(c)
	n.gone("partition_missing")
}

// Incident 21: the disk is nearly full.
func TestDiskFills(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	// The first partitions are large. The partitions after them are small.
	n.exec(`update tidemark.setting set value = '1000' where key = 'outbox.partition_events';
		select setval('tidemark.outbox_seq_seq', 2999000);
		update tidemark.worker_cursor set watermark_id = '2999000', decided_through = '2999000'`)
	n.exec(`select tidemark.maintain()`)
	n.daemon("")
	n.exec(`select tidemark.emit('shop', 'order.paid', jsonb_build_object('scan', (select string_agg(md5(i || '/' || j), '') from generate_series(1, 500) j)), key => i::text) from generate_series(1, 1200) i`)
	n.handled(1200)
	n.happens()
	// An hour ago the database was 10 MB smaller, and 20 MB are left.
	n.exec(`select tidemark.maintain()`)
	n.exec(`update tidemark.storage_sample set older_at = at - interval '1 hour', older_bytes = bytes - 10 * 1024 * 1024`)
	n.exec(`update tidemark.setting set value = (pg_database_size(current_database()) / (1024 * 1024) + 20) || ' MB' where key = 'disk.size'`)
	c := n.sees("warn", "disk_filling "+n.Name, `the database has \d+ MB of the \d+ MB of the setting disk.size, of them \d+ MB in the log with its evidence; it grows by \d+ MB an hour, and is full in [123] hours`)
	// The events become old.
	n.exec(`set session_replication_role = replica; update tidemark.outbox o set created_at = created_at - interval '20 days'
		where o.seq in (select max(p.seq) from tidemark.outbox p group by p.tableoid); reset session_replication_role`)
	n.mend(c)
	n.exec(`select tidemark.maintain()`) // measures what is left, as the daemon does a minute later
	n.gone("disk_filling")
}

// Incident 21: the log grows faster than it drains.
func TestLogGrows(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.exec(`create or replace function public.take(event jsonb) returns void language sql as 'select pg_sleep(0.2); insert into public.got (key) values (event ->> ''key'')';
		update tidemark.setting set value = '5 seconds' where key = 'lag.warn'`)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.exec(`select tidemark.maintain()`)
	n.happens()
	n.emit(1, 300)
	c := n.sees("warn", "worker_behind default/outbox/0", `, \d+ wait`, `\d+ events are unread, .*(\d a second are read|none was read in the last minutes), and \d+(\.\d)? come: it falls behind further, and the log keeps \d+ [kM]B an hour for it`)
	n.exec(`create or replace function public.take(event jsonb) returns void language sql as 'insert into public.got (key) values (event ->> ''key'')'`)
	n.mend(c)
	n.gone("worker_behind")
	n.handled(300)
}
