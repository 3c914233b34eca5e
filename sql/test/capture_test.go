package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// captured opens a database with the table of the statement, an enabled live route for each operation on it
// (types insert, update, delete and truncate of domain app), and its triggers.
func captured(t *testing.T, table, create string) session {
	t.Helper()
	s := open(t, tidemarktest.NewDB(t), "app")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true)`)
	s.exec(create)
	s.capture(table)
	return s
}

// capture routes every operation on the table to events, and attaches it.
func (s session) capture(table string) {
	s.t.Helper()
	s.exec(`select tidemark.type_set('app', o), tidemark.inbound_route_set(left(md5($1), 6) || '-' || o, jsonb_build_object(
			'source_schema', n.nspname, 'source_table', c.relname, 'sql_event', o, 'domain', 'app', 'type', o, 'enabled', true, 'dry_run', false))
		from unnest(array['insert', 'update', 'delete', 'truncate']) o, pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.oid = $1::text::regclass`, table)
	s.exec(`select tidemark.capture_attach($1::text::regclass, 'test')`, table)
}

// wantEvents compares the events since the last call: operation, key, what changed.
func (s session) wantEvents(want ...string) {
	s.t.Helper()
	s.wantRows(`select concat_ws(' ', o.type, coalesce(o.key, 'null'), o.payload ->> 'changed', 'was ' || (o.payload ->> 'old_primary_key'), o.payload ->> 'columns')
		from tidemark.outbox o where o.domain = 'app' and o.seq > coalesce(nullif(current_setting('test.seen', true), ''), '0')::bigint order by o.seq`, want...)
	s.exec(`select set_config('test.seen', last_value::text, false) from tidemark.outbox_seq_seq`)
}

// CA2.
func TestCaptureOfEachStatement(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, state text, total numeric)`)
	s.exec(`insert into orders values (1, 'new', 1)`)
	s.wantRows(`select (to_jsonb(o) - array['seq', 'event_id', 'created_at', 'occurred_at'] = jsonb_build_object('inbound_id', (select r.id from tidemark.inbound_route r where r.sql_event = 'insert')) || jsonb_build_object(
			'lane', 'immediate', 'severity', 'info', 'domain', 'app', 'type', 'insert', 'stream', null, 'key', '1', 'subject_table', 'public.orders',
			'subject_ref', '1', 'idempotency_key', null, 'trace', null, 'actor', session_user, 'emitted_by', null,
			'payload', jsonb '{"schema": "public", "table": "orders", "operation": "insert", "primary_key": {"id": 1}}')
		and created_at = occurred_at and tidemark.uuid_time(event_id) between created_at - interval '2 ms' and created_at)::text from tidemark.outbox o`, "true")
	s.wantEvents("insert 1")
	s.exec(`insert into orders values (3, 'new', 1), (2, 'new', 1)`)
	s.exec(`insert into orders select n, 'new' from generate_series(4, 5) n`)
	s.wantEvents("insert 3", "insert 2", "insert 4", "insert 5")
	s.exec(`update orders set state = 'paid', total = case id when 2 then 1 else 2 end where id < 4`)
	s.wantEvents(`update 1 ["state", "total"]`, `update 3 ["state", "total"]`, `update 2 ["state"]`)
	s.exec(`update orders set state = state; update orders set total = 1.0 where id = 2; update orders set state = 'x' where false`)
	s.wantEvents(`update 2 ["total"]`)
	s.exec(`update orders set id = id + 10 where id < 3`)
	s.wantEvents(`update 11 ["id"] was {"id": 1}`, `update 12 ["id"] was {"id": 2}`)
	s.exec(`insert into orders values (3, 'x', 1), (6, 'x', 1) on conflict (id) do update set state = 'twice'`)
	s.wantEvents(`update 3 ["state"]`, "insert 6")
	s.exec(`insert into orders values (3, 'x', 1) on conflict do nothing`)
	s.wantEvents()
	s.exec(`delete from orders where id in (4, 5); delete from orders where id = 4`)
	s.wantEvents("delete 4", "delete 5")
	s.exec(`truncate orders`)
	s.wantEvents("truncate null")
}

