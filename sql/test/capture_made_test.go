package test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// goesTheLongWay tells whether the statement looks up the table's columns.
func (s session) goesTheLongWay(statement string) bool {
	s.t.Helper()
	s.begin()
	s.exec(`set local track_functions = 'all'`)
	const calls = `select coalesce(sum(f.calls), 0)::bigint from pg_stat_xact_user_functions f where f.funcname = 'capture_columns'`
	before := one[int](s, calls)
	s.exec(statement)
	after := one[int](s, calls)
	s.commit()
	return after > before
}

func (s session) wantWay(statement string, long bool) {
	s.t.Helper()
	if got := s.goesTheLongWay(statement); got != long {
		s.t.Errorf("%s: the long way: %t, want %t", statement, got, long)
	}
}

// What attach makes for a table serves while the table is what it was. A change of the table by another session is
// noticed with the next statement, and the events are right before and after the function is remade.
func TestCaptureMadeForATable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, owner := open(t, db, "app"), open(t, db, "owner")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true)`)
	s.exec(`create table orders (id int primary key, state text, gone int)`)
	s.capture("orders")
	s.wantWay(`insert into orders values (1, 'new'), (2, 'new')`, false)
	s.wantWay(`update orders set state = 'paid' where id = 1`, false)
	s.wantWay(`delete from orders where id = 2`, false)
	s.wantEvents("insert 1", "insert 2", `update 1 ["state"]`, "delete 2")

	n := 10
	nothing := func() {
		t.Helper()
		s.wantWay(`insert into orders select from generate_series(1, 0)`, false)
		s.wantWay(`update orders set `+one[string](s, `select format('%1$I = %1$I', attname) from pg_attribute where attrelid = 'orders'::regclass and attnum = 2`), false)
	}
	for _, c := range []struct {
		change string
		want   string // of the update, without the number
	}{
		{`alter table orders add column added int default 7`, `update %d ["state"]`},
		{`alter table orders drop column gone`, `update %d ["state"]`},
		{`alter table orders rename column id to "no"`, `update %d ["state"]`},
		{`alter table orders rename column state to "at"`, `update %d ["at"]`},
		{`alter table orders alter column "no" type bigint`, `update %d ["at"]`},
		{`alter table orders drop constraint orders_pkey`, `update null ["at"]`},
		{`create unique index by_no on orders ("no"); alter table orders add primary key using index by_no`, `update %d ["at"]`},
	} {
		nothing()
		owner.exec(c.change)
		column := one[string](s, `select attname::text from pg_attribute where attrelid = 'orders'::regclass and attnum = 2`)
		for _, long := range []bool{true, false} {
			n++
			s.wantWay(fmt.Sprintf(`insert into orders values (%d, 'new')`, n), long)
			s.wantWay(fmt.Sprintf(`update orders set %q = 'paid' where ctid = (select max(ctid) from orders)`, column), long)
			key := c.want
			if key[:11] != "update null" {
				s.wantEvents(fmt.Sprintf("insert %d", n), fmt.Sprintf(c.want, n))
			} else {
				s.wantEvents("insert null", c.want)
			}
			if long {
				s.wantRows(`select problem from tidemark.capture_check() where object = 'function tidemark.capture_1' and status = 'warn' limit 1`,
					"differs from what would be made now for insert of public.orders: captures are slower")
				owner.exec(`select tidemark.maintain()`)
				s.wantRows(`select object from tidemark.capture_check() where object ~ 'function'`)
			}
		}
	}

	// By the route, too.
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["at"]}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.wantWay(`insert into orders values (50, 'shown')`, false)
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": [], "idempotency_policy": "transaction"}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.wantWay(`insert into orders values (51, 'not shown')`, false)
	s.wantEvents(`insert 50 {"at": "shown"}`, "insert 51")
	s.exec(`select tidemark.type_set('app', 'other'); select tidemark.inbound_route_set(r.route_code, '{"type": "other"}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.wantWay(`insert into orders values (52)`, false)
	s.exec(`update tidemark.inbound_route set type = 'insert'`)
	s.wantWay(`insert into orders values (53)`, true)
	s.wantEvents("other 52", "insert 53")
	s.exec(`update tidemark.inbound_route set enabled = false where sql_event = 'insert'`)
	s.wantWay(`insert into orders values (54)`, false)
	s.exec(`update tidemark.inbound_route set enabled = true; select tidemark.gate_set('routes.enabled', false)`)
	s.wantWay(`insert into orders values (55)`, true)
	s.wantEvents("insert 55")

	s.exec(`select tidemark.capture_detach('orders', 'enough')`)
	s.wantRows(`select proname::text from pg_proc where proname ~ '^capture_[0-9]+$'`)
}

