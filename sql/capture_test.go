package sql_test

import (
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
	s.exec(`create trigger tidemark_capture_insert after insert on ` + table + ` referencing new table as tidemark_new for each statement execute function tidemark.capture();
		create trigger tidemark_capture_update after update on ` + table + ` referencing old table as tidemark_old new table as tidemark_new for each statement execute function tidemark.capture();
		create trigger tidemark_capture_delete after delete on ` + table + ` referencing old table as tidemark_old for each statement execute function tidemark.capture();
		create trigger tidemark_capture_truncate after truncate on ` + table + ` for each statement execute function tidemark.capture()`)
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
	s.wantRows(`select (to_jsonb(o) - array['seq', 'event_id', 'created_at', 'occurred_at'] = jsonb_build_object(
			'lane', 'immediate', 'severity', 'info', 'domain', 'app', 'type', 'insert', 'stream', null, 'key', '1', 'subject_table', 'public.orders',
			'subject_ref', '1', 'idempotency_key', null, 'trace', null, 'actor', session_user,
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