func TestCaptureOfCopyAndMerge(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, state text)`)
	if _, err := s.conn.PgConn().CopyFrom(t.Context(), strings.NewReader("1\ta\n2\tb\n"), `copy orders from stdin`); err != nil {
		t.Fatal(err)
	}
	s.wantEvents("insert 1", "insert 2")
	s.exec(`merge into orders o using (values (1, 'x'), (2, null), (3, 'new')) v (id, state) on v.id = o.id
		when matched and v.state is null then delete when matched then update set state = v.state when not matched then insert values (v.id, v.state)`)
	s.wantEvents("delete 2", `update 1 ["state"]`, "insert 3")
	s.exec(`with d as (delete from orders returning id) insert into orders select id + 10, 'moved' from d`)
	s.wantEvents("delete 1", "delete 3", "insert 11", "insert 13")
}

// Names that need quotes, dropped and generated columns, keys of several columns and of types of one's own.
func TestCaptureOfOddTables(t *testing.T) {
	t.Parallel()
	s := captured(t, `"Odd %s"."select $1"`, `create schema "Odd %s"; create type mood as enum ('Good', 'b,ad'); create domain small as int;
		create table "Odd %s"."select $1" ("Key'%" mood, gone int, "order" small, c1 json, ord jsonb, twice int generated always as ("order" * 2) stored,
			at timestamptz, day date, primary key ("order", "Key'%"));
		alter table "Odd %s"."select $1" drop column gone;
		update tidemark.inbound_route set payload_columns = '{}'`)
	s.exec(`update tidemark.inbound_route set payload_columns = '{"Key''%",order,twice,c1,at}' where sql_event <> 'truncate'`)
	s.exec(`set datestyle = 'German'; set timezone = 'Asia/Kolkata'`)
	s.exec(`insert into "Odd %s"."select $1" ("Key'%", "order", c1, at) values ('b,ad', 7, '{"a": [null]}', '2026-01-02 03:04:05+00')`)
	s.wantRows(`select concat_ws(' ', o.subject_table, o.subject_ref, o.payload) from tidemark.outbox o`,
		`"Odd %s"."select $1" 7,b,ad {"table": "select $1", "schema": "Odd %s", "columns": {"at": "2026-01-02T03:04:05+00:00", "c1": {"a": [null]}, "Key'%": "b,ad", "order": 7, "twice": 14}, `+
			`"operation": "insert", "primary_key": {"Key'%": "b,ad", "order": 7}}`)
	s.wantRows(`select set_config('test.seen', '1', false)`, "1")
	s.exec(`update "Odd %s"."select $1" set "order" = 8, c1 = null, day = now()`)
	s.wantEvents(`update 8,b,ad ["order", "c1", "twice", "day"] was {"Key'%": "b,ad", "order": 7} {"at": "2026-01-02T03:04:05+00:00", "c1": null, "Key'%": "b,ad", "order": 8, "twice": 16}`)

	s.exec(`create table bare (); create table keyless (a point, b xml)`)
	s.capture("bare")
	s.capture("keyless")
	s.exec(`insert into bare default values; insert into keyless values ('(1,2)', '<x/>'), ('(1,2)', '<x/>'); update keyless set a = '(1,3)', b = '<y/>'; delete from keyless; delete from bare`)
	s.wantEvents("insert null", "insert null", "insert null", `update null ["a", "b"]`, `update null ["a", "b"]`, "delete null", "delete null", "delete null")

	// More columns than a function takes arguments.
	s.exec(`do $$ begin execute (select 'create table wide (id int primary key, ' || string_agg('c' || n || ' int', ', ') || ')' from generate_series(1, 300) n); end $$`)
	s.capture("wide")
	s.exec(`update tidemark.inbound_route set payload_columns = array(select 'c' || n from generate_series(1, 299) n) where source_table = 'wide' and sql_event = 'insert'`)
	s.exec(`insert into wide (id, c1, c299) values (1, 2, 3)`)
	s.wantRows(`select concat_ws(' ', c ->> 'c1', c ->> 'c299', (select count(*) from jsonb_object_keys(c))) from (select payload -> 'columns' c from tidemark.outbox order by seq desc limit 1) o`, "2 3 299")
}

func TestCaptureOfPartitionsAndChildren(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int, region text, n int, primary key (region, id)) partition by list (region);
		create table orders_eu partition of orders for values in ('eu');
		create table orders_us (n int, junk int, id int not null, region text not null);
		alter table orders_us drop column junk; alter table orders attach partition orders_us for values in ('us')`)
	s.exec(`insert into orders values (1, 'eu', 1), (2, 'us', 1), (3, 'eu', 1)`)
	s.wantEvents("insert eu,1", "insert us,2", "insert eu,3")
	s.exec(`update orders set n = id, region = 'us' where id <> 2`) // rows move
	s.exec(`update orders set n = n + 1`)
	s.wantEvents(`update us,1 ["region"] was {"id": 1, "region": "eu"}`, `update us,3 ["region", "n"] was {"id": 3, "region": "eu"}`,
		`update us,2 ["n"]`, `update us,1 ["n"]`, `update us,3 ["n"]`)
	s.exec(`delete from orders where id = 2; truncate orders`)
	s.wantEvents("delete us,2", "truncate null")

	s.exec(`create table parent (id int primary key, a int); create table child (more text, id int primary key) inherits (parent)`)
	s.capture("parent")
	s.exec(`insert into parent values (1); insert into child values (2, 1, 'x'); update parent set a = id; delete from parent`)
	s.wantEvents("insert 1", `update 1 ["a"]`, `update 2 ["a"]`, "delete 1", "delete 2")
	s.wantRows(`select status || ' ' || object from tidemark.capture_check() where object like 'table %'`, "warn table public.parent")
}

