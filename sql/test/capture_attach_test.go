package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CA1.
func TestCaptureAttach(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "owner")
	s.exec(`create schema "A b"; create table "A b"."T" (id int primary key);
		select tidemark.inbound_route_set(o, jsonb_build_object('source_schema', 'A b', 'source_table', 'T', 'sql_event', o, 'domain', 'app', 'type', o))
		from unnest(array['insert', 'update', 'delete', 'truncate']) o`)
	const list = `select concat_ws(' ', operation, state, trigger) from tidemark.capture_list order by 1`
	none := []string{"delete off not attached", "insert off not attached", "truncate off not attached", "update off not attached"}
	s.wantRows(list, none...)
	create := []string{
		`insert select tidemark.capture_make('insert')`,
		`insert create trigger tidemark_capture_insert after insert on "A b"."T" referencing new table as tidemark_new for each statement execute function tidemark.capture_1()`,
		`update select tidemark.capture_make('update')`,
		`update create trigger tidemark_capture_update after update on "A b"."T" referencing old table as tidemark_old new table as tidemark_new for each statement execute function tidemark.capture_2()`,
		`delete select tidemark.capture_make('delete')`,
		`delete create trigger tidemark_capture_delete after delete on "A b"."T" referencing old table as tidemark_old for each statement execute function tidemark.capture_3()`,
		`truncate select tidemark.capture_make('truncate')`,
		`truncate create trigger tidemark_capture_truncate after truncate on "A b"."T" for each statement execute function tidemark.capture_4()`,
	}
	s.wantRows(`select operation || ' ' || statement from tidemark.capture_attach('"A b"."T"', null, dry_run => true)`, create...)
	s.wantRows(list, none...)
	s.wantRows(`select count(*)::text from tidemark.audit where action like 'capture%'`, "0")
	s.refused("TM005", "capture attach needs a reason", `select tidemark.capture_attach('"A b"."T"', ' ')`)
	s.wantRows(list, none...)
	s.wantRows(`select operation || ' ' || statement from tidemark.capture_attach('"A b"."T"', 'because')`, create...)
	s.wantRows(list, "delete off attached", "insert off attached", "truncate off attached", "update off attached")
	s.wantRows(`select concat_ws(' ', object, reason, actor = session_user, jsonb_array_length(after)) from tidemark.audit where action = 'capture_attach'`, `"A b"."T" because t 8`)
	s.refused("TM005", `"A b"."T" is attached already`, `select tidemark.capture_attach('"A b"."T"', 'because')`)
	s.wantRows(`select object from tidemark.capture_check()`, "route delete", "route insert", "route truncate", "route update") // their types

	s.wantRows(`select statement from tidemark.capture_detach('"A b"."T"', 'enough', true) limit 1`, `drop trigger tidemark_capture_delete on "A b"."T"`)
	s.refused("TM005", "capture detach needs a reason", `select tidemark.capture_detach('"A b"."T"', null)`)
	s.exec(`select tidemark.capture_detach('"A b"."T"', 'enough')`)
	s.wantRows(list, none...)
	s.wantRows(`select concat_ws(' ', object, reason) from tidemark.audit where action = 'capture_detach'`, `"A b"."T" enough`)
	s.refused("TM004", `"A b"."T" is not attached`, `select tidemark.capture_detach('"A b"."T"', 'enough')`)

	s.wantRows(`select statement from tidemark.capture_attach('"A b"."T"', 'why', always => true) where operation = 'truncate'`,
		`select tidemark.capture_make('truncate')`,
		`create trigger tidemark_capture_truncate after truncate on "A b"."T" for each statement execute function tidemark.capture_4()`,
		`alter table "A b"."T" enable always trigger tidemark_capture_truncate`)
	s.wantRows(list, "delete off always", "insert off always", "truncate off always", "update off always")
	// A route that comes later gets its trigger by another call.
	s.exec(`drop trigger tidemark_capture_update on "A b"."T"`)
	s.wantRows(`select operation from tidemark.capture_attach('"A b"."T"', 'again')`, "update", "update")
}

