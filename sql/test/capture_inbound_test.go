package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO2: a function and a trigger of the application make events by their routes, under the switches that a table's route has.
func TestInboundFunctionAndTrigger(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "app")
	s.exec(`create table unit (id text primary key, body text);
		create function unit_create(id text) returns void language sql as $$
			select tidemark.inbound_emit('made', jsonb_build_object('unit_id', id, 'body', 'never'), key => id) $$;
		create function on_unit() returns trigger language plpgsql as $$ begin
			perform tidemark.inbound_emit('changed', jsonb_build_object('unit_id', new.id, 'body', new.body), subject_ref => new.id, idempotency_key => new.id);
			return null; end $$;
		create trigger mine after insert on unit for each row execute function on_unit()`)
	act := func() { s.exec(`select unit_create('u-1'); insert into unit values (gen_random_uuid(), 'never')`) }
	const events = `select concat_ws(' ', type, key = 'u-1', subject_table, subject_ref = payload ->> 'unit_id', array(select jsonb_object_keys(payload)), actor = session_user)
			from tidemark.outbox where domain = 'app' order by seq`
	const captured = `select trim(concat_ws(' ', r.route_code, c.outcome, c.rows, c.reason)) from tidemark.captured c join tidemark.inbound_route r on r.id = c.route_id order by c.id`
	act() // there is no route: no event, no error
	s.exec(`select tidemark.inbound_route_set('made', '{"source_object_kind": "function", "source_schema": "public", "source_table": "unit_create",
			"sql_event": "call", "domain": "app", "type": "made", "payload_columns": ["unit_id"]}'),
		tidemark.inbound_route_set('changed', '{"source_object_kind": "trigger", "source_schema": "public", "source_table": "unit",
			"sql_event": "insert", "domain": "app", "type": "changed", "payload_columns": ["unit_id", "gone"]}')`)
	act() // off
	s.wantRows(events)
	s.wantRows(captured)
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"enabled": true}') from tidemark.inbound_route r`)
	act()
	s.wantRows(events)
	s.wantRows(captured, "made dry_run 1", "changed dry_run 1")
	s.refused("TM008", "", `select tidemark.inbound_route_set('made', '{"dry_run": false}')`)

	s.exec(`truncate tidemark.captured; select tidemark.stage_set('live', 'test');
		select tidemark.inbound_route_set(r.route_code, '{"dry_run": false}') from tidemark.inbound_route r`)
	act()
	s.wantRows(events)
	s.wantRows(captured, "made unregistered 1 app/made is not registered or not enabled", "changed unregistered 1 app/changed is not registered or not enabled")
	s.exec(`truncate tidemark.captured; select tidemark.type_set('app', 'made'), tidemark.type_set('app', 'changed')`)
	act()
	s.wantRows(events, "made t {unit_id} t", "changed public.unit t {unit_id} t")
	s.wantRows(captured)
	s.wantRows(`select * from tidemark.capture_check()`)

	// It fails with its event, or goes on without.
	s.exec(`select tidemark.type_set('app', 'changed', '{"schema": {"required": ["link_id"]}}')`)
	s.refused("TM002", `app/changed: payload has no key "link_id"`, `insert into unit values ('u-3')`)
	s.wantRows(`select id from unit where id = 'u-3'`)
	s.exec(`select tidemark.inbound_route_set('changed', '{"fail_closed": false}')`)
	s.exec(`insert into unit values ('u-3')`)
	s.wantRows(`select id from unit where id = 'u-3'`, "u-3")
	s.wantRows(captured, `changed failed 1 app/changed: payload has no key "link_id", which its schema requires`)
	s.wantRows(`select count(*)::text from tidemark.outbox where domain = 'app'`, "2")
}

// A route of the application's own trigger is none of a captured table's, and the other way round.
func TestInboundKindsAreApart(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key);
		create function noted() returns trigger language plpgsql as 'begin return null; end'`)
	s.exec(`select tidemark.inbound_route_set('own', '{"source_object_kind": "trigger", "source_schema": "public", "source_table": "orders",
			"sql_event": "insert", "domain": "app", "type": "own", "enabled": true, "dry_run": false}'),
		tidemark.inbound_route_set('call', '{"source_object_kind": "function", "source_schema": "public", "source_table": "orders",
			"sql_event": "call", "domain": "app", "type": "own", "enabled": true, "dry_run": false}'), tidemark.type_set('app', 'own')`)
	s.exec(`insert into orders values (1)`)
	s.wantEvents("insert 1")
	// The table's own is off: the other one is not taken in its place, by either way of capture.
	s.exec(`update tidemark.inbound_route set enabled = false where source_object_kind = 'table' and sql_event = 'insert'`)
	s.exec(`insert into orders values (2)`)
	s.exec(`alter table orders add column more int`)
	s.exec(`insert into orders values (3)`)
	s.wantEvents()
	s.exec(`update tidemark.inbound_route set enabled = true`)
	s.wantRows(`select concat_ws(' ', type, state, trigger) from tidemark.capture_list order by 1`,
		"delete live attached", "insert live attached", "own live by function", "own live by trigger", "truncate live attached", "update live attached")
	const own = `select concat_ws(' ', object, status, problem) from tidemark.capture_check() where object like 'route %'`
	noTrigger := "route own fail public.orders has no application trigger that fires for insert: nothing calls tidemark.inbound_emit"
	s.wantRows(own, "route call fail there is no function public.orders", noTrigger)
	s.exec(`create trigger other after update on orders for each row execute function noted();
		create trigger mine after insert on orders for each row execute function noted();
		create function orders() returns void language sql as '';
		alter table orders disable trigger mine`)
	s.wantRows(own, noTrigger)
	s.exec(`alter table orders enable trigger mine`)
	s.wantRows(own)
	s.wantRows(`select status from tidemark.capture_reconcile()`, "first")

	s.exec(`delete from tidemark.inbound_route where source_object_kind = 'table' and sql_event = 'insert'`)
	s.wantRows(`select concat_ws(' ', state, trigger) from tidemark.capture_list where operation = 'insert' order by 1`, "live by trigger", "no route attached")
	s.exec(`select tidemark.capture_detach('orders', 'test'); delete from tidemark.inbound_route where source_object_kind = 'table'`)
	s.refused("TM005", "public.orders has no inbound route", `select tidemark.capture_attach('public.orders', 'test')`)
	s.refused("TM005", "inbound route own is for a trigger, not for a table", `select tidemark.capture_make('own')`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(`select kind from tidemark.finding where closed_at is null and kind like 'capture%'`)
	s.exec(`select tidemark.inbound_route_set('table', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "app", "type": "own"}')`)
	s.refused("TM005", "inbound route table is for a table: its trigger makes the events", `select tidemark.inbound_emit('table')`)
	for _, wrong := range []struct{ changes, code, constraint string }{
		{`{"source_object_kind": "view"}`, "23514", "source_object_kind_is_known"},
		{`{"source_object_kind": "function"}`, "23514", "sql_event_is_known"},
		{`{"sql_event": "call"}`, "23514", "sql_event_is_known"},
		{`{"source_object_kind": "trigger", "sql_event": "delete", "idempotency_policy": "transaction"}`, "23514", "policy_transaction_is_of_tables"},
		{`{"source_object_kind": "trigger"}`, "TM005", "is for the same operation as"},
	} {
		s.refused(wrong.code, wrong.constraint, `select tidemark.inbound_route_set('table', $1)`, wrong.changes)
	}
}