// Cascades, deferred constraints, savepoints, sessions that replay what was replicated.
func TestCaptureInTransactions(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table customers (id int primary key);
		create table orders (id int primary key deferrable initially deferred, customer int references customers on delete cascade deferrable initially deferred)`)
	s.begin()
	s.exec(`insert into orders values (1, 7), (1, 7)`)
	s.exec(`update orders set id = 2 where ctid = '(0,1)'; insert into customers values (7)`)
	s.commit()
	s.wantEvents("insert 1", "insert 1", `update 2 ["id"] was {"id": 1}`)
	s.exec(`insert into orders values (3, 7)`)
	s.refused("23505", "", `insert into orders values (3, 7)`)
	s.refused("23503", "", `insert into orders values (4, 8)`)
	s.begin()
	s.exec(`savepoint a; insert into orders values (5, 7); rollback to a; insert into orders values (6, 7)`)
	s.commit()
	s.begin()
	s.exec(`insert into orders values (7, 7)`)
	s.rollback()
	s.wantEvents("insert 3", "insert 6")
	s.exec(`delete from customers`)
	s.wantEvents("delete 1", "delete 2", "delete 3", "delete 6")

	s.exec(`set session_replication_role = replica; insert into orders values (10); reset session_replication_role`)
	s.wantEvents()
	s.exec(`select tidemark.capture_detach('orders', 'why'); select tidemark.capture_attach('orders', 'why', always => true)`)
	s.exec(`set session_replication_role = replica; insert into orders values (11); reset session_replication_role`)
	s.wantEvents("insert 11")
	s.wantRows(`select distinct trigger from tidemark.capture_list`, "always")
}

const missed = `select concat_ws(' ', i.sql_event, c.outcome, c.rows, c.actor = session_user, nullif(c.reason, '')) from tidemark.captured c join tidemark.inbound_route i on i.id = c.route_id order by c.id`

// CA3, RO2: off, dry run, an unregistered type.
func TestCaptureThatIsOff(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int)`)
	s.exec(`update tidemark.inbound_route set enabled = false; insert into orders values (1)`)
	s.exec(`insert into orders values (2), (3); update tidemark.inbound_route set enabled = true; delete from tidemark.inbound_route where sql_event = 'delete'; delete from orders where id = 3`)
	s.wantRows(missed)
	s.exec(`update tidemark.inbound_route set dry_run = true`)
	s.exec(`insert into orders values (3), (4); update orders set n = 1 where id < 3; update orders set n = 1; update orders set n = 1; insert into orders select where false; truncate orders`)
	s.wantRows(missed, "insert dry_run 2 t", "update dry_run 2 t", "update dry_run 2 t", "truncate dry_run 1 t")
	s.exec(`delete from tidemark.captured; update tidemark.inbound_route set dry_run = false; select tidemark.type_set('app', 'insert', '{"enabled": false}')`)
	s.exec(`insert into orders values (5)`)
	s.wantRows(missed, "insert unregistered 1 t app/insert is not registered or not enabled")
	s.wantEvents()
}