// The plan is kept, and was made for one row: pairing what was with what is must not cost the square of the rows.
func TestCaptureOfManyAfterFew(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders values (0, 0); update orders set n = 1`)
	s.exec(`insert into orders select i, 0 from generate_series(1, 40000) i`)
	s.exec(`set statement_timeout = '60s'`)
	s.exec(`update orders set n = 2`)
	s.wantRows(`select count(*)::text from tidemark.outbox where type = 'update'`, "40002")
}

// Columns of the table are not taken for variables of the function, nor for names of its statement.
func TestCaptureOfColumnsNamedLikeVariables(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"change", "transaction"} {
		s := captured(t, "orders", `create table orders (at int, head int, route int, made int, place int, n int, x int, o int, u int, g int, c int, e int, id int, ref int, payload int, ord int,
			due int, fits int, schema int, metadata_only int, domain int, listeners int, "{the route's domain}" int, "{the table's own statement}" int, primary key (n, at))`)
		s.exec(`select tidemark.inbound_route_set(r.route_code, jsonb_build_object('idempotency_policy', $1::text) || case when r.sql_event <> 'truncate' then jsonb '{"payload_columns": ["head", "payload", "e"], "stream": "{the route''s domain}"}' else '{}' end) from tidemark.inbound_route r`, policy)
		s.wantWay(`insert into orders values (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)`, false)
		s.wantWay(`update orders set head = 22, at = 21, x = 27`, false)
		s.wantWay(`delete from orders`, false)
		s.wantEvents(`insert 6,1 {"e": 12, "head": 2, "payload": 15}`, `update 6,21 ["at", "head", "x"] was {"n": 6, "at": 1} {"e": 12, "head": 22, "payload": 15}`,
			`delete 6,21 {"e": 12, "head": 22, "payload": 15}`)
	}
}

// A trigger by hand without a transition table must not take the session's table for one.
func TestCaptureFunctionInATriggerByHand(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key); create table other (id int primary key)`)
	s.exec(`create temp table tidemark_new (id int); insert into tidemark_new values (99); grant select on tidemark_new to public`)
	s.exec(`create trigger mine after insert on other for each statement execute function tidemark.capture_1()`)
	s.exec(`insert into other values (1)`)
	s.wantRows(`select o.payload::text from tidemark.outbox o`)
	s.capture("other")
	s.refused("TM005", "trigger mine of public.other differs from what tidemark.capture_attach makes", `insert into other values (2)`)
	s.exec(`create trigger mine after insert on orders for each statement execute function tidemark.capture_1()`)
	s.refused("TM005", "trigger mine of public.orders differs from what tidemark.capture_attach makes", `insert into orders values (1)`)
	s.exec(`drop trigger mine on orders; insert into orders values (1)`)
	s.wantEvents("insert 1")
	s.wantRows(`select pg_get_userbyid(proowner) || ' ' || has_function_privilege('public', oid, 'execute') from pg_proc where proname = 'capture_1'`, "tidemark_owner false")
}

// A migration makes them anew, from the new template.
func TestMigrationMakesCaptureFunctionsAnew(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`create or replace function tidemark.capture_1() returns trigger language plpgsql as 'begin return null; end'`)
	s.exec(`insert into orders values (1)`)
	s.exec(`update tidemark.code set checksum = '' where object = 'capture_template'`)
	if _, err := migrate.Up(t.Context(), s.conn); err != nil {
		t.Fatal(err)
	}
	s.exec(`insert into orders values (2)`)
	s.wantEvents("insert 2")
}

