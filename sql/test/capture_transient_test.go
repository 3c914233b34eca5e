package test

import (
	"testing"
)

// What is the surroundings' fault fails the statement, also by a route that is not fail_closed; what is the event's is put
// down. One rule says which, for captured tables, for inbound_emit, and for deliveries.
func TestCaptureTellsTransientErrors(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`update tidemark.inbound_route set fail_closed = false;
		select tidemark.inbound_route_set('called', '{"source_object_kind": "function", "source_schema": "public", "source_table": "f",
			"sql_event": "call", "domain": "app", "type": "insert", "enabled": true, "dry_run": false, "fail_closed": false}');
		create function fail() returns trigger language plpgsql as $$ begin
			raise exception using errcode = current_setting('test.code'), message = 'so the test wants it'; end $$;
		create trigger fail before insert on tidemark.outbox for each row execute function fail()`)
	const puts = `select count(*)::int from tidemark.captured where outcome = 'failed'`
	for i, code := range []string{
		"08006", "25006", "40001", "40P01", "53100", "53200", "55P03", "57P01", "58030", "XX001", "XX002",
		"22003", "23505", "42703", "55000", "55006", "P0001", "XX000", "TM002",
	} {
		s.exec(`select set_config('test.code', $1, false)`, code)
		transient := one[bool](s, `select tidemark.is_transient(current_setting('test.code'))`)
		for name, deed := range map[string]string{"table": `insert into orders select 100 + count(*) from orders`, "inbound_emit": `select tidemark.inbound_emit('called')`} {
			before := one[int](s, puts)
			err := s.try(deed)
			put := one[int](s, puts) - before
			if transient && (err == nil || err.Code != code || put != 0) || !transient && (err != nil || put != 1) {
				t.Errorf("%d: %s: %s, transient %t: error %v, %d rows put down", i, name, code, transient, err, put)
			}
		}
	}
	s.wantRows(`select p.proname::text from ` + ours + ` and p.prosrc ~ 'sqlstate *~|sqlstate, *2'`)
}