// CA6: gates stop deliveries. What is captured while they are closed waits in the log, by either way of capture, and
// is delivered once they open.
func TestCaptureBehindAClosedGate(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int); create table got (what text);
		create function take(event jsonb) returns void language sql as
		$$ insert into public.got values (concat_ws(' ', event ->> 'type', event ->> 'key')) $$; grant insert on got to tidemark_owner`)
	s.exec(`select tidemark.route_set('take', '{"domain": "app", "type": "*", "target_kind": "sql", "target_ref": "public.take"}'),
		tidemark.gate_set('worker.default.enabled', true)`)
	s.exec(`update tidemark.outbound_route set enabled = true, dry_run = false where route_code = 'take'; grant execute on function take(jsonb) to tidemark_owner`)
	shut := []string{
		`select tidemark.gate_set('routes.enabled', false)`,
		`delete from tidemark.setting where key = 'routes.enabled'`,
	}
	changes := []string{`insert into orders values (1), (2)`, `update orders set n = 1 where id = 1`, `delete from orders where id = 2`, `truncate orders`}
	want := []string{"insert 1", "insert 2", "update 1", "delete 2", "truncate"}
	for _, policy := range []string{"change", "transaction"} {
		s.exec(`select tidemark.inbound_route_set(r.route_code, jsonb_build_object('idempotency_policy', $1::text)) from tidemark.inbound_route r`, policy)
		for _, long := range []bool{false, true} {
			for _, close := range shut {
				s.exec(close)
				if long { // what capture_make made is of another table now
					s.exec(`alter table orders add column more int`)
				}
				for _, change := range changes {
					s.wantWay(change, long && change != "truncate orders")
				}
				s.exec(`select tidemark.route_worker_run()`)
				s.wantRows(`select what from got`)
				s.exec(`insert into tidemark.setting (key, value, description) values ('routes.enabled', 'true', '')
					on conflict (key) do update set value = 'true'`)
				s.exec(`select tidemark.route_worker_run()`)
				s.wantRows(`select what from got`, want...)
				s.exec(`truncate got; alter table orders drop column if exists more; select tidemark.capture_refresh()`)
			}
		}
	}
}

// CA3, EV5.
func TestCaptureThatCannotWrite(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, doc jsonb, note text, raw_json json)`)
	s.exec(`select tidemark.domain_set('app', '{"metadata_only": true}')`)
	s.exec(`update tidemark.inbound_route set route_code = 'new', payload_columns = '{doc,note}' where sql_event = 'insert'`)
	deep := `insert into orders values (1, '{"a": [{"b": {"Pass_Word": 1}}]}')`
	s.refused("TM003", `inbound route new: app/insert: payload holds the forbidden key "password"`, deep)
	s.exec(`update tidemark.setting set value = '1100' where key = 'emit.payload_limit'`)
	s.refused("TM005", "inbound route new: the columns of its contract have 1102 bytes, and the payload must have at most 1100", `insert into orders values (1, '1', repeat('x', 1101))`)
	s.refused("TM005", "inbound route new: payload has 1123 bytes, and must have at most 1100", `insert into orders values (1, '1', repeat('x', 1000))`)
	s.exec(`insert into orders values (2, '{}', 'fine')`)
	s.wantEvents(`insert 2 {"doc": {}, "note": "fine"}`)
	s.wantRows(`select id::text from orders`, "2")

	s.exec(`update tidemark.inbound_route set fail_closed = false where route_code = 'new'`)
	s.exec(deep)
	s.exec(`insert into orders values (3, '1', repeat('x', 1102))`)
	s.wantRows(missed, `insert failed 1 t inbound route new: app/insert: payload holds the forbidden key "password"`,
		"insert failed 1 t inbound route new: the columns of its contract have 1103 bytes, and the payload must have at most 1100")

	s.exec(`delete from tidemark.captured; update tidemark.inbound_route set payload_columns = '{raw_json}' where route_code = 'new'`)
	bad := `insert into orders (id, raw_json) values (%d, '"\u0000"')`
	s.exec(fmt.Sprintf(bad, 4))
	s.wantRows(missed, "insert failed 1 t SQLSTATE 22P05")
	s.exec(`update tidemark.inbound_route set fail_closed = true where route_code = 'new'`)
	s.refused("TM002", "inbound route new: ", fmt.Sprintf(bad, 5))

	s.exec(`alter table orders drop column raw_json`)
	s.refused("TM005", "inbound route new: public.orders has no column raw_json, which the contract names", `insert into orders values (6)`)
	s.exec(`update tidemark.inbound_route set fail_closed = false where route_code = 'new'; insert into orders values (6)`)
	s.wantRows(missed+` desc limit 1`, "insert failed 1 t public.orders has no column raw_json, which the contract names")
	s.wantEvents()
	s.exec(`update tidemark.inbound_route set payload_columns = '{}'; select tidemark.type_set('app', 'insert', '{"schema": {"required": ["shop"]}}')`)
	s.exec(`update tidemark.inbound_route set fail_closed = true`)
	s.refused("TM002", `inbound route new: app/insert: payload has no key "shop"`, `insert into orders values (7)`)
	s.exec(`update orders set note = 'metadata never fails', doc = '{"password": 1}'`)
}

