package incidents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// forgotten is a session that begins a transaction, writes, and does nothing more.
func (n *night) forgotten(sql string) *pgx.Conn {
	n.t.Helper()
	config, err := pgx.ParseConfig(n.URL)
	if err != nil {
		n.t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "checkout"
	conn, err := pgx.ConnectConfig(n.t.Context(), config)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the operator may have ended it
	if _, err := conn.Exec(n.t.Context(), "begin"); err != nil {
		n.t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(n.t.Context(), sql).ReadAll(); err != nil {
		n.t.Fatal(err)
	}
	return conn
}

const emitted = `select tidemark.emit('shop', 'order.paid', key => 'lost')`

// Incident 2: an idle transaction holds numbers of the log. The others go on.
func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	// A partition of commands beside it, which has no source.
	n.exec(`update tidemark.setting set value = 'true' where key = 'commands.enabled'; select tidemark.stage_set('live', 'test');
		insert into tidemark.worker (worker) values ('commands') on conflict do nothing;
		insert into tidemark.worker_cursor (worker, source) values ('commands', 'kafka:db-events.shop')`)
	n.daemon("")
	n.happens()
	idle := n.forgotten(emitted)
	n.emit(1, 20)
	c := n.sees("warn", fmt.Sprintf("open_transaction pid %d", idle.PgConn().PID()),
		`application "checkout", user \w+, client (127.0.0.1|on this host), idle in its transaction for 00:00:2`, `1 numbers of the log are open`)
	n.mend(c)
	n.gone("open_transaction")
	n.handled(20)
}

// Incident 2, where the order of the log is strict: everything waits for it.
func TestIdleTransactionStrictOrder(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.exec(`update tidemark.worker set read_order = 'strict' where worker = 'default'`)
	n.daemon("")
	n.happens()
	idle := n.forgotten(emitted)
	n.emit(1, 20)
	c := n.sees("bad", fmt.Sprintf("open_transaction pid %d", idle.PgConn().PID()), `, 20 wait`, `idle in its transaction`)
	n.mend(c)
	n.gone("open_transaction")
	n.handled(20)
}

// source makes a worker of a table that has this safety.
func (n *night) source(safety string) {
	n.t.Helper()
	n.exec(`create table public.births (id bigint generated always as identity primary key, name text, at timestamptz not null default now());
		create index on public.births (at, id);
		create function public.greet(shown public.births[]) returns jsonb language sql as 'insert into public.got (key) select s.id::text from unnest(shown) s; select ''{}''::jsonb';
		grant select on public.births to tidemark_executor;
		select tidemark.source_set('births', '{"schema_name": "public", "table_name": "births", "id_column": "id", "timestamp_column": "at", "safety": "` + safety + `"}');
		select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}');
		select tidemark.worker_source_add('greeter', 'births');
		select tidemark.gate_set('worker.greeter.enabled', true)`)
}

// Incident 2, at a source that is read by time: a transaction that never touched the table holds its horizon.
func TestIdleTransactionAtAClock(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.source("clock")
	n.daemon("")
	n.happens()
	idle := n.forgotten(`select 1`)
	n.exec(`insert into public.births (name) select 'n' from generate_series(1, 30)`)
	c := n.sees("bad", fmt.Sprintf("open_transaction pid %d", idle.PgConn().PID()), `, 30 wait`, `rows that were written since are not read: greeter/births/0`)
	n.mend(c)
	n.gone("open_transaction")
	n.handled(30)
}

// Incident 3.
func TestForgottenPreparedTransaction(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"max_prepared_transactions": "5"}})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.route("orders", "sql", "public.take", "")
	n.exec(`update tidemark.worker set read_order = 'strict' where worker = 'default'`)
	n.daemon("")
	n.happens()
	conn := n.forgotten(emitted)
	if _, err := conn.Exec(t.Context(), `prepare transaction 'xa 7''s'`); err != nil {
		t.Fatal(err)
	}
	n.emit(1, 10)
	c := n.sees("bad", "prepared_transaction xa 7's", `, 10 wait`, `of \w+, not ended for 00:00:2`)
	n.mend(c)
	n.gone("prepared_transaction")
	n.handled(10)
	n.hidden()
}