// A captured statement goes by the type and route of now, and its function is made again in the transaction that changes what it
// has written out: the statement need not go the long way.
func TestCaptureFollowsTypeAndRoute(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator := open(t, db, "app"), open(t, db, "operator")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true); create table orders (id int primary key, pad text)`)
	s.capture("orders")
	const insert = `with o as (insert into orders select count(*), repeat('x', 1200) from orders returning id) select id from o`
	for _, c := range []struct{ change, code, want string }{
		{`select tidemark.type_set('app', 'insert', '{"schema": {"properties": {"table": {"type": "integer"}}}}')`, "TM002", ""},
		{`select tidemark.type_set('app', 'insert', '{"schema": {"properties": {"table": {"type": "string"}}}}')`, "", "insert"},
		{`select tidemark.type_set('app', 'insert', '{"schema": null}')`, "", "insert"},
		{`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["pad"], "stream": "s"}') from tidemark.inbound_route r where r.sql_event = 'insert'`, "", "insert s 1200"},
		{`select tidemark.domain_set('app', '{"metadata_only": true}'); insert into tidemark.forbidden_key (key) values ('pad')`, "TM003", ""},
		{`select tidemark.domain_set('app', '{"metadata_only": false}')`, "", "insert s 1200"},
		{`select tidemark.domain_grant('app', 'tidemark_admin')`, "", "insert s 1200"},
		{`select tidemark.domain_set('app', '{"restricted": false}')`, "", "insert s 1200"},
		{`update tidemark.event_type set schema = '{"properties": {"columns": {"type": "integer"}}}' where type = 'insert'`, "TM002", ""},
		{`update tidemark.event_type set schema = null`, "", "insert s 1200"},
		{`insert into tidemark.setting (key, value) values ('emit.payload_limit', '1100') on conflict (key) do update set value = excluded.value`, "TM005", ""},
		{`update tidemark.setting set value = '0' where key = 'emit.payload_limit'`, "", "insert s 1200"},
		{`select tidemark.inbound_route_set(r.route_code, '{"enabled": false}') from tidemark.inbound_route r where r.sql_event = 'insert'`, "", ""},
		{`select tidemark.inbound_route_set(r.route_code, '{"enabled": true}') from tidemark.inbound_route r where r.sql_event = 'insert'`, "", "insert s 1200"},
		{`select tidemark.gate_set('routes.enabled', false), tidemark.stage_set('dry_run', 'test')`, "", "insert s 1200"},
		{`select tidemark.inbound_route_set(r.route_code, '{"type": "made", "payload_columns": []}') from tidemark.inbound_route r where r.sql_event = 'insert'; select tidemark.type_set('app', 'made')`, "", "made s"},
	} {
		operator.exec(c.change)
		s.wantRows(`select route_code from tidemark.capture_stale`)
		if c.code != "" {
			s.refused(c.code, "inbound route", insert)
			continue
		}
		s.wantWay(insert, false)
		var want []string
		if c.want != "" {
			want = append(want, c.want)
		}
		s.wantRows(`select concat_ws(' ', o.type, o.stream, length(o.payload #>> '{columns,pad}')) from tidemark.outbox o where o.key = (select max(id) from orders)::text`, want...)
	}
	// A type that is disabled is noticed at once, and needs no other function.
	operator.exec(`select tidemark.type_set('app', 'made', '{"enabled": false}')`)
	s.wantWay(insert, true)
	operator.exec(`select tidemark.type_set('app', 'made', '{"enabled": true}')`)
	s.wantWay(insert, false)
	// Where triggers do not fire, as in a restore, the function stays as it was, and is not used.
	operator.exec(`set session_replication_role = replica; update tidemark.event_type set schema = '{"required": ["more"]}' where type = 'made'; reset session_replication_role`)
	s.refused("TM002", "payload has no key \"more\"", insert)
	s.wantRows(`select operation from tidemark.capture_stale`, "insert")
}