// JSON that a payload cannot hold, in each type that has it: the statement fails and names the route, or goes on with the change on
// record.
func TestCaptureOfJSONThatAPayloadCannotHold(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "app")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true)`)
	s.exec(`create domain doc as json; create domain docs as json[]; create type pair as (doc json)`)
	for i, c := range []struct{ typ, value, code string }{
		{"json", `'"\u0000"'`, "22P05"},
		{"json", `'1e999999'`, "22003"},
		{"json", `'"\ud800"'`, "22P02"},
		{"doc", `'"\u0000"'`, "22P05"},
		{"json[]", `array['1', '"\u0000"']`, "22P05"},
		{"docs", `array['"\u0000"']::json[]`, "22P05"},
		{"json", "(repeat('[', 600) || repeat(']', 600))", "TM005"},
		{"pair", `row('"\u0000"')`, ""}, // as its text
		{"pair[]", `array[row('"\u0000"')]::pair[]`, ""},
		{"numeric", "'NaN'", ""},
		{"float8", "'-Infinity'", ""},
		{"timestamptz", "'infinity'", ""},
		{"timestamptz", "'294276-12-31'", ""},
		{"date", "'4713-11-24 BC'", ""},
		{"interval", "'178000000 years'", ""},
		{"int4range[]", "'{empty}'", ""},
		{"text", `E'\u0001\uffff'`, ""},
	} {
		t.Run(c.typ+" "+c.value, func(t *testing.T) {
			s := s
			s.t = t
			table := fmt.Sprintf("t%d", i)
			s.exec(fmt.Sprintf(`create table %s (id int primary key, odd %s)`, table, c.typ))
			s.capture(table)
			s.exec(`update tidemark.inbound_route set payload_columns = '{odd}' where source_table = $1 and sql_event <> 'truncate'`, table)
			s.exec(`select tidemark.capture_refresh()`)
			events := `select count(*)::text from tidemark.outbox where subject_table = 'public.` + table + `' and payload -> 'columns' ? 'odd'`
			for n, fails := range []bool{true, false} {
				s.exec(`update tidemark.inbound_route set fail_closed = $2 where source_table = $1`, table, fails)
				statement := fmt.Sprintf(`insert into %s values (%d, (%s)::%s)`, table, n, c.value, c.typ)
				if c.code != "" && fails {
					want := "TM002"
					if c.code == "TM005" {
						want = c.code
					}
					s.refused(want, "inbound route ", statement)
				} else {
					s.exec(statement)
				}
			}
			if c.code == "" {
				s.wantRows(events, "2")
				return
			}
			s.wantRows(events, "0")
			s.wantRows(`select id::text from `+table, "1")
			s.wantRows(`select concat_ws(' ', c.outcome, c.rows, strpos(c.reason, '`+c.code+`') > 0 or c.reason like '%levels%') from tidemark.captured c
				join tidemark.inbound_route r on r.id = c.route_id where r.source_table = '`+table+`'`, "failed 1 t")
		})
	}
}

func TestCaptureOncePerTransaction(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int); create table keyless (n int)`)
	s.capture("keyless")
	s.exec(`update tidemark.inbound_route set idempotency_policy = 'transaction'`)
	s.exec(`insert into orders values (1), (2)`)
	s.wantEvents("insert 1", "insert 2")
	s.begin()
	s.exec(`update orders set n = 1 where id = 1; savepoint a; update orders set n = 2; rollback to a; update orders set n = 3; update orders set n = 4`)
	s.exec(`insert into keyless values (1), (1); insert into keyless values (1)`)
	s.commit()
	s.wantEvents(`update 1 ["n"]`, `update 2 ["n"]`, "insert null", "insert null", "insert null")
	s.exec(`update orders set n = 5 where id = 1`)
	s.wantEvents(`update 1 ["n"]`)
}