// hidden: without the right to see the sessions of others, one that holds numbers is unknown, and not well. The test has the server for
// itself: the right is one of the whole server.
func (n *night) hidden() {
	n.t.Helper()
	n.exec(`update tidemark.worker set read_order = default where worker = 'default';
		revoke pg_read_all_stats from tidemark_owner;
		create role shop login; grant tidemark_emitter to shop`)
	n.t.Cleanup(func() { _, _ = n.Pool.Exec(context.Background(), `drop role shop`) })
	n.happens()
	own := n.URL
	n.URL = strings.Replace(own, "postgres@", "shop@", 1)
	idle, later := n.forgotten(emitted), n.forgotten(emitted)
	n.URL = own
	n.emit(11, 20)
	c := n.sees("unknown", fmt.Sprintf("sessions_hidden pid %d", idle.PgConn().PID()), `user shop, holds numbers, and its times are not shown to tidemark_owner`)
	// The other is in the same fence, and may have begun a moment ago.
	if got := n.value(`select string_agg(c.subject, ',') from tidemark.cause_transactions() c where c.cause = 'sessions_hidden' and exists (
		select from tidemark.worker_cursor w join tidemark.open_transactions() o on o.fence = any (w.fence) where o.pid = ` + fmt.Sprint(later.PgConn().PID()) + `)`); got != fmt.Sprintf("pid %d", idle.PgConn().PID()) {
		n.t.Errorf("hidden: %q", got)
	}
	_ = later.Close(context.Background())
	n.mend(c)
	n.sees("warn", fmt.Sprintf("open_transaction pid %d", idle.PgConn().PID()), `user shop, .* idle in its transaction for 00:0\d:\d\d`)
	n.handled(20)
}

// A role whose sessions Tidemark may not see locks the log, and an application waits for it.
func TestLockedLogOfAHiddenRole(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{}) // the right is one of the whole server
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.daemon("")
	n.exec(`revoke pg_read_all_stats from tidemark_owner; create role shop login; grant tidemark_owner to shop`)
	n.happens()
	own := n.URL
	n.URL = strings.Replace(own, "postgres@", "shop@", 1)
	idle := n.forgotten(`lock table tidemark.outbox in access exclusive mode`)
	n.URL = own
	emitted := make(chan error)
	go func() {
		_, err := n.Pool.Exec(context.Background(), `select tidemark.emit('shop', 'order.paid')`)
		emitted <- err
	}()
	locked := fmt.Sprintf("pid %d", idle.PgConn().PID())
	c := n.sees("bad", "tables_locked "+locked, `user shop, has locked outbox.* for 00:00:\d+; its times are not shown to tidemark_owner`)
	n.until("the watch tells of it", func() bool {
		return n.value(`select count(*)::text from tidemark.finding where kind = 'tables_locked' and subject = '`+locked+`' and told = 'opened'`) == "1"
	})
	n.mend(c)
	if err := <-emitted; err != nil {
		t.Error(err)
	}
	n.gone("tables_locked")
}

// A session locks the log and forgets it: nothing that needs the log can be seen, but who has locked it.
func TestLockedLog(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.route("orders", "sql", "public.take", "")
	n.daemon("")
	n.emit(1, 10)
	n.handled(10)
	n.happens()
	idle := n.forgotten(`lock table tidemark.outbox in access exclusive mode`)
	c := n.sees("bad", fmt.Sprintf("tables_locked pid %d", idle.PgConn().PID()),
		`application "checkout", user \w+, client (127.0.0.1|on this host), has locked outbox.* for 00:00:\d+, and is idle in its transaction`)
	n.mend(c)
	n.gone("tables_locked")
	n.emit(11, 20)
	n.handled(20)
}