// A trigger that is there and does not fire, or not for all that is asked for, is enabled; those that do are left alone.
func TestCaptureAttachEnables(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`alter table orders disable trigger tidemark_capture_insert; alter table orders enable replica trigger tidemark_capture_update;
		drop trigger tidemark_capture_truncate on orders`)
	s.wantRows(`select statement from tidemark.capture_attach('orders', 'was off') where operation <> 'truncate'`,
		`alter table public.orders enable trigger tidemark_capture_insert`, `alter table public.orders enable trigger tidemark_capture_update`)
	s.wantRows(`select distinct trigger from tidemark.capture_list`, "attached")
	s.refused("TM005", "orders is attached already", `select tidemark.capture_attach('orders', 'was off')`)

	s.exec(`alter table orders enable always trigger tidemark_capture_insert`)
	s.wantRows(`select statement from tidemark.capture_attach('orders', 'a tool replicates', always => true) where operation <> 'truncate'`,
		`alter table public.orders enable always trigger tidemark_capture_update`, `alter table public.orders enable always trigger tidemark_capture_delete`)
	s.wantRows(`select distinct trigger from tidemark.capture_list`, "always")
}

func TestCaptureAttachRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "owner")
	s.exec(`create extension if not exists postgres_fdw`)
	s.exec(`create server far foreign data wrapper postgres_fdw; create foreign table far_away (id int) server far;
		create table orders (id int, n int, primary key (id)) partition by range (id); create table orders_1 partition of orders for values from (0) to (9) partition by range (id);
		create table orders_2 partition of orders_1 for values from (0) to (5);
		create view seen as select * from orders; create materialized view kept as select * from orders; create temp table passing (id int); create sequence counter;
		create table plain (id int primary key); create role tidemark_test_stranger; grant tidemark_admin to tidemark_test_stranger`)
	defer s.exec(`reset role; drop owned by tidemark_test_stranger; drop role tidemark_test_stranger`)
	attach := func(table string) string { return `select tidemark.capture_attach('` + table + `', 'why')` }
	s.refused("TM005", "public.far_away is a foreign table, not a table", attach("far_away"))
	s.refused("TM005", "public.seen is a view, not a table", attach("seen"))
	s.refused("TM005", "public.kept is a materialized view", attach("kept"))
	s.refused("TM005", "public.counter is a sequence", attach("counter"))
	s.refused("TM005", "passing is a temporary table", attach("passing"))
	s.refused("TM005", "tidemark.setting is not captured: it is a table of Tidemark itself", attach("tidemark.setting"))
	s.refused("TM005", "pg_class is not captured: it is a table of PostgreSQL itself", attach("pg_class"))
	s.refused("TM005", "Attach its parent, public.orders.", attach("orders_2"))
	s.refused("TM005", "public.plain has no inbound route", attach("plain"))
	s.refused("42P01", "", attach("nothing"))
	s.refused("23514", "source_is_not_tidemark", `select tidemark.inbound_route_set('own', '{"source_schema": "tidemark", "source_table": "setting", "sql_event": "insert", "domain": "a", "type": "b"}')`)
	s.refused("23514", "truncate_has_no_columns", `select tidemark.inbound_route_set('t', '{"source_schema": "public", "source_table": "plain", "sql_event": "truncate", "domain": "a", "type": "b", "payload_columns": ["id"]}')`)
	s.refused("TM005", "inbound route new is new and needs sql_event", `select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "plain", "domain": "a", "type": "b"}')`)
	s.refused("TM004", `there is no inbound route "new"`, `select tidemark.inbound_route_set('new', '{}', may_create => false)`)
	s.exec(`select tidemark.inbound_route_set('plain', '{"source_schema": "public", "source_table": "plain", "sql_event": "insert", "domain": "app", "type": "b", "payload_columns": ["id", "ID"]}')`)
	s.refused("TM005", "inbound route twice is for the same operation as plain", `select tidemark.inbound_route_set('twice', '{"source_schema": "public", "source_table": "plain", "sql_event": "insert", "domain": "app", "type": "b"}')`)
	s.refused("TM008", "plain cannot be enabled and live", `select tidemark.inbound_route_set('plain', '{"enabled": true, "dry_run": false}')`)
	s.refused("TM005", `inbound route plain: public.plain has no column "ID" that can be shown`, attach("plain"))
	s.exec(`select tidemark.inbound_route_set('plain', '{"payload_columns": []}')`)
	s.exec(`create function f() returns trigger language plpgsql as 'begin return null; end'; create trigger tidemark_capture_insert after insert on plain for each statement execute function f()`)
	s.refused("TM005", "trigger tidemark_capture_insert of public.plain exists already and is not Tidemark's", attach("plain"))
	s.exec(`drop trigger tidemark_capture_insert on plain; set role tidemark_test_stranger`)
	s.refused("42501", "must be owner of table public.plain", attach("plain"))
	s.exec(`reset role; alter table plain owner to tidemark_test_stranger; set role tidemark_test_stranger`)
	s.exec(attach("plain"))
	s.exec(`select tidemark.capture_detach('plain', 'why')`)
}