// A writer needs no right of Tidemark's, and nothing of the table's owner runs with the rights of the log's.
func TestCaptureRights(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key); create role tidemark_test_app; grant insert on orders to tidemark_test_app`)
	defer s.exec(`reset role; drop owned by tidemark_test_app; drop role tidemark_test_app`)
	s.exec(`create type pair as (a int); create table ran (by name); grant insert on ran to public;
		create function evil_text(pair) returns text language plpgsql as 'begin insert into public.ran values (current_user); return ''x''; end';
		create function evil_json(pair) returns json language plpgsql as 'begin insert into public.ran values (current_user); return ''1''; end';
		create cast (pair as text) with function evil_text(pair); create cast (pair as json) with function evil_json(pair);
		create table trap (id pair primary key, b pair)`)
	s.capture("trap")
	s.exec(`update tidemark.inbound_route set payload_columns = '{id,b}' where source_table = 'trap' and sql_event <> 'truncate'`)
	s.exec(`insert into trap values (row(1), row(2)); update trap set b = row(3); update trap set b = null`)
	s.wantRows(`select by::text from ran`)
	s.wantEvents(`insert (1) {"b": "(2)", "id": "(1)"}`, `update (1) ["b"] {"b": "(3)", "id": "(1)"}`, `update (1) ["b"] {"b": null, "id": "(1)"}`)
	s.exec(`set role tidemark_test_app; insert into orders values (1); create temp table tidemark_new (id int); insert into tidemark_new values (99); insert into orders values (2); reset role`)
	s.wantEvents("insert 1", "insert 2")
	// A trigger by hand without a transition table must not take the session's table for one.
	s.exec(`select tidemark.capture_detach('orders', 'why'); create trigger mine after insert on orders for each statement execute function tidemark.capture_5()`)
	s.refused("TM005", "trigger mine of public.orders differs from what tidemark.capture_attach makes", `insert into orders values (3)`)
	s.wantRows(`select status || ' ' || object from tidemark.capture_check() where object ~ 'mine'`, "fail trigger mine of public.orders")
}

// Two that capture at once do not wait for each other, nor for who changes the route.
func TestCaptureAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := open(t, db, "app"), open(t, db, "other")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true); create table orders (id int primary key, n int)`)
	s.capture("orders")
	for i, change := range []string{``, `idempotency_policy = 'transaction'`, `dry_run = true`} {
		if change != "" {
			s.exec(`update tidemark.inbound_route set ` + change)
		}
		s.begin()
		s.exec(`insert into orders values ($1)`, i)
		other.exec(`set lock_timeout = '5s'`)
		other.exec(`insert into orders values ($1)`, i+100)
		other.exec(`update orders set n = $1 where id >= 100`, i)
		other.exec(`select tidemark.inbound_route_set(route_code, '{"description": "x"}') from tidemark.inbound_route`)
		s.commit()
	}
}