// A session with a plan of before goes by the type and route of now, also in a transaction under way. Under REPEATABLE READ
// a write fails after the change, and works in the next transaction.
func TestCaptureWhileItsRouteChanges(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator := open(t, db, "app"), open(t, db, "operator")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true); create table orders (id int primary key)`)
	s.capture("orders")
	s.exec(`select tidemark.type_set('app', 'a'), tidemark.type_set('app', 'b', '{"schema": {"properties": {"table": {"type": "string"}}}}')`)
	to := func(name string) {
		operator.exec(`select tidemark.inbound_route_set(r.route_code, jsonb_build_object('type', $1::text, 'stream', $1::text)) from tidemark.inbound_route r where r.sql_event = 'insert'`, name)
	}
	to("a")
	s.exec(`prepare writes as insert into orders select coalesce(max(id), 0) + 1 from orders`)
	for _, level := range []string{"read committed", "repeatable read"} {
		to("a")
		s.exec(`execute writes`)
		s.begin()
		s.exec(`set transaction isolation level ` + level)
		s.exec(`execute writes`)
		operator.begin()
		to("b")
		s.exec(`execute writes`)
		operator.commit()
		if level == "repeatable read" {
			s.exec(`savepoint before`)
			s.refused("40001", "was made or changed after the snapshot", `execute writes`)
			s.exec(`rollback to before`)
		} else {
			s.exec(`execute writes`)
		}
		s.commit()
		s.exec(`execute writes`)
		want := []string{"a a", "a a", "a a", "b b", "b b"}
		if level == "repeatable read" {
			want = slices.Delete(want, 3, 4)
		}
		s.wantRows(fmt.Sprintf(`select concat_ws(' ', o.type, o.stream) from (select o.* from tidemark.outbox o order by o.seq desc limit %d) o order by o.seq`, len(want)), want...)
	}

	// Writers and an operator at once: an event has the type and stream of one route, and each row has one event.
	const writers, changes = 2, 40
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for i := range writers {
		w := open(t, db, fmt.Sprint("writer ", i))
		writing.Go(func() {
			for n := i; ; n += writers {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.conn.Exec(t.Context(), `insert into orders values ($1)`, 1000+n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range changes {
		to([]string{"a", "b"}[i%2])
	}
	close(stop)
	writing.Wait()
	s.wantRows(`select o.type from tidemark.outbox o where o.type <> o.stream`)
	s.wantRows(`select (count(*) filter (where o.type = 'a') > 0 and count(*) filter (where o.type = 'b') > 0)::text from tidemark.outbox o where o.key::int >= 1000`, "true")
	s.wantRows(`select id::text from orders except all select key from tidemark.outbox`)
	s.wantRows(`select key from tidemark.outbox except all select id::text from orders`)
}

// Where the columns of a payload have fixed sizes, no statement makes its text to measure it: then it is below the lowest limit,
// however the columns are named. What else is limited still is.
func TestCaptureMeasuresWhatCanBeLarge(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id bigint primary key, at timestamptz, day date, u uuid, n int, pad text)`)
	measures := func(contract string) bool {
		t.Helper()
		s.exec(`select tidemark.inbound_route_set(r.route_code, jsonb_build_object('payload_columns', $1::text[])) from tidemark.inbound_route r where r.sql_event <> 'truncate'`, contract)
		return one[bool](s, `select bool_or(prosrc ~ 'event_is_small') from pg_proc where proname ~ '^capture_[0-9]+$' and prosrc ~ 'tidemark_new'`)
	}
	equal(t, "ids alone", measures(`{}`), false)
	equal(t, "a text", measures(`{pad}`), true)
	equal(t, "fixed sizes", measures(`{at,n}`), false)
	s.exec(`insert into orders values (-9223372036854775808, '294276-12-31 23:59:59.999999', '5874897-12-31', gen_random_uuid(), -2147483648)`)
	s.exec(`update orders set id = 9223372036854775807, at = '4713-01-02 00:00:00 BC', day = null, u = null, n = null, pad = ''`)
	s.wantRows(`select (max(octet_length(payload::text)) < 1000)::text from tidemark.outbox`, "true")
	equal(t, "many", measures(`{id,at,day,u,n}`), true)
	s.exec(`create table odd (` + fmt.Sprintf(`%q int primary key, %q int)`, "\x01"+fmt.Sprintf("%060d", 1), "\x02\x03\x04\x05"+fmt.Sprintf("%050d", 2)))
	s.capture("odd")
	s.exec(`insert into odd values (1, 2)`)
	s.exec(`update odd set (` + fmt.Sprintf(`%q, %q) = (select 3, 4)`, "\x01"+fmt.Sprintf("%060d", 1), "\x02\x03\x04\x05"+fmt.Sprintf("%050d", 2)))
	s.wantRows(`select (max(octet_length(payload::text)) < 1000)::text from tidemark.outbox`, "true")
	s.exec(`select tidemark.inbound_route_set(r.route_code, jsonb_build_object('stream', repeat('s', 1025))) from tidemark.inbound_route r where r.sql_event = 'insert' and r.source_table = 'odd'`)
	s.refused("TM005", "stream has 1025 bytes", `insert into odd values (5, 6)`)
}