// A table that is being written is not waited for without end: everybody behind would wait too.
func TestCaptureAttachGivesUp(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, writer := open(t, db, "owner"), open(t, db, "writer")
	s.exec(`create table orders (id int primary key);
		select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "app", "type": "insert"}')`)
	writer.begin()
	writer.exec(`insert into orders values (1)`)
	s.refused("55P03", "", `select tidemark.capture_attach('orders', 'why')`)
	s.wantRows(`select count(*)::text from tidemark.audit where action = 'capture_attach'`, "0")
	writer.commit()
	s.exec(`select tidemark.capture_attach('orders', 'why')`)
}

func TestCaptureCheck(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int, secret text)`)
	const check = `select concat_ws('|', status, object, problem) from tidemark.capture_check()`
	s.wantRows(check)
	// A subscription without a publisher: the catalog says that it writes the table.
	const (
		subscribe = `set local allow_system_table_mods = on; create subscription nowhere connection 'host=nowhere.invalid dbname=x' publication p with (connect = false);
			insert into pg_subscription_rel values ((select oid from pg_subscription where subname = 'nowhere'), `
		enter  = `::regclass, 'r', null)`
		parted = `create table parted (id int primary key) partition by range (id); create table parted_1 partition of parted for values from (0) to (9);
			update tidemark.inbound_route set source_table = 'parted' where sql_event = 'insert'; select tidemark.capture_attach('parted', 'why'); `
	)
	for _, c := range []struct{ change, want string }{
		{`alter table orders rename to sold`, "fail|route %insert|there is no table public.orders"},
		{`update tidemark.inbound_route set enabled = false, source_table = 'later' where sql_event = 'insert'`, "warn|route %insert|there is no table public.later"},
		{`create view seen as select 1; update tidemark.inbound_route set source_table = 'seen' where sql_event = 'insert'`, "fail|route %insert|public.seen is a view, not a table"},
		{`drop trigger tidemark_capture_insert on orders`, "fail|route %insert|public.orders is not attached for insert%"},
		{subscribe + `'public.orders'` + enter, "fail|table public.orders|subscription nowhere writes it: what is replicated makes no events%"},
		{subscribe + `'public.orders'` + enter + `; update tidemark.inbound_route set enabled = false`, "warn|table public.orders|subscription nowhere writes it%"},
		{parted + subscribe + `'public.parted_1'` + enter, "fail|table public.parted|subscription nowhere writes it%"},
		{`alter table orders disable trigger tidemark_capture_update`, "fail|trigger tidemark_capture_update of public.orders|it is disabled%"},
		{`alter table orders enable replica trigger tidemark_capture_update`, "fail|trigger tidemark_capture_update of public.orders|it fires only where session_replication_role is replica%"},
		{`create or replace trigger tidemark_capture_update after update on orders for each row execute function tidemark.capture_2()`, "fail|trigger tidemark_capture_update of public.orders|it differs from what attach makes%"},
		{`update tidemark.inbound_route set payload_columns = '{m}' where sql_event = 'update'`, "fail|route %update|public.orders has no column m%"},
		{`select tidemark.type_set('app', 'delete', '{"enabled": false}')`, "fail|route %delete|event type app/delete is not registered%"},
		{`update tidemark.inbound_route set payload_columns = '{secret}' where sql_event = 'update'; select tidemark.domain_set('app', '{"metadata_only": true}')`, "fail|route %update|column secret of public.orders is a forbidden key%"},
		{`alter table orders drop constraint orders_pkey`, "warn|table public.orders|it has no primary key%"},
		{`delete from tidemark.inbound_route where sql_event = 'truncate'`, "warn|trigger tidemark_capture_truncate of public.orders|it has no inbound route%"},
		{`create or replace function tidemark.capture_template() returns text language sql as 'select $$begin return null; end$$'`, "fail|function tidemark.capture_template|changed by hand%"},
	} {
		s.begin()
		s.exec(c.change)
		if !one[bool](s, `select exists (select from (`+check+`) c (line) where line like $1)`, c.want) {
			t.Errorf("%s: got %q, want %q", c.change, column[string](s, check), c.want)
		}
		s.rollback()
	}
	s.wantRows(check)
}