func TestCaptureWakesASleeper(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, sleeper := open(t, db, "app"), open(t, db, "sleeper")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('notify.bridge_enabled', true); create table orders (id int primary key)`)
	s.capture("orders")
	sleeper.exec(`listen tidemark_wake_app`)
	sleeper.exec(`select pg_advisory_lock_shared(1953064301, 1)`)
	s.exec(`insert into orders values (1)`)
	equal(t, "channel", sleeper.notification().Channel, "tidemark_wake_app")
}

// When a MERGE into a partitioned table has inserted a row, PostgreSQL (15.18 at least) puts that row into the new
// rows of its later updates, in place of theirs. The event names the two keys nevertheless.
func TestCaptureOfMergeIntoPartitions(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int) partition by range (id);
		create table orders_1 partition of orders for values from (0) to (9); insert into orders values (2, 0), (3, 0)`)
	s.exec(`merge into orders o using (values (1), (2), (3)) v (id) on v.id = o.id when matched then update set n = 1 when not matched then insert values (v.id, 1)`)
	s.wantRows(`select distinct k from tidemark.outbox o cross join unnest(array[key, payload -> 'old_primary_key' ->> 'id']) k where k is not null order by 1`, "1", "2", "3")
}

// What became no event is a finding, opened by maintain and not by the users' transactions.
func TestCaptureUnwritten(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`update tidemark.event_type set enabled = false`)
	s.exec(`insert into orders values (1), (2)`)
	const findings = `select concat_ws(' ', kind, severity, count, detail like '2 changes%not registered%') from tidemark.finding where closed_at is null`
	s.wantRows(findings)
	s.exec(`select tidemark.maintain()`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(findings, "capture_unwritten high 1 t")
	s.exec(`update tidemark.event_type set enabled = true; select tidemark.maintain()`)
	s.wantRows(findings) // mended
	s.exec(`update tidemark.event_type set enabled = false; select tidemark.maintain()`)
	s.wantRows(findings, "capture_unwritten high 1 t")
	s.exec(`alter table tidemark.captured disable trigger all; update tidemark.captured set at = at - interval '2 hours'`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(findings)
}

// A writer chooses how its session quotes names. An event that named its table in another way would be seen by no worker that
// reads the table by its capture, and a trigger put on by hand would pass for an attached one.
func TestCaptureNamesTheTableWhateverTheSessionQuotes(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, doc json)`)
	s.exec(`update tidemark.inbound_route set payload_columns = '{doc}' where sql_event = 'insert'`) // the long way, since json may be unreadable
	s.exec(`set quote_all_identifiers = on`)
	s.exec(`insert into orders values (1, '{}'); update orders set doc = '[]'`)
	s.wantRows(`select distinct o.subject_table from tidemark.outbox o where o.domain = 'app'`, "public.orders")
	s.wantRows(`select distinct r.detail from tidemark.capture_reconcile() r where r.relation <> 'public.orders'`)
	s.exec(`reset quote_all_identifiers`)
	// A function that was made with other settings, as by an earlier version, is remade.
	s.wantRows(`select (p.prosrc like '%' || tidemark.capture_settings() || '%' and 'quote_all_identifiers=off' = any (p.proconfig))::text
		from pg_proc p where p.proname ~ '^capture_[0-9]+$' group by 1`, "true")
}
